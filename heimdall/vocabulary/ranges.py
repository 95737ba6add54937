"""Numbers of ops as half-open ranges."""

from __future__ import annotations

from collections.abc import Sequence


def as_ranges(ops: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Ops in their order; those that follow one another make one range."""
    found: list[tuple[int, int]] = []
    for op in ops:
        if found and found[-1][1] == op:
            found[-1] = found[-1][0], op + 1
        else:
            found.append((op, op + 1))
    return tuple(found)
