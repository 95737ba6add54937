"""Processors in virtual time: the GPU that also draws, cores, and those known by their times."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise

from heimdall.errors import ConfigError
from heimdall.lab.simulator.cores import Threads
from heimdall.lab.simulator.jobs import FramesAndJobs, Jobs
from heimdall.runtime.execution.yield_points import YieldPoints
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.events import ChunkFinished, RunChunk, RunTogether
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU

Together = Callable[[RunTogether], int]


class _Alone:
    """One range at a time, which runs to its end."""

    def start_together(self, action: RunTogether) -> None:
        raise ConfigError(
            f"nothing is known of what runs together on {action.processor!r}: choose a device "
            "whose profile says how many work-groups it holds"
        )

    def end_soon(self) -> None:
        """It runs to its end."""


@dataclass(slots=True)
class _Flight:
    """A chunk on the GPU: handed over and started then, in parts that end at ``ends``, after
    ``took_ns`` each; it is to stop behind the part ``last``."""

    action: RunChunk
    handed_ns: int
    start_ns: int
    ends: Sequence[int]
    took_ns: Sequence[int]
    last: int

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.took_ns[self.last]


class _Sums:
    """Of the times of a network's ops: those on the GPU, with the cost of a chunk, and those of
    fallback ops, for which a chunk may hold it."""

    def __init__(self, stage: StagePlan) -> None:
        pairs = list(zip(stage.op_ns, stage.fallback, strict=True))
        self._cost_ns = stage.chunk_cost_ns
        starts = [a and not b for a, b in pairwise((False, *stage.fallback))]
        self._starts = list(accumulate(starts, initial=0))  # again, behind fallback ops
        self._on = list(accumulate((0 if off else ns for ns, off in pairs), initial=0))
        self._off = list(accumulate((ns if off else 0 for ns, off in pairs), initial=0))

    def gpu_ns(self, start: int, end: int) -> int:
        waits = 1 + self._starts[end] - self._starts[start + 1]
        return self._on[end] - self._on[start] + waits * self._cost_ns

    def stops(self, op: int) -> bool:
        """Whether a run of ops of one kind ends there, which is waited for anyway."""
        return self._off[op] != self._off[op - 1] or self._off[op] != self._off[op + 1]

    def off_ns(self, start: int, end: int) -> int:
        return self._off[end] - self._off[start]


class Gpu(_Alone):
    """Runs chunks in parts, between frames. ``free_ns``: when it has run what it was given."""

    def __init__(self, run: FramesAndJobs) -> None:
        self._run, self.free_ns = run, 0
        self._flight: _Flight | None = None
        plans = [each.plan for each in run.networks.values()]
        self._sums = {plan.name: [_Sums(each) for each in plan.stages] for plan in plans}
        self._parts = {
            plan.name: [
                YieldPoints(each.op_ns, each.chunk_cost_ns, each.fallback) for each in plan.stages
            ]
            for plan in plans
        }

    def start(self, action: RunChunk, begin_ns: int) -> None:
        """As soon as it is free."""
        run, dnn = self._run, self._run.networks[action.dnn]
        start_ns = max(begin_ns, self.free_ns)
        sums = self._sums[action.dnn][action.stage]
        delay_ns, slowness = run.one_of(dnn.gpu_delay_ns), run.gpu_noise()

        def took_ns(end_op: int) -> int:
            work_ns = sums.gpu_ns(action.start_op, end_op)
            on_ns = max(1, int((int(work_ns * dnn.gpu_slowdown) + delay_ns) * slowness))
            return on_ns + sums.off_ns(action.start_op, end_op)

        now_ns = start_ns
        pace = self._parts[action.dnn][action.stage].pace(action, lambda: now_ns)
        waits = accumulate((not sums.stops(end) for end in pace.ends[:-1]), initial=0)
        parts_ns = run.machine.part_cost_ns
        took_each = [
            took_ns(end) + wait * parts_ns for wait, end in zip(waits, pace.ends, strict=True)
        ]
        last = 0
        for part in range(1, len(pace.ends)):
            if part >= 2:
                now_ns = start_ns + took_each[part - 2]
                if not pace.go_on(part, part - 1):
                    break
            last = part
        self._land(_Flight(action, begin_ns, start_ns, pace.ends, took_each, last))

    def end_soon(self) -> None:
        """The chunk ends behind the part after the one that runs: both have been handed over."""
        flight, asked_ns = self._flight, self._run.handed_over()
        assert flight is not None
        running = bisect_left(flight.took_ns, asked_ns - flight.start_ns)
        if running + 1 < flight.last:
            flight.last = running + 1
            self._land(flight)

    def _land(self, flight: _Flight) -> None:
        self._flight, self.free_ns = flight, flight.end_ns
        self._run.report(flight.end_ns, partial(self._landed, flight, flight.last))

    def _landed(self, flight: _Flight, last: int) -> None:
        """Only the report of its present end counts."""
        if flight is not self._flight or last != flight.last:
            return
        self._flight = None
        action, end_op = flight.action, flight.ends[last]
        ops = f"{action.start_op}-{end_op}"
        self._run.on_gpu(action.dnn, flight.start_ns, flight.end_ns, ops=ops, reason=action.reason)
        off_ns = self._sums[action.dnn][action.stage].off_ns(action.start_op, end_op)
        elapsed_ns = flight.end_ns - flight.handed_ns - off_ns
        self._run.tell(
            ChunkFinished(action.job, GPU, action.start_op, end_op, elapsed_ns, off_ns or None)
        )


class Cpu(_Alone):
    """Runs whole networks, each on a core."""

    def __init__(self, run: FramesAndJobs, threads: Threads) -> None:
        self._run, self._threads = run, threads

    def start(self, action: RunChunk, begin_ns: int) -> None:
        run, dnn = self._run, self._run.networks[action.dnn]
        cpu_ns = dnn.plan.stages[action.stage].cpu_ns * run.one_of(dnn.cpu_slowdown)
        end_ns = self._threads.end_ns(begin_ns, int(cpu_ns))
        run.figures.ran(CPU, end_ns - begin_ns)
        run.span(CPU, action.dnn, begin_ns, end_ns, reason=action.reason)
        done = ChunkFinished(action.job, CPU, action.start_op, action.end_op, end_ns - begin_ns)
        run.report(end_ns, done)


class Profiled(_Alone):
    """Takes as long as profiled, times random noise; while it is away, what it was at is lost.
    ``busy_ns``: how long it has worked."""

    def __init__(
        self,
        run: Jobs,
        id: str,
        costs: Mapping[str, StageCosts],
        noise: Callable[[], float],
        together: Together | None = None,
    ) -> None:
        """``costs`` by model; ``together``: how long what runs together takes, in ns."""
        self.busy_ns = 0
        self._run, self._id, self._costs, self._noise = run, id, costs, noise
        self._together = together
        self._losses = 0

    def start(self, action: RunChunk, begin_ns: int) -> None:
        took_ns = self._costs[action.dnn].on_ns(self._id, action.start_op, action.end_op)
        assert took_ns is not None
        self._begin(((action.job, action.start_op, action.end_op),), took_ns)

    def start_together(self, action: RunTogether) -> None:
        if self._together is None:
            super().start_together(action)
        else:
            self._begin(action.parts, self._together(action))

    def lose(self) -> None:
        """It is away from now on."""
        self._losses += 1

    def _begin(self, parts: tuple[tuple[int, int, int], ...], took_ns: int) -> None:
        took_ns = max(1, int(took_ns * self._noise()))
        ended = partial(self._ended, parts, took_ns, self._losses)
        self._run.report(self._run.now_ns + took_ns, ended)

    def _ended(self, parts: tuple[tuple[int, int, int], ...], took_ns: int, losses: int) -> None:
        if losses != self._losses:
            return
        self.busy_ns += took_ns
        for job, start, end in parts:
            self._run.tell(ChunkFinished(job, self._id, start, end, took_ns))
