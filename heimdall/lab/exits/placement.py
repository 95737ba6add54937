"""Which exits a network keeps (Pantheon, MobiSys '24, section 3.2.2, Eqs. 3-6).

A network has exits 1 to m+1, the last of them its own, each behind the chunk of the same number.
Those are kept that minimise how long, on average, a chunk is from the nearest exit behind it
(Eq. 6), among all choices in which no exit is less accurate than the last one by more than alpha
(Eq. 3), all are on the Pareto front of delay and accuracy (Eq. 4), and chunks and heads fit a
budget of memory (Eq. 5). The original exit may go, and the chunks behind the last one kept with it.

By itself, Eq. 6 often keeps one early exit and throws the rest of the network away. So the most
accurate one on the front is kept as well, unless ``keep_best`` is off.

The optimum is exact. What exits up to one cost depends on the others only through the last of
them, so a dynamic programme over exits keeps, for each, the choices that no other one beats in both
memory and delay; networks that share a budget are put together in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from heimdall.errors import ConfigError

_ROUNDING = 1e-9  # 0.91 - 0.9 is more than 0.01
T = TypeVar("T")


@dataclass(frozen=True)
class Exit:
    """One place: the chunk that leads to it, and its head. ``delay``: of the variant that ends
    there, from the first op on (t_j), in any unit; ``accuracy``: a_j, 0..1; sizes in bytes."""

    delay: float
    accuracy: float
    chunk_bytes: int
    head_bytes: int
    chunk_delay: float


@dataclass(frozen=True)
class Placement:
    """A choice of exits of one network, by their places from 0; what it takes of memory (Eq. 5),
    and the mean delay from a chunk to the nearest exit (Eq. 6)."""

    kept: tuple[int, ...]
    bytes: int
    delay: float


def pareto(exits: Sequence[Exit]) -> list[int]:
    """PF of Eq. 4: the exits that no other one beats in accuracy without taking longer."""
    return [
        j
        for j, own in enumerate(exits)
        if all(
            own.delay < other.delay or own.accuracy >= other.accuracy
            for k, other in enumerate(exits)
            if k != j
        )
    ]


def place(
    networks: Sequence[Sequence[Exit]], alpha: float, budget: float, *, keep_best: bool = True
) -> list[Placement]:
    """The exits that each of several networks keeps, which share a budget in bytes.

    Raises ConfigError where no exit of a network is admissible, and where the budget is below the
    least that all of them take.
    """
    fronts = [_front(exits, alpha, number, keep_best) for number, exits in enumerate(networks)]
    together: list[tuple[float, float, tuple[Placement, ...]]] = [(0, 0.0, ())]
    for front in fronts:
        together = _best(
            (
                (size + each.bytes, delay + each.delay, (*chosen, each))
                for size, delay, chosen in together
                for each in front
            ),
            lambda found: (found[0], found[1]),
        )
    fitting = [found for found in together if found[0] <= budget]
    if not fitting:
        raise ConfigError(
            f"a budget of {budget / 1e6:.2f} MB is too small: the networks take "
            f"{together[0][0] / 1e6:.2f} MB at least"
        )
    return list(min(fitting, key=lambda found: (found[1], found[0]))[2])


def _front(exits: Sequence[Exit], alpha: float, number: int, keep_best: bool) -> list[Placement]:
    """The placements of one network that none beats in both memory and delay, whatever the budget;
    the smallest first."""
    if not exits:
        raise ConfigError(f"network {number} has no exit")
    if alpha < 0:
        raise ConfigError(f"alpha is the accuracy that may be lost, and not {alpha}")
    least = exits[-1].accuracy - alpha - _ROUNDING
    allowed = [j for j in pareto(exits) if exits[j].accuracy >= least]
    if not allowed:
        raise ConfigError(
            f"network {number}: no exit is admissible: those on the Pareto front are more than "
            f"{alpha:.1%} less accurate than the whole network"
        )
    best = max(allowed, key=lambda j: (exits[j].accuracy, -exits[j].delay))
    begins = [0.0, *accumulate(each.chunk_delay for each in exits)]  # of each chunk
    chunks = list(accumulate(each.chunk_bytes for each in exits))
    # By exit: of the choices that end there, (bytes of heads, sum of delays, the choice).
    ways: dict[int, list[tuple[int, float, tuple[int, ...]]]] = {}
    for j in allowed:
        found = []
        for before in (None, *(i for i in allowed if i < j)):
            skipped = -1 if before is None else before
            if keep_best and skipped < best < j:
                continue
            here = sum(exits[j].delay - begins[chunk] for chunk in range(skipped + 1, j + 1))
            for size, delay, kept in [(0, 0.0, ())] if before is None else ways[before]:
                found.append((size + exits[j].head_bytes, delay + here, (*kept, j)))
        ways[j] = _best(found, lambda way: (way[0], way[1]))
    return _best(
        (
            Placement(kept, chunks[j] + size, delay / (j + 1))
            for j, choices in ways.items()
            if not keep_best or j >= best
            for size, delay, kept in choices
        ),
        lambda placement: (placement.bytes, placement.delay),
    )


def _best(choices: Iterable[T], cost: Callable[[T], tuple[float, float]]) -> list[T]:
    """The choices that no other one beats in both costs, by the first of them."""
    kept: list[T] = []
    least = float("inf")
    for choice in sorted(choices, key=cost):
        if cost(choice)[1] < least:
            least = cost(choice)[1]
            kept.append(choice)
    return kept
