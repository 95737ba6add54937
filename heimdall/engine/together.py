"""Ops of several jobs, or independent branches of one, that run at the same time (TOP, section IV):
what an engine is asked for, and whether that can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heimdall.engine.checks import check_range
from heimdall.engine.network import LoadedNetwork, State


@dataclass(frozen=True)
class GroupMember:
    """Ops of one job that run beside those of other parts: half-open ``ranges``, in order."""

    network: LoadedNetwork
    state: State
    ranges: tuple[tuple[int, int], ...]

    @property
    def ops(self) -> list[int]:
        return [op for start, end in self.ranges for op in range(start, end)]

    @property
    def rises(self) -> bool:
        """Whether the ranges hold ops, each after those before it."""
        last = 0
        for start, end in self.ranges:
            if not last <= start < end:
                return False
            last = end
        return bool(self.ranges)


def whole_jobs(
    runs: Callable[[LoadedNetwork], bool], stages: Sequence[Sequence[GroupMember]]
) -> list[GroupMember]:
    """What all parts have of each job, as one range; ``runs``: the engine's own.

    Raises ValueError as ``Engine.run_together`` does.
    """
    jobs: dict[int, list[tuple[int, GroupMember]]] = {}
    for number, stage in enumerate(stages):
        for part in stage:
            if not runs(part.network):
                raise ValueError(f"{part.network.graph.name} is loaded by another engine")
            jobs.setdefault(id(part.state), []).append((number, part))
    return [_whole(found) for found in jobs.values()]


def _whole(found: Sequence[tuple[int, GroupMember]]) -> GroupMember:
    network, state = found[0][1].network, found[0][1].state
    name = network.graph.name
    places: dict[int, tuple[int, GroupMember]] = {}  # the stage of each op, and its part
    for stage, part in found:
        if part.network is not network:
            raise ValueError(f"one state for {name} and {part.network.graph.name}")
        if not part.rises:
            raise ValueError(f"ranges {part.ranges} of {name} hold no ops, or not in order")
        ops = part.ops
        if again := places.keys() & ops:
            raise ValueError(f"op {min(again)} of {name} is in two parts")
        places |= dict.fromkeys(ops, (stage, part))
    start, end = min(places), max(places) + 1
    if len(places) < end - start:
        missing = next(op for op in range(start, end) if op not in places)
        raise ValueError(f"op {missing} of {name} is missing: others after it would run")
    check_range(network, state, start, end)
    whole = GroupMember(network, state, ((start, end),))
    if len(found) == 1:
        return whole
    needs = network.needs
    for op, (stage, part) in places.items():
        for other in needs[op]:
            if other < start or places[other][1] is part:
                continue
            if places[other][0] >= stage:
                raise ValueError(
                    f"op {op} of {name} needs op {other}, or its memory, which is in another part "
                    "of its stage, or a later one (branches that are planned to run together: "
                    "networks from Engine.for_branches)"
                )
    return whole


def deal(costs: Sequence[float], lanes: int) -> list[list[int]]:
    """Which of some parts each lane runs: the longest first, to the lane that is done first."""
    dealt: list[list[int]] = [[] for _ in range(lanes)]
    loads = [0.0] * lanes
    for part in sorted(range(len(costs)), key=lambda part: -costs[part]):
        lane = loads.index(min(loads))
        loads[lane] += costs[part]
        dealt[lane].append(part)
    return [lane for lane in dealt if lane]
