"""Measuring a network's ops on the GPU engine, the whole of it on a CPU core, and rendering.

Section 5.2 of the paper. Each figure is the least of a few medians: a median drops single
disturbances, the least of several drops a disturbed second. Latencies are what a caller waits
for, so that the cost of enqueueing and of waking up counts as it does at run time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, pairwise

from heimdall.analyzer.partition import Cut
from heimdall.engine.network import LoadedNetwork
from heimdall.graph.samples import sample_inputs
from heimdall.vocabulary.plans import StagePlan

BATCHES = 3
WARM_UPS = 2
PIECES = 16  # runs of consecutive ops that are timed as one
_AGREE = 1.1  # times the other: two medians that agree
BUDGET_S = 2.0  # for all runs of one network on one processor, about

Progress = Callable[[str, int, int], None]  # what is done, steps done, steps in all


@dataclass(frozen=True)
class Measurement:
    """Latencies of one network in ns.

    ``op_ns[i]`` is op i's share of a run of many ops (of a fallback op: on the CPU, copies
    included). A GPU chunk [i, j) takes ``sum(op_ns[i:j]) + chunk_cost_ns``; the whole network
    in as few chunks as its fallback ops allow takes ``whole_ns``. Copying the input in before
    the first op and the output out after the last is apart: ``write_ns`` and ``read_ns``.
    """

    op_ns: tuple[int, ...]
    chunk_cost_ns: int
    whole_ns: int
    write_ns: int = 0
    read_ns: int = 0


@dataclass(frozen=True)
class Conditions:
    """How to measure: ``reduce`` makes one figure of the passes of a batch, of which about
    ``budget_s`` are run for a processor. ``gpu_clock``, ``cpu_clock``: in ns; by the time that the
    process had, where a software GPU has one core and something else disturbs it."""

    reduce: Callable[[Iterable[float]], float] = statistics.median
    budget_s: float = BUDGET_S
    gpu_clock: Callable[[], int] = time.perf_counter_ns
    cpu_clock: Callable[[], int] = time.perf_counter_ns


QUIET = Conditions()  # nothing else runs


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


def measure_ops(
    network: LoadedNetwork, progress: Progress = no_progress, conditions: Conditions = QUIET
) -> Measurement:
    """Profile every op of a loaded network.

    Ops are timed by the engine's own events: within a run of the whole network where it has them
    there, else one by one, and without events by the host's clock. Those figures are then
    corrected by timing runs of consecutive ops and the whole network, because a run saves launches
    that lone ops pay for.
    """
    whole = _segments(network)
    pieces = _pieces(network, whole)
    lone = [(op, op + 1) for op in range(len(network.ops))]
    runner = _Runner(network, progress, conditions, conditions.gpu_clock)
    has_events = runner.warm_up(whole)
    runner.warm_up(pieces)
    if not has_events:
        runner.warm_up(lone)
    together, cut, alone = runner.measure([whole, pieces, [] if has_events else lone])
    # Beyond the events, so that ops that happen to run slower in one way do not count.
    cuts = len(pieces) - len(whole)
    cost_ns = max(0, round((cut.overhead_ns - together.overhead_ns) / cuts)) if cuts else 0
    op_ns = together.op_ns or alone.op_ns or _without(cost_ns, network, lone, alone.range_ns)
    op_ns = fit(op_ns, pieces, _without(cost_ns, network, pieces, cut.range_ns))
    op_ns = fit(op_ns, whole, _without(cost_ns, network, whole, together.range_ns))
    return Measurement(
        op_ns=tuple(op_ns),
        chunk_cost_ns=cost_ns,
        whole_ns=round(sum(together.range_ns)),
        write_ns=round(min(runner.write_ns)),
        read_ns=runner.measure_read(),
    )


def measure_whole(
    network: LoadedNetwork, progress: Progress = no_progress, conditions: Conditions = QUIET
) -> int:
    """The latency of a whole network in one call, in ns."""
    everything = [(0, len(network.ops))]
    runner = _Runner(network, progress, conditions, conditions.cpu_clock)
    runner.warm_up(everything)
    return round(sum(runner.measure([everything])[0].range_ns))


def gpu_passes(network: LoadedNetwork) -> Callable[[], int]:
    """Runs a whole network once, in as few chunks as its fallback ops allow, at each call, which
    returns the GPU time it took in ns. Warmed up."""
    segments = _segments(network)
    runner = _Runner(network)
    runner.warm_up(segments)
    on_gpu = [not network.ops[start].fallback for start, _ in segments]
    return lambda: sum(compress(runner.once(segments), on_gpu))


def measure_render(draw: Callable[[], None], runs: int = 9) -> int:
    """T_render in ns: what ``draw`` takes, which draws a frame and waits for the GPU."""
    for _ in range(WARM_UPS):
        draw()
    medians = []
    for _ in range(BATCHES):
        times = []
        for _ in range(max(1, runs // BATCHES)):
            began_ns = time.perf_counter_ns()
            draw()
            times.append(time.perf_counter_ns() - began_ns)
        medians.append(statistics.median(times))
        if len(medians) > 1 and max(medians) < _AGREE * min(medians):
            break  # an app's first frame waits for this
    return round(min(medians))


Range = tuple[int, int]


@dataclass(frozen=True)
class _Timing:
    """What a pass over a network, cut in one way, took: each range, each op by the engine's
    events (if it has them), and all ranges beyond those events."""

    range_ns: Sequence[float]
    op_ns: Sequence[float]
    overhead_ns: float

    @classmethod
    def each(cls, reduce: Callable[[Iterable[float]], float], passes: Sequence[_Timing]) -> _Timing:
        """Several passes as one, figure by figure."""
        if not passes:
            return cls([], [], 0.0)
        return cls(
            [reduce(values) for values in zip(*(one.range_ns for one in passes), strict=True)],
            [reduce(values) for values in zip(*(one.op_ns for one in passes), strict=True)],
            reduce([one.overhead_ns for one in passes]),
        )


class _Runner:
    """Runs a network cut in given ways, in turn, and keeps the least of the medians."""

    def __init__(
        self,
        network: LoadedNetwork,
        progress: Progress = no_progress,
        conditions: Conditions = QUIET,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._network, self._progress = network, progress
        self._reduce, self._budget_s = conditions.reduce, conditions.budget_s
        self._clock, self._by_wall = clock, clock is time.perf_counter_ns
        self._state, self._inputs = network.new_state(), sample_inputs(network.graph)
        self._pass_s = 0.0
        self.write_ns: list[float] = []

    def warm_up(self, ranges: Sequence[Range]) -> bool:
        """Run a few times; true if the engine times single ops."""
        for _ in range(WARM_UPS):
            began_s = time.perf_counter()
            self.once(ranges)
            self._pass_s = time.perf_counter() - began_s
        return self._events() is not None

    def measure(self, ways: Sequence[Sequence[Range]]) -> list[_Timing]:
        """Time each way of cutting, in turn: a disturbance hits all ways alike."""
        passes_s = BATCHES * max(1, sum(map(bool, ways))) * max(self._pass_s, 1e-4)
        runs = min(max(round(self._budget_s / passes_s), 3), 9)
        batches: list[list[_Timing]] = [[] for _ in ways]
        for batch in range(BATCHES):
            self._progress(f"profiling {self._network.graph.name}", batch, BATCHES)
            passes: list[list[_Timing]] = [[] for _ in ways]
            for _ in range(runs):
                for way, ranges in enumerate(ways):
                    if ranges:
                        times, events = self.once(ranges), self._events() or []
                        passes[way].append(_Timing(times, events, sum(times) - sum(events)))
            for way, samples in enumerate(passes):
                batches[way].append(_Timing.each(self._reduce, samples))
        self._progress(f"profiling {self._network.graph.name}", BATCHES, BATCHES)
        return [_Timing.each(min, samples) for samples in batches]

    def once(self, ranges: Sequence[Range]) -> list[int]:
        """The latency of each range, one after the other."""
        network, state, clock = self._network, self._state, self._clock
        began_ns = clock()
        network.write(state, self._inputs)
        self.write_ns.append(clock() - began_ns)
        times = []
        for start, end in ranges:
            run = network.run_fallback if network.ops[start].fallback else network.run
            began_ns = clock()
            reported_ns = run(state, start, end)
            waited_ns = clock() - began_ns
            # What the caller waited for; an engine that does not compute only reports.
            times.append(max(reported_ns, waited_ns) if self._by_wall else waited_ns)
        return times

    def measure_read(self) -> int:
        """What copying the output out takes, in ns."""
        times = []
        for _ in range(BATCHES):
            began_ns = time.perf_counter_ns()
            self._network.read(self._state)
            times.append(time.perf_counter_ns() - began_ns)
        return min(times)

    def _events(self) -> list[int] | None:
        times = self._network.op_times(self._state) if self._by_wall else None
        return times if times is not None and len(times) == len(self._network.ops) else None


def _segments(network: LoadedNetwork) -> list[Range]:
    """As few ranges as fallback ops allow."""
    marks = tuple(op.fallback for op in network.ops)
    return list(Cut(1, "whole").apply(StagePlan((0,) * len(marks), marks, 0, 0)).chunks)


def _pieces(network: LoadedNetwork, segments: Sequence[Range]) -> list[Range]:
    """The GPU's segments in runs of a few ops each; the longest is cut at least once."""
    on_gpu = [end - start for start, end in segments if not network.ops[start].fallback]
    size = -(-len(network.ops) // PIECES)
    size = max(1, min(size, max(on_gpu, default=1) // 2))
    pieces = []
    for start, end in segments:
        step = end - start if network.ops[start].fallback else size
        pieces += [(op, min(op + step, end)) for op in range(start, end, step)]
    return pieces


def fit(op_ns: Sequence[float], ranges: Sequence[Range], targets: Sequence[float]) -> list[int]:
    """Op times whose sums over ``ranges`` are ``targets``, to the nanosecond.

    What is missing are gaps between launches, which every op has alike; what is too much is
    taken from each in proportion.
    """
    fitted: list[int] = []
    for (start, end), target in zip(ranges, targets, strict=True):
        times = list(op_ns[start:end])
        missing = target - sum(times)
        if missing >= 0:
            times = [ns + missing / len(times) for ns in times]
        else:
            times = [ns * target / sum(times) for ns in times]
        edges = [0, *(round(edge) for edge in accumulate(times))]
        fitted += [after - before for before, after in pairwise(edges)]
    return fitted


def _without(
    cost_ns: int, network: LoadedNetwork, ranges: Sequence[Range], times: Sequence[float]
) -> list[float]:
    """Latencies of ranges less the cost of a chunk, which fallback ops do not have."""
    return [
        ns if network.ops[start].fallback else max(ns - cost_ns, 0)
        for (start, _), ns in zip(ranges, times, strict=True)
    ]
