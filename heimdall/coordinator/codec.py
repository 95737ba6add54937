"""Events, actions and plans as plain JSON data and back: what the trace file holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.events import Action, Event, Group
from heimdall.vocabulary.plans import DnnPlan, Exit, StagePlan, Utility

TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (*get_args(Event), *get_args(Action), Group, DnnPlan, StagePlan, Exit, Utility)
}
# What only some systems use is left out where it says nothing: traces are as they were before.
_RARE = frozenset(
    {"request", "slo_ns", "replaces", "anew", "frame", "queued", "on", "cut_ns", "remote_ns"}
    | {"expires", "exits", "state_bytes", "critical", "exit", "off_ns"}
)
_FIELDS = {cls: tuple(f.name for f in dataclasses.fields(cls)) for cls in TYPES.values()}


def to_dict(value: Any) -> dict[str, Any]:
    """``{"type": <class name>, <field>: ...}`` with JSON types only."""
    cls = type(value)
    if cls not in _FIELDS:
        raise ConfigError(f"a {cls.__name__} cannot be written to a trace: {value!r}")
    data = {
        name: _plain(item) for name in _FIELDS[cls] if _says(name, item := getattr(value, name))
    }
    return {"type": cls.__name__, **data}


def from_dict(data: Mapping[str, Any]) -> Any:
    """The value ``to_dict`` wrote. Raises ConfigError naming what is wrong with the data."""
    if not isinstance(data, Mapping) or "type" not in data:
        raise ConfigError(f"not a traced event, action or plan: {data!r}")
    fields = {name: _value(item) for name, item in data.items() if name != "type"}
    if data["type"] not in TYPES:
        raise ConfigError(unknown("traced type", str(data["type"]), TYPES))
    try:
        return TYPES[data["type"]](**fields)
    except TypeError as error:
        raise ConfigError(f"a traced {data['type']} has the wrong fields: {error}") from error


def _says(name: str, item: Any) -> bool:
    return name not in _RARE or not (item is None or item is False or item in ((), ""))


def _plain(item: Any) -> Any:
    if isinstance(item, (bool, str)) or item is None:
        return item
    if isinstance(item, (tuple, list)):
        return [_plain(each) for each in item]
    if dataclasses.is_dataclass(item):
        return to_dict(item)
    # numpy scalars of a profile or a luminance difference become Python numbers
    return item.item() if hasattr(item, "item") else item


def _value(item: Any) -> Any:
    if isinstance(item, list):
        return tuple(_value(each) for each in item)
    return from_dict(item) if isinstance(item, Mapping) else item
