"""One request for an inference, whichever way it came."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from heimdall.serve.peers import Peer
from heimdall.serve.refusals import wrong
from heimdall.vocabulary.enums import Priority

# Triton's clients count priorities, 1 being the most urgent and 0 the server's own.
_COUNTED = {0: Priority.NORMAL, 1: Priority.HIGH, 2: Priority.NORMAL}
_SHARED = ("shared_memory_region", "shared_memory_offset", "shared_memory_byte_size")
# Of sequences and ensembles, which no network here has: to ignore them would be a wrong answer.
_NOT_HERE = ("sequence_id", "sequence_start", "sequence_end")


class MemoryRange(NamedTuple):
    """A part of a region of shared memory, in bytes."""

    region: str
    offset: int
    size: int


class Wanted(NamedTuple):
    """An output that is asked for: by REST raw or as a list, or written to shared memory."""

    name: str
    binary: bool = False
    place: MemoryRange | None = None


@dataclass(frozen=True)
class Asked:
    """``inputs`` fit the model. No ``outputs``: all of them. ``peer``: who asks, where that is
    known."""

    model: str
    inputs: Mapping[str, np.ndarray]
    peer: Peer | None
    outputs: tuple[Wanted, ...] = ()
    id: str = ""
    slo_ms: float | None = None
    priority: Priority = Priority.NORMAL
    parameters: Mapping[str, Any] = field(default_factory=dict)


def slo_of(parameters: Mapping[str, Any]) -> float | None:
    """The request's SLO in ms; None: the model's own. ``timeout`` is that too, in microseconds, as
    Triton's clients have it."""
    slo_ms = parameters.get("slo_ms")
    if slo_ms is None and parameters.get("timeout"):
        slo_ms = _number("timeout", parameters["timeout"]) / 1e3
    return None if slo_ms is None else _number("slo_ms", slo_ms)


def _number(name: str, value: Any) -> float:
    """Parameters of a client of REST or gRPC may be text."""
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not 0 < found < math.inf:
        raise wrong(f"{name}={str(value)[:40]}: must be a number above 0")
    return found


def priority_of(parameters: Mapping[str, Any]) -> Priority:
    """The request's: low, normal or high, or as Triton counts, 1 (high), 2, 3 and more (low)."""
    given = parameters.get("priority", 0)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return _COUNTED.get(given, Priority.LOW)
    if isinstance(given, str) and given in Priority.values():
        return Priority(given)
    raise wrong(f"priority={str(given)[:40]}: must be low, normal or high; or 1 (high), 2, 3 (low)")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse what would change the answer, and cannot be had."""
    for name in _NOT_HERE:
        if parameters.get(name):
            raise wrong(f"{name}: the models here keep nothing from one request to the next")


def place_of(parameters: Mapping[str, Any]) -> MemoryRange | None:
    """Where in shared memory a tensor lies; None: it is in the message."""
    if _SHARED[0] not in parameters:
        return None
    region, offset, size = (parameters.get(name, 0) for name in _SHARED)
    numbers = (offset, size)
    if not isinstance(region, str) or any(type(n) is not int or n < 0 for n in numbers):
        raise wrong("shared memory: a region's name, an offset and a size in bytes are needed")
    return MemoryRange(region, offset, size)
