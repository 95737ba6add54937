"""A profile as JSON, and back with everything checked.

Scenarios are checked by pydantic, but a run reads no scenario, and importing pydantic would take
it 0.1 s before its first frame.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from typing import Any, TypeVar

from heimdall.analyzer.profile import SCHEMA, NetworkProfile, OpProfile, ProfileKey

_Record = TypeVar("_Record", ProfileKey, OpProfile, NetworkProfile)


def to_json(profile: NetworkProfile) -> bytes:
    """The content of a profile's file."""
    return json.dumps(asdict(profile), indent=1).encode()


def from_json(content: bytes) -> NetworkProfile:
    """The profile in a file's content. Raises ValueError, naming the field that is wrong."""
    return from_table(json.loads(content))


def from_table(table: object) -> NetworkProfile:
    """The profile in that JSON data. Raises ValueError, naming the field that is wrong."""
    profile = _record(NetworkProfile, table, "profile")
    if profile.schema_version != SCHEMA:
        raise ValueError(f"profile is of schema {profile.schema_version}, not {SCHEMA}")
    return profile


def _record(kind: type[_Record], table: object, where: str) -> _Record:
    """``table`` as a ``kind``: all of its fields, of the right types, and no others."""
    if not isinstance(table, dict):
        raise ValueError(f"{where} is not a table")
    known = {each.name: each for each in fields(kind)}
    for name in table:
        if name not in known:
            raise ValueError(f"{where} has an unknown {name!r}")
    for name, each in known.items():
        if name not in table and each.default is MISSING:
            raise ValueError(f"{where} has no {name!r}")
    return kind(
        **{
            name: _READ[str(known[name].type)](value, f"{where}: {name}")
            for name, value in table.items()
        }
    )


def _plain(kind: type) -> Callable[[Any, str], Any]:
    def read(value: Any, where: str) -> Any:
        if type(value) is not kind:  # a bool is no int here
            raise ValueError(f"{where} is {value!r}, not of type {kind.__name__}")
        return value

    return read


def _several(read: Callable[[Any, str], Any]) -> Callable[[Any, str], tuple[Any, ...]]:
    def read_all(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{where} is {value!r}, not a list")
        return tuple(read(item, f"{where}[{index}]") for index, item in enumerate(value))

    return read_all


_READ: dict[str, Callable[[Any, str], Any]] = {  # by the type that a field is declared with
    "str": _plain(str),
    "int": _plain(int),
    "bool": _plain(bool),
    "tuple[str, ...]": _several(_plain(str)),
    "ProfileKey": lambda value, where: _record(ProfileKey, value, where),
    "tuple[OpProfile, ...]": _several(lambda value, where: _record(OpProfile, value, where)),
}
