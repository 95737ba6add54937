"""Plain data as TOML: what the standard library reads and does not write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any


def as_toml(table: Mapping[str, Any]) -> str:
    """A document. None is left out: TOML has no such value. Lists of tables become tables in
    double brackets; their keys are kept in order, values before tables."""
    return "\n".join(_lines(table, "")).strip() + "\n"


def _lines(table: Mapping[str, Any], name: str) -> Iterator[str]:
    given = {key: value for key, value in table.items() if value is not None}
    for key, value in given.items():
        if not _is_table(value) and not _are_tables(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in given.items():
        path = f"{name}.{_key(key)}" if name else _key(key)
        if _is_table(value):
            yield from ("", f"[{path}]")
            yield from _lines(value, path)
        elif _are_tables(value):
            for each in value:
                yield from ("", f"[[{path}]]")
                yield from _lines(each, path)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_table, value))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)  # nan and inf are TOML's words for them, too
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return _text(str(value))


def _text(text: str) -> str:
    """JSON's escapes are TOML's; a lone half of a pair, which TOML lacks, becomes a question
    mark, and the one control character that JSON leaves is escaped."""
    whole = text.encode("utf-8", "replace").decode()
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
