"""As much of JSON Schema as Heimdall's schemas use: whether a value is what one says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def wrong(schema: dict[str, Any], value: Any, where: str = "$") -> list[str]:
    """What is not as the schema says; a key that it does not name counts, too."""
    return list(_wrong(schema, schema, value, where))


def _wrong(root: dict[str, Any], node: dict[str, Any], value: Any, where: str) -> Iterator[str]:
    if "$ref" in node:
        node = root["$defs"][node["$ref"].rpartition("/")[2]]
    if "anyOf" in node:
        tried = [list(_wrong(root, each, value, where)) for each in node["anyOf"]]
        yield from min(tried, key=len)
        return
    if "const" in node and value != node["const"]:
        yield f"{where}: {value!r} instead of {node['const']!r}"
    if "enum" in node and value not in node["enum"]:
        yield f"{where}: {value!r} is none of {node['enum']}"
    kind = node.get("type")
    if kind is None:
        return
    right = isinstance(value, _KINDS[kind])
    if not right or (isinstance(value, bool) and kind in ("integer", "number")):
        yield f"{where}: {value!r} is no {kind}"
    elif kind == "object":
        yield from _wrong_object(root, node, value, where)
    elif kind == "array":
        places = node.get("prefixItems", [])
        if places and len(value) != len(places):
            yield f"{where}: {len(value)} values instead of {len(places)}"
        for index, each in enumerate(value):
            inner = places[index] if index < len(places) else node.get("items", {})
            yield from _wrong(root, inner, each, f"{where}[{index}]")


def _wrong_object(
    root: dict[str, Any], node: dict[str, Any], value: dict[str, Any], where: str
) -> Iterator[str]:
    known = node.get("properties", {})
    others = node.get("additionalProperties", not known)
    yield from (
        f"{where}.{key}: is missing" for key in node.get("required", ()) if key not in value
    )
    for key, each in value.items():
        if key in known:
            yield from _wrong(root, known[key], each, f"{where}.{key}")
        elif isinstance(others, dict):
            yield from _wrong(root, others, each, f"{where}.{key}")
        elif not others:
            yield f"{where}.{key}: is not in the schema"
