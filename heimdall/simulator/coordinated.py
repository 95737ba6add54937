"""The runtime's loop in virtual time, around a real Coordinator and its scheduler.

It mirrors ``heimdall.runtime.live``: one main thread that draws, coordinates and dispatches, a GPU
worker, a CPU worker and a pool. While the main thread draws, what workers report waits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from heimdall.analyzer.partition import Cut, strategy_of
from heimdall.analyzer.profile import recut
from heimdall.app import App
from heimdall.bench.systems import System
from heimdall.coordinator.coordinator import Coordinator
from heimdall.runtime.parts import Parts
from heimdall.simulator.agenda import Agenda
from heimdall.simulator.cores import Threads
from heimdall.simulator.machine import Machine, SimulatedDnn
from heimdall.simulator.run import RENDER, SimulatedRun
from heimdall.system.clock import SPIN_NS
from heimdall.vocabulary.events import (
    Action,
    ChunkFinished,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    RunChunk,
    RunFallback,
    SceneChanged,
    Yield,
)
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU


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

    def report(self) -> ChunkFinished:
        action, end_op = self.action, self.ends[self.last]
        elapsed_ns = self.end_ns - self.handed_ns
        return ChunkFinished(action.job, GPU, action.start_op, end_op, elapsed_ns)


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A result has reached the app."""

    dnn: str
    requested_ns: int


class CoordinatedRun(SimulatedRun):
    """Heimdall: ``system`` names scheduler, chunk mode and whether DNNs may move."""

    def __init__(
        self, dnns: Sequence[SimulatedDnn], machine: Machine, system: System, **options: Any
    ) -> None:
        super().__init__(dnns, machine, **options)
        assert system.scheduler is not None
        cut = Cut(self.interval_ns - machine.render_ns, strategy_of(system.mode))
        self.coordinator = Coordinator(
            [_cut(dnn.plan, cut) for dnn in dnns],
            scheduler=system.scheduler,
            frame_interval_ns=self.interval_ns,
            mode=system.mode,
            offload=system.offload,
            content=App.content,
            admission=system.admission,
            cpu_workers=machine.cpu_workers,
        )
        self._inbox: Agenda[Event | _Decoded] = Agenda()
        self._pool = Threads(self.cores, machine.pool_threads)
        self._cpu = Threads(self.cores, machine.cpu_workers)
        observe = None if self.tracer is None else self.tracer.step
        self._loop = self.frame_loop(self.coordinator, observe)
        self._gpu_free_ns = 0
        self._requested_ns: dict[int, int] = {}  # by job
        self._flight: _Flight | None = None
        self._looked_ns: dict[str, int] = {}  # when each DNN took its last picture
        self._pictured_ns: int | None = None
        self._before = self.coordinator.snapshot(0)
        self._sums = {  # of op times, and the cost of a chunk, by DNN and stage
            dnn.name: [
                ([0, *accumulate(stage.op_ns)], stage.chunk_cost_ns) for stage in dnn.plan.stages
            ]
            for dnn in dnns
        }
        self._parts = {
            dnn.name: [Parts(s.op_ns, s.chunk_cost_ns) for s in dnn.plan.stages] for dnn in dnns
        }
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._prepare,
            RunChunk: self._run_chunk,
            Yield: self._yield,
            RunFallback: self._run_fallback,
            Move: self._move,
            Finish: self._finish,
            Drop: self._drop,
        }

    def advance(self, until_ns: int) -> None:
        while self.now_ns < until_ns:
            self._turn()

    def warm(self) -> None:
        super().warm()
        self._before = self.coordinator.snapshot(self.now_ns)

    def gap_utilization(self) -> float:
        gap = self.coordinator.snapshot(self.now_ns).gap
        return gap.utilization_since(self._before.gap)

    def config(self) -> dict[str, Any]:
        return self.coordinator.config()

    @property
    def errors(self) -> list[str]:
        return self.coordinator.faults.messages

    def on_gpu(self, name: str, start_ns: int, end_ns: int, **details: object) -> None:
        super().on_gpu(name, start_ns, end_ns, **details)
        self._loop.worked(end_ns - start_ns)

    # --- one frame ------------------------------------------------------------------------

    def _turn(self) -> None:
        loop = self._loop
        self._serve_until(loop.start_ns - SPIN_NS)
        self.now_ns = start_ns = loop.start_ns
        self._tell_scenes()
        self._carry_out(loop.started(start_ns))
        free_ns = max(start_ns, self._gpu_free_ns)
        render_ns = self.one_of(self.machine.renders_ns or (self.machine.render_ns,))
        self.now_ns = free_ns + int(render_ns * self.gpu_noise() * self.render_noise())
        self.on_gpu(RENDER, free_ns, self.now_ns)
        loop.drawn(self.now_ns, self.now_ns - start_ns)
        self._serve_reported(self.now_ns)
        self._carry_out(loop.opened(self.now_ns))
        self._serve_until(loop.present_ns)
        self.now_ns = max(self.now_ns, loop.present_ns)
        self.figures.presented(loop.presented(self.now_ns))
        for name, arrivals in self.arrivals.items():
            for _ in range(arrivals.take(self.now_ns)):
                self._receive(InferenceRequested(name))

    def _tell_scenes(self) -> None:
        """How much has changed between the last picture and this one."""
        before_ns, self._pictured_ns = self._pictured_ns, self.now_ns
        if not self.coordinator.replaces:
            return
        for dnn in self.dnns.values():
            if dnn.watched is not None:
                change = dnn.watched.difference(before_ns, self.now_ns)
                self._receive(SceneChanged((dnn.name,), change))

    def _serve_until(self, deadline_ns: int) -> None:
        """Handle what workers report until the next frame starts."""
        inbox, loop = self._inbox, self._loop
        while True:
            wake_ns, message_ns = loop.next_wakeup_ns(), inbox.next_ns()
            if wake_ns is not None and (message_ns is None or wake_ns < message_ns):
                if wake_ns > deadline_ns:
                    return
                self.now_ns = max(self.now_ns, wake_ns + self._handoff_ns())
                self._carry_out(loop.woken(self.now_ns))
                continue
            if message_ns is None or message_ns > deadline_ns:
                return
            self._serve_reported(message_ns)

    def _serve_reported(self, until_ns: int) -> None:
        """Handle what has been reported by then."""
        while (message_ns := self._inbox.next_ns()) is not None and message_ns <= until_ns:
            self.now_ns = max(self.now_ns, message_ns)
            _, message = self._inbox.pop()
            if isinstance(message, _Decoded):
                figures = self.figures.dnns[message.dnn]
                figures.shown(message.requested_ns, self.now_ns)
            elif not self._is_void(message):
                self._receive(message)

    def _is_void(self, message: Event) -> bool:
        """Of a chunk on the GPU only the report of its present end counts."""
        if not isinstance(message, ChunkFinished) or message.processor != GPU:
            return False
        flight = self._flight
        if flight is None or message != flight.report():
            return True
        self._flight = None
        action, end_op = flight.action, message.end_op
        ops = f"{action.start_op}-{end_op}"
        self.on_gpu(action.dnn, flight.start_ns, flight.end_ns, ops=ops, reason=action.reason)
        return False

    def _receive(self, event: Event) -> None:
        self._carry_out(self._loop.received(event, self.now_ns))

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            self._handlers[type(action)](action)

    # --- actions: what they become, and when they are reported -------------------------------

    def _prepare(self, action: Prepare) -> None:
        dnn = self.dnns[action.dnn]
        self.figures.dnns[action.dnn].begun_anew += action.anew != ""
        if action.stage == 0:
            self._requested_ns[action.job] = self.now_ns
        work_ns = self.one_of(dnn.prepare_ns[action.stage])
        end_ns = self._pool.end_ns(self._handed_over(), work_ns)
        self.span("pool-0", f"{action.dnn} preprocess", self.now_ns, end_ns)
        difference = self._luminance_difference(dnn, action.stage)
        self._report(end_ns, InputReady(action.job, self.tasks(dnn, action.stage), difference))

    def _luminance_difference(self, dnn: SimulatedDnn, stage: int) -> float:
        if dnn.watched is None:
            return self.one_of(dnn.luminance_difference)
        if stage > 0:  # the same picture
            return 0.0
        before_ns, self._looked_ns[dnn.name] = self._looked_ns.get(dnn.name), self.now_ns
        return dnn.watched.difference(before_ns, self.now_ns)

    def _run_chunk(self, action: RunChunk) -> None:
        begin_ns, dnn = self._handed_over(), self.dnns[action.dnn]
        if action.processor == GPU:
            self._flight = self._take_off(action, begin_ns)
            self._land(self._flight)
            return
        cpu_ns = dnn.plan.stages[action.stage].cpu_ns * self.one_of(dnn.cpu_slowdown)
        end_ns = self._cpu.end_ns(begin_ns, int(cpu_ns))
        self.figures.ran(CPU, end_ns - begin_ns)
        self.span(CPU, action.dnn, begin_ns, end_ns, reason=action.reason)
        done = ChunkFinished(action.job, CPU, action.start_op, action.end_op, end_ns - begin_ns)
        self._report(end_ns, done)

    def _take_off(self, action: RunChunk, handed_ns: int) -> _Flight:
        """The GPU starts a chunk that it was handed then, as soon as it is free."""
        dnn, start_ns = self.dnns[action.dnn], max(handed_ns, self._gpu_free_ns)
        sums, cost_ns = self._sums[action.dnn][action.stage]
        delay_ns, slowness = self.one_of(dnn.gpu_delay_ns), self.gpu_noise()

        def took_ns(end_op: int) -> int:
            work_ns = sums[end_op] - sums[action.start_op] + cost_ns
            return max(1, int((int(work_ns * dnn.gpu_slowdown) + delay_ns) * slowness))

        now_ns = start_ns
        pace = self._parts[action.dnn][action.stage].pace(action, lambda: now_ns)
        parts_ns = self.machine.part_cost_ns
        took_each = [took_ns(end) + part * parts_ns for part, end in enumerate(pace.ends)]
        last = 0
        for part in range(1, len(pace.ends)):
            if part >= 2:
                now_ns = start_ns + took_each[part - 2]
                if not pace.go_on(part):
                    break
            last = part
        return _Flight(action, handed_ns, start_ns, pace.ends, took_each, last)

    def _land(self, flight: _Flight) -> None:
        self._gpu_free_ns = flight.end_ns
        self._report(flight.end_ns, flight.report())

    def _yield(self, action: Yield) -> None:
        """The chunk ends behind the part after the one that runs: both have been handed over."""
        flight, asked_ns = self._flight, self._handed_over()
        assert flight is not None
        passed_ns = asked_ns - flight.start_ns
        running = bisect_left(flight.took_ns, passed_ns)
        if running + 1 < flight.last:
            flight.last = running + 1
            self._land(flight)  # what was reported for later is void: see _serve_reported

    def _run_fallback(self, action: RunFallback) -> None:
        begin_ns = self._handed_over()
        op_ns = self.dnns[action.dnn].plan.stages[action.stage].op_ns
        end_ns = self._pool.end_ns(begin_ns, sum(op_ns[action.start_op : action.end_op]))
        self.span("pool-0", f"{action.dnn} fallback", begin_ns, end_ns)
        self._report(end_ns, FallbackFinished(action.job, action.end_op, end_ns - begin_ns))

    def _move(self, action: Move) -> None:
        end_ns = self._cpu.end_ns(self._handed_over(), self.machine.move_ns)
        name = f"{action.dnn} moves to {action.processor}"
        self.span(CPU, name, self.now_ns, end_ns, reason=action.reason)
        self._report(end_ns, DnnMoved(action.dnn, action.processor))

    def _finish(self, action: Finish) -> None:
        self.figures.dnns[action.dnn].finished(action)
        requested_ns = self._requested_ns.pop(action.job)
        end_ns = self._pool.end_ns(self._handed_over(), self.dnns[action.dnn].decode_ns)
        self.span("pool-0", f"{action.dnn} decode", self.now_ns, end_ns)
        self._report(end_ns, _Decoded(action.dnn, requested_ns))

    def _drop(self, action: Drop) -> None:
        self._requested_ns.pop(action.job, None)
        self.figures.dnns[action.dnn].dropped += 1

    def _handed_over(self) -> int:
        """When a worker that is given something now has it."""
        return self.now_ns + self._handoff_ns()

    def _handoff_ns(self) -> int:
        return self.one_of(self.machine.handoff_ns)

    def _report(self, at_ns: int, message: Event | _Decoded) -> None:
        self._inbox.add(at_ns + self._handoff_ns(), message)


def _cut(plan: DnnPlan, cut: Cut) -> DnnPlan:
    """The same DNN, cut another way."""
    return replace(plan, stages=tuple(recut(stage, cut) for stage in plan.stages))
