"""Networks with early exits in a device's profile:

accuracy = 0.87
slices = 16                                            # so many, evenly, between critical nodes
exits = [{ at = 0.4, head = 0.03, accuracy = 0.862 }]

is an exit where that share of the network's time has passed, whose head takes another share of it.

scaled = [{ time = 0.79, accuracy = 0.86 }]

is a smaller network for the same task (RT-mDL's, SenSys '21), which takes that share of the time:
one that begins alike, and whose head is all the rest of it. Of either kind, the least accurate is
first. Op latencies are made up of ops without heads; ``Heads`` puts the heads in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TypeVar

from pydantic import Field

from heimdall.lab.simulator.tables import Table
from heimdall.vocabulary.plans import Exit

WHOLE = "whole"  # the variant without an early exit
EXITS, SCALED = "exits", "scaled"  # the kinds of variants
T = TypeVar("T")


class ExitTable(Table):
    """One early exit."""

    at: float = Field(gt=0, lt=1, description="The share of the network's time before it.")
    head: float = Field(gt=0, lt=1, description="The share that its head takes.")
    accuracy: float = Field(ge=0, le=1, description="How often it is right.")


class ScaledTable(Table):
    """One smaller network for the same task."""

    time: float = Field(gt=0, lt=1, description="Its share of the whole one's time.")
    accuracy: float = Field(ge=0, le=1, description="How often it is right.")


def check_exits(exits: Sequence[ExitTable], accuracy: float | None, slices: int | None) -> None:
    """Raise ValueError for exits that a network cannot have."""
    if exits and accuracy is None:
        raise ValueError("exits: give the accuracy of the whole network, too")
    if any(one.at >= other.at for one, other in pairwise(exits)):
        raise ValueError("exits: each must be behind the one before")
    if slices is not None and len(exits) >= slices:
        raise ValueError(f"exits: {slices} slices have {slices - 1} places between them")


def check_scaled(scaled: Sequence[ScaledTable], accuracy: float | None, ops: int) -> None:
    """Raise ValueError for smaller networks that one of so many ops cannot have."""
    if scaled and (accuracy is None or ops < 2):
        raise ValueError("scaled: give the whole network's accuracy, too, and two ops or more")
    if any(one.time >= other.time for one, other in pairwise(scaled)):
        raise ValueError("scaled: each must take longer than the one before")


class Heads:
    """Where the heads of a network's variants are among its ops: one op each. ``kind``: EXITS,
    SCALED, or "" for the whole network alone."""

    def __init__(
        self,
        kind: str,
        exits: Sequence[ExitTable],
        scaled: Sequence[ScaledTable],
        accuracy: float | None,
        shares: Sequence[float],
        slices: int | None,
    ) -> None:
        self._ops = ops = len(shares)
        self._accuracy = accuracy
        self._slices = sorted({round(ops * n / slices) for n in range(1, slices)}) if slices else []
        self._accuracies: list[float] = []
        self._places: list[int] = []
        self.shares: list[float] = []  # what each head takes of the network's time
        if kind == EXITS:
            self._accuracies = [each.accuracy for each in exits]
            self._places = _nearest(exits, shares, self._slices or range(1, ops))
            self.shares = [each.head for each in exits]
        elif kind == SCALED:
            self._accuracies = [each.accuracy for each in scaled]
            self._places = [1] * len(scaled)
            self.shares = [max(each.time - shares[0], 0.0) for each in scaled]

    def inserted(self, values: Sequence[T], heads: Sequence[T]) -> list[T]:
        """Values of the ops, with those of the heads among them."""
        found: list[T] = []
        for (start, end), head in zip(pairwise((0, *self._places)), heads, strict=True):
            found += [*values[start:end], head]
        return [*found, *values[self._places[-1] :]] if self._places else list(values)

    @property
    def critical(self) -> tuple[int, ...]:
        """The ops, heads among them, before which one tensor is alive."""
        return tuple(op + sum(place <= op for place in self._places) for op in self._slices)

    @property
    def variants(self) -> tuple[Exit, ...]:
        """All variants of the network; none where its accuracy is not known."""
        if self._accuracy is None:
            return ()
        found: list[Exit] = []
        ran: list[tuple[int, int]] = []
        start = 0
        for index, (place, accuracy) in enumerate(zip(self._places, self._accuracies, strict=True)):
            head = place + index
            if head > start:  # other than of two heads in one place
                ran.append((start, head))
            name = f"exit{index + 1}"
            found.append(Exit(name, (*ran, (head, head + 1)), accuracy))
            start = head + 1
        rest = (start, self._ops + len(self._places))
        return (*found, Exit(WHOLE, (*ran, rest), self._accuracy))


def _nearest(
    exits: Sequence[ExitTable], shares: Sequence[float], allowed: Sequence[int]
) -> list[int]:
    """The op before which each head is: the nearest of those allowed, each its own."""
    before = [0.0, *accumulate(shares)]
    places: list[int] = []
    for index, each in enumerate(exits):
        least = allowed.index(places[-1]) + 1 if places else 0
        free = allowed[least : len(allowed) - len(exits) + index + 1]
        places.append(min(free, key=lambda op: abs(before[op] - each.at)))
    return places
