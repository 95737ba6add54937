"""Networks with early exits on any engine: which of its own ops each variant runs, and what a job
that left out the others has computed.

A job may jump over ops that only early exits need: the heads (see ``heimdall.graph.exits``).
"""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.graph.exits import DeclaredExit, Edges, arrange
from heimdall.vocabulary.plans import Exit


class OpCursor:
    """Which ops of a job have run, and which op is next."""

    def __init__(self, position: int = -1) -> None:
        self.begin(position)

    def begin(self, position: int = 0) -> None:
        """Before op ``position``, with nothing run (-1: no input yet)."""
        self.position = position
        self._ran: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Ops ``[start, end)`` have run."""
        if self._ran and self._ran[-1][1] == start:
            start = self._ran.pop()[0]
        self._ran.append((start, end))
        self.position = end

    def covers(self, exit: Exit) -> bool:
        """True if all ops of a variant have run."""
        return all(any(a <= start and end <= b for a, b in self._ran) for start, end in exit.ranges)


def exits_of(declared: Sequence[DeclaredExit], ops: Sequence[Edges]) -> tuple[Exit, ...]:
    """The variants over ops that are in order (see ``arrange``); nothing where none are declared.

    Raises ValueError where ops were joined or moved so that variants are not what the file says.
    """
    if not declared:
        return ()
    arranged = arrange(ops, declared)
    if arranged.order != tuple(range(len(ops))):
        raise ValueError("ops of exits are not where they belong")
    pairs = zip(declared, arranged.ranges, strict=True)
    return tuple(Exit(each.name, ranges, each.accuracy) for each, ranges in pairs)


def may_skip(exits: Sequence[Exit], start: int, end: int) -> bool:
    """True if a job may jump over ops ``[start, end)``: all of them are of early exits' heads."""
    if start == end or not exits:
        return start == end
    return start < end and not any(start < last and first < end for first, last in exits[-1].ranges)


def is_done(exits: Sequence[Exit], ops: int, end: int) -> bool:
    """Whether a job that has run to before op ``end`` has an output: at the end of a network of
    ``ops`` ops, or of an exit's head (no job passes one without having run it)."""
    return end == ops or any(end == exit.ranges[-1][1] for exit in exits)


def computed(
    declared: Sequence[DeclaredExit], exits: Sequence[Exit], progress: OpCursor
) -> list[str]:
    """The outputs whose ops have all run, in the order of the exits."""
    pairs = zip(declared, exits, strict=True)
    return [name for each, exit in pairs if progress.covers(exit) for name in each.outputs]
