"""Sequences of subgraphs (Band, MobiSys '22, sections 4.2 and 4.3): which way through a network
ends first, given how long each processor is still busy.

What is left of a network is a row of units; a subgraph is one or several neighbouring units on one
processor. Subgraphs of one job run one after the other, each as soon as the one before has ended
and its processor is free. Ending a part of the way sooner never ends the rest later, so the best
way to each unit's end is made of best ways to earlier ones: O(p n^2) for n units and p processors
instead of all sequences (4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from heimdall.schedulers.base import Assignment, Choice, FreeRanges, JobView, View
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.ranges import Ranges
from heimdall.vocabulary.processors import GPU, PROCESSORS, REMOTE


class SubgraphPlan(NamedTuple):
    """The sequence of subgraphs that ends first: when, and its first subgraph, which is up to
    ``end_op`` on ``processor`` and takes ``first_ns``. ``used``: the processors of all of it."""

    finish_ns: int
    processor: str
    end_op: int
    first_ns: int
    used: frozenset[str]


# What is learnt counts once it differs so much from what is reckoned with, less than times vary
# from one run to the next: to reckon anew costs about as much as a decision.
_DRIFT = 0.05

_NETWORKS = 256  # so many are remembered: models come and go

# Of each unit, the subgraphs that begin with it: (the unit behind its last one, what it takes).
_Rows = list[list[tuple[int, int]]]


class _On:
    """A network's subgraphs on one processor: as profiled, and as expected."""

    __slots__ = ("_ranges", "_ratio", "alone", "profiled", "rows")

    def __init__(
        self, costs: StageCosts, processor: str, ranges: Ranges, bounds: Sequence[int]
    ) -> None:
        self._ranges, last = ranges, len(bounds) - 1
        self.profiled: _Rows = [[] for _ in range(last)]
        for unit in range(last):
            start = bounds[unit]
            if processor == GPU and costs.fallback[start]:  # in the pool, for any job
                self.profiled[unit].append((unit + 1, costs.fallback_ns(start, bounds[unit + 1])))
                continue
            for end in range(unit + 1, last + 1):
                ns = ranges.profiled_ns(start, bounds[end])
                if ns is not None:
                    self.profiled[unit].append((end, ns))
        self.rows, self._ratio = self.profiled, 1.0
        self.alone = frozenset({processor})

    def follow(self, drift: float) -> bool:
        """Reckon with what was learnt, if it differs by more than ``drift``."""
        ratio = self._ranges.ratio
        if abs(ratio / self._ratio - 1) <= drift:
            return False
        self._ratio = ratio
        self.rows = [[(end, int(ns * ratio)) for end, ns in row] for row in self.profiled]
        return True


class Sequences:
    """All sequences of subgraphs from op ``start`` of a network to its end.

    Of each unit it is known how long the best sequence from there on takes with nothing else there:
    the dynamic programme, backwards, for all decisions until enough is learnt. With processors that
    are busy it takes longer, never less. So a decision looks first at the units by way of which the
    end may be nearest (A*), and at few of them.

    ``left_ns``: by unit, how long the shortest way from it on takes with nothing else there, by
    what had been learnt when ``costs.learnt`` was ``learnt``.
    """

    __slots__ = ("_costs", "_last", "_last_unit", "_on", "bounds", "learnt", "left_ns")

    def __init__(self, costs: StageCosts, start: int = 0) -> None:
        self._costs, self.learnt = costs, costs.learnt
        self.bounds = [start]
        while self.bounds[-1] < costs.ops:
            self.bounds.append(costs.block_end(self.bounds[-1]))
        self._last_unit = len(self.bounds) - 2
        names = [name for name, _ in costs.plan.on] or (*PROCESSORS, REMOTE)
        there = {name: ranges for name in names if (ranges := costs.on(name)) is not None}
        self._on = {name: _On(costs, name, each, self.bounds) for name, each in there.items()}
        for each in self._on.values():
            each.follow(0)
        self._reckon()

    def shortest(self, unit: int, free_ns: Mapping[str, int], now_ns: int) -> SubgraphPlan | None:
        """The way from a unit on that ends first if it begins now, on processors that are free at
        ``free_ns``; None where they do not support all that is left."""
        if self.learnt != self._costs.learnt:
            self.follow()
        if unit < self._last_unit:
            on = self._on
            lanes = [(name, free, on[name].rows) for name, free in free_ns.items() if name in on]
            return self._search(unit, lanes, self.left_ns, now_ns)
        soonest, best = 0, None  # one unit is left, as in most searches
        for last in self._last:
            processor, ns, _ = last
            if processor in free_ns:
                free = free_ns[processor]
                end_ns = ns + (free if free > now_ns else now_ns)
                if best is None or end_ns < soonest:
                    soonest, best = end_ns, last
        if best is None:
            return None
        processor, ns, alone = best
        return SubgraphPlan(soonest, processor, self.bounds[-1], ns, alone)

    def as_profiled(
        self, unit: int, processors: Iterable[str] | None = None
    ) -> SubgraphPlan | None:
        """The shortest way on these processors (None: on all), as profiled and as if nothing else
        were there: its times count from 0."""
        names = (
            self._on if processors is None else [each for each in processors if each in self._on]
        )
        lanes = [(name, 0, self._on[name].profiled) for name in names]
        left_ns = self._alone([rows for _, _, rows in lanes])
        return None if left_ns[unit] == inf else self._search(unit, lanes, left_ns, 0)

    def follow(self) -> None:
        """Reckon with what has been learnt."""
        self.learnt, changed = self._costs.learnt, False
        for each in self._on.values():
            changed |= each.follow(_DRIFT)
        if changed:
            self._reckon()

    def _reckon(self) -> None:
        on, unit = self._on.items(), self._last_unit
        self.left_ns = self._alone([each.rows for _, each in on])
        self._last = [
            (name, each.rows[unit][0][1], each.alone) for name, each in on if each.rows[unit]
        ]

    def _alone(self, on: Sequence[_Rows]) -> list[float]:
        """For each unit, how long the shortest way from it on takes if no processor is busy."""
        last = len(self.bounds) - 1
        left_ns: list[float] = [inf] * last + [0]
        for unit in range(last - 1, -1, -1):
            ends = [ns + left_ns[end] for rows in on for end, ns in rows[unit]]
            left_ns[unit] = min(ends, default=inf)
        return left_ns

    def _search(
        self,
        start: int,
        lanes: Sequence[tuple[str, int, _Rows]],
        left_ns: Sequence[float],
        now_ns: int,
    ) -> SubgraphPlan | None:
        """``left_ns``: from each unit on it takes so long or longer."""
        last = len(self.bounds) - 1
        reached: list[float] = [inf] * (last + 1)  # when the job can be at a unit
        before: list[tuple[int, str, int]] = [(start, "", 0)] * (last + 1)
        ends: dict[int, float] = {}  # the soonest end by way of a unit to look at
        reached[start], unit, soonest = now_ns, start, inf
        if len(lanes) == len(self._on):  # to wait for all of them is a way
            latest_ns = max([free for _, free, _ in lanes])
            soonest = max(now_ns, latest_ns) + left_ns[start] + 1
        while unit != last:
            at_ns, rest_ns = reached[unit], left_ns[unit]
            for processor, free, rows in lanes:
                begin = at_ns if at_ns > free else free
                if begin + rest_ns >= soonest:
                    continue
                for end, ns in rows[unit]:
                    there_ns = begin + ns
                    if there_ns < reached[end] and there_ns + left_ns[end] < soonest:
                        reached[end] = there_ns
                        before[end] = unit, processor, ns
                        ends[end] = there_ns + left_ns[end]
                        if end == last:
                            soonest = there_ns
            if not ends:
                return None
            unit = min(ends, key=ends.__getitem__)
            del ends[unit]
        used = set()
        while unit != start:
            end = unit
            unit, processor, first_ns = before[end]
            used.add(processor)
        finish_ns = int(reached[last])
        return SubgraphPlan(finish_ns, processor, self.bounds[end], first_ns, frozenset(used))


class Remainder:
    """What is left of a network: from a unit on."""

    __slots__ = ("sequences", "unit")

    def __init__(self, sequences: Sequences, unit: int) -> None:
        self.sequences, self.unit = sequences, unit


# A decision asks for the rests and ways of all jobs that wait. So both are dictionaries that make
# what they lack: what they have costs a look-up, and no call.


class _Rests(dict[int, Remainder]):
    """By op, what is left of one network from there on."""

    def __init__(self, costs: StageCosts) -> None:
        sequences = Sequences(costs)
        super().__init__(
            (op, Remainder(sequences, at)) for at, op in enumerate(sequences.bounds[:-1])
        )
        self._costs = costs

    def __missing__(self, op: int) -> Remainder:  # in a unit, of which a gap had room for a part
        self[op] = rest = Remainder(Sequences(self._costs, op), 0)
        return rest


class _Networks(dict["StageCosts", _Rests]):
    """By network, as the coordinator knows it: one that is built anew is another one."""

    def __missing__(self, costs: StageCosts) -> _Rests:
        if len(self) >= _NETWORKS:
            self.clear()
        self[costs] = rests = _Rests(costs)
        return rests


class _Ways(dict[Remainder, "SubgraphPlan | None"]):
    """The way of each rest that ends first; jobs of one model that are equally far have the
    same."""

    def __init__(self, free_ns: Mapping[str, int], now_ns: int) -> None:
        self._free_ns, self._now_ns = free_ns, now_ns

    def __missing__(self, rest: Remainder) -> SubgraphPlan | None:
        self[rest] = way = rest.sequences.shortest(rest.unit, self._free_ns, self._now_ns)
        return way


class PendingDecision:
    """A decision in the making: which lanes are left, when processors are expected to be free, and
    what has been chosen.

    ``way``: of a rest, the way that ends first, by what is chosen so far; None where there is none.
    """

    __slots__ = ("_ways", "chosen", "free_ns", "idle", "way")

    def __init__(self, view: View, now_ns: int) -> None:
        self.idle = list(view.idle)
        self.free_ns = dict(view.free_ns)
        self.chosen: list[Assignment] = []
        self._ways = _Ways(self.free_ns, now_ns)
        self.way: Callable[[Remainder], SubgraphPlan | None] = self._ways.__getitem__

    def run(self, job: JobView, way: SubgraphPlan) -> None:
        """Let the first subgraph of a job's way run now."""
        self.chosen.append(Assignment(job.id, way.end_op, way.processor))
        self.idle.remove(way.processor)
        if way.processor not in self.idle:
            self._busy(way)

    def reserve(self, way: SubgraphPlan) -> None:
        """Others are to reckon with it: its processor is busy now, and has it to run next."""
        self._busy(way)

    def _busy(self, way: SubgraphPlan) -> None:
        taken = way.processor
        self.free_ns[taken] += way.first_ns
        # Other ways can only have become longer, so a best one that does without it still is one.
        ways = self._ways
        for rest in [rest for rest, way in ways.items() if way and taken in way.used]:
            del ways[rest]

    def choice(self, reason: str) -> Choice | None:
        return Choice(tuple(self.chosen), reason) if self.chosen else None


class SubgraphPolicy(FreeRanges):
    """What Band's policies share: jobs go on where they end first, what is left of one is placed
    anew, and one that cannot be in time even alone is dropped (in Band's code; its paper does not
    say what becomes of it)."""

    requeues = True
    partition = "units"

    def __init__(self) -> None:
        self._networks = _Networks()

    def rest(self, job: JobView) -> Remainder:
        """What is left of a job's network."""
        return self._networks[job.costs[job.stage]][job.next_op]

    def rests(self, jobs: Iterable[JobView]) -> list[Remainder]:
        """What is left of each job."""
        networks = self._networks
        return [networks[job.costs[job.stage]][job.next_op] for job in jobs]

    def place(self, job: JobView, queue: Sequence[JobView], now_ns: int) -> int:
        return len(queue)

    def hopeless(self, job: JobView, now_ns: int) -> str:
        costs = job.costs[job.stage]
        rest = self._networks[costs][job.next_op]
        sequences = rest.sequences
        if sequences.learnt != costs.learnt:
            sequences.follow()
        late = now_ns + sequences.left_ns[rest.unit] > job.deadline_ns
        return "cannot be in time any more" if late else ""
