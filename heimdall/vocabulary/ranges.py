"""Numbers of ops as half-open ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

_Value = TypeVar("_Value")


def as_ranges(ops: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Ops in their order; those that follow one another make one range."""
    found: list[tuple[int, int]] = []
    for op in ops:
        if found and found[-1][1] == op:
            found[-1] = found[-1][0], op + 1
        else:
            found.append((op, op + 1))
    return tuple(found)


def runs(values: Iterable[_Value]) -> list[tuple[int, int, _Value]]:
    """Each longest run of neighbours with the same value, as (start, end, value)."""
    found, start = [], 0
    for value, group in groupby(values):
        end = start + sum(1 for _ in group)
        found.append((start, end, value))
        start = end
    return found
