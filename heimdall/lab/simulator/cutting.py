"""Networks of which a paper tells where to cut, and at what price: in a device's profile,

cuts = [{ at = 0.53, ms = 8.0 }, { at = 0.72, ms = 4.0 }]

are the op before which that share of the network's time has passed, and what it costs to begin
there; ``cut_ms`` is the price of any other op.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from pydantic import Field, NonNegativeFloat

from heimdall.lab.simulator.tables import Table


class CutTable(Table):
    """A place to cut."""

    at: float = Field(gt=0, lt=1, description="The share of the network's time before it.")
    ms: NonNegativeFloat = Field(description="What it costs to begin there.")


def check_cuts(cuts: Sequence[CutTable], ops: int) -> None:
    """Raise ValueError for cuts that a network of so many ops cannot have."""
    if any(one.at >= other.at for one, other in pairwise(cuts)):
        raise ValueError("cuts: each must be behind the one before")
    if len(cuts) >= ops:
        raise ValueError(f"cuts: {ops} ops have {ops - 1} places between them")


def placed(shares: Sequence[float], cuts: Sequence[CutTable]) -> list[float]:
    """Each op's share of a network's time, scaled so that every cut lies between two ops."""
    edges = [0, *_places(shares, cuts), len(shares)]
    times = [0.0, *(cut.at for cut in cuts), 1.0]
    scaled: list[float] = []
    for (start, end), (since, until) in zip(pairwise(edges), pairwise(times), strict=True):
        factor = (until - since) / sum(shares[start:end])
        scaled += [share * factor for share in shares[start:end]]
    return scaled


def prices_ms(
    shares: Sequence[float], cuts: Sequence[CutTable], cut_ms: float | Sequence[float]
) -> list[float]:
    """What it costs to begin at each op; ``shares``: before they were scaled."""
    found = list(cut_ms) if isinstance(cut_ms, Sequence) else [cut_ms] * len(shares)
    for op, cut in zip(_places(shares, cuts), cuts, strict=True):
        found[op] = cut.ms
    return found


def _places(shares: Sequence[float], cuts: Sequence[CutTable]) -> list[int]:
    """The op behind each cut: the nearest that leaves one for every block."""
    before = list(accumulate(shares))  # the end of each op
    places: list[int] = []
    for index, cut in enumerate(cuts):
        least, most = (places[-1] if places else 0) + 1, len(shares) - len(cuts) + index
        at = cut.at * before[-1]
        places.append(min(range(least, most + 1), key=lambda op: abs(before[op - 1] - at)))
    return places
