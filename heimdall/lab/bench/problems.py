"""What is wrong with a file's tables, in words of whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from heimdall.errors import nearest, say_value

_LIMITS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}
_NUMBER, _WHOLE, _LIST, _TABLE = "a number", "a whole number", "a list [...]", "a table"
_KINDS = {
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "a finite number",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text in quotes",
    "tuple_type": _LIST,
    "list_type": _LIST,
    "mapping_type": _TABLE,
    "dict_type": _TABLE,
    "model_type": _TABLE,
    "model_attributes_type": _TABLE,
}


def problem(error: ValidationError, kind: type[BaseModel]) -> tuple[str, str]:
    """Where a mistake is (``dnns.hand.rate_hz``; empty: the file as a whole), and what it
    is; ``kind`` is what was read."""
    schema = kind.model_json_schema()
    found = error.errors()
    unknown_keys = [each for each in found if each["type"] == "extra_forbidden"]
    first = [*unknown_keys, *found][0]  # a misspelt key explains one that is missing
    where, within = _place(schema, first["loc"])
    if first["type"] == "extra_forbidden":
        return _dotted(where[:-1]), _unknown_key(where[-1], list(_properties(schema, within)))
    if first["type"] == "missing":
        return _dotted(where), "is missing"
    alike = [each for each in found if _place(schema, each["loc"])[0] == where]
    wants = list(dict.fromkeys(filter(None, map(_want, alike))))
    if not wants:
        return _dotted(where), str(first["msg"]).removeprefix("Value error, ")
    given = first["input"]
    shown = repr(given) if isinstance(given, str) else say_value(given)
    said = "" if isinstance(given, Mapping | list | tuple) else f", not {shown}"
    return _dotted(where), f"must be {' or '.join(wants)}{said}"


def first_problem(error: ValidationError, kind: type[BaseModel]) -> str:
    """A mistake as ``dnns.hand.rate_hz: must be above 0, not -1``."""
    where, said = problem(error, kind)
    return f"{where}: {said}" if where else said


def _want(found: Mapping[str, Any]) -> str | None:
    """What a value must be; None: its message says it all."""
    kind, context = str(found["type"]), found.get("ctx", {})
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return f"{words} {say_value(context[name])}"
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "too_short":
        return f"{context['min_length']} or more values"
    if kind == "too_long":
        return f"{context['max_length']} values at most"
    return _KINDS.get(kind)


def _unknown_key(key: str, valid: list[str]) -> str:
    near = nearest(key, valid)
    hint = f"did you mean {near}?" if near else f"choose one of: {', '.join(sorted(valid))}"
    return f"unknown key {key!r}; {hint}"


def _dotted(where: list[str]) -> str:
    return ".".join(where)


def _place(schema: dict[str, Any], loc: tuple[int | str, ...]) -> tuple[list[str], list[str]]:
    """The keys that lead to a mistake, without what pydantic adds for the alternatives of a value,
    and those of the table that it is in."""
    keys: list[str] = []
    within: list[str] = []
    for part in loc:
        inner = list(_inner(schema, keys, str(part)))
        if not inner and part != loc[-1]:
            continue  # the name of an alternative
        if not inner and keys and not list(_properties(schema, keys)):
            continue
        within = list(keys)
        keys.append(str(part))
    return keys, within


def _nodes(schema: dict[str, Any], node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A value's alternatives."""
    if "$ref" in node:
        yield from _nodes(schema, schema["$defs"][node["$ref"].rpartition("/")[2]])
    elif "anyOf" in node:
        for each in node["anyOf"]:
            yield from _nodes(schema, each)
    else:
        yield node


def _step(schema: dict[str, Any], node: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    for each in _nodes(schema, node):
        if key in each.get("properties", {}):
            yield from _nodes(schema, each["properties"][key])
        elif isinstance(each.get("additionalProperties"), dict):
            yield from _nodes(schema, each["additionalProperties"])
        elif key.isdecimal():
            places = [*each.get("prefixItems", ())]
            items = places[int(key)] if int(key) < len(places) else each.get("items")
            if isinstance(items, dict):
                yield from _nodes(schema, items)


def _at(schema: dict[str, Any], keys: list[str]) -> list[dict[str, Any]]:
    found = list(_nodes(schema, schema))
    for key in keys:
        found = [inner for node in found for inner in _step(schema, node, key)]
    return found


def _inner(schema: dict[str, Any], keys: list[str], key: str) -> Iterator[dict[str, Any]]:
    for node in _at(schema, keys):
        yield from _step(schema, node, key)


def _properties(schema: dict[str, Any], keys: list[str]) -> Iterator[str]:
    for node in _at(schema, keys):
        yield from node.get("properties", ())
