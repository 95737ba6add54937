"""The runtime's loop in virtual time, around a real Coordinator and its scheduler.

It mirrors ``heimdall.runtime``: one main thread that draws, coordinates and dispatches, a GPU
worker, a CPU worker and a pool. While the main thread draws, what workers report waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from heimdall.app import App
from heimdall.bench.systems import System
from heimdall.coordinator.coordinator import Coordinator
from heimdall.coordinator.events import (
    CPU,
    GPU,
    Action,
    ChunkFinished,
    DnnMoved,
    Drop,
    Event,
    FallbackFinished,
    Finish,
    FrameRendered,
    InferenceRequested,
    InputReady,
    Move,
    Prepare,
    RenderStarted,
    RunChunk,
    RunFallback,
)
from heimdall.pacing import SPIN_NS
from heimdall.parts import Parts
from heimdall.simulator.agenda import Agenda
from heimdall.simulator.cores import Threads
from heimdall.simulator.machine import Machine, SimulatedDnn
from heimdall.simulator.run import RENDER, SimulatedRun


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
        self.coordinator = Coordinator(
            [dnn.plan for dnn in dnns],
            scheduler=system.scheduler,
            frame_interval_ns=self.interval_ns,
            mode=system.mode,
            offload=system.offload,
            content=App.content,
        )
        self._inbox: Agenda[Event | _Decoded] = Agenda()
        self._pool = Threads(self.cores, machine.pool_threads)
        self._cpu = Threads(self.cores)
        self._gpu_free_ns = 0
        self._frame = 0
        self._requested_ns: dict[int, int] = {}  # by job
        self._before = self.coordinator.snapshot(0)
        self._sums = {  # of op times, and the cost of a chunk, by DNN and stage
            dnn.name: [
                ([0, *accumulate(stage.op_ns)], stage.chunk_cost_ns) for stage in dnn.plan.stages
            ]
            for dnn in dnns
        }
        self._parts = {dnn.name: [Parts(s.op_ns) for s in dnn.plan.stages] for dnn in dnns}
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prepare: self._prepare,
            RunChunk: self._run_chunk,
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

    # --- one frame ------------------------------------------------------------------------

    def _turn(self) -> None:
        start_ns = self.pacer.next_ns
        self._serve_until(start_ns - SPIN_NS)
        self.now_ns = start_ns
        self._receive(RenderStarted(self._frame))
        free_ns = max(start_ns, self._gpu_free_ns)
        self.now_ns = free_ns + int(self.machine.render_ns * self.gpu_noise())
        self.on_gpu(RENDER, free_ns, self.now_ns)
        self.drawn(start_ns, start_ns, self.now_ns)
        gap_end_ns = self.pacer.next_ns - self.machine.guard_ns
        self._receive(FrameRendered(self._frame, gap_end_ns, self.now_ns - start_ns))
        self._frame += 1
        for name, arrivals in self.arrivals.items():
            for _ in range(arrivals.take(self.now_ns)):
                self._receive(InferenceRequested(name))

    def _serve_until(self, deadline_ns: int) -> None:
        """Handle what workers report until the next frame starts."""
        inbox, coordinator = self._inbox, self.coordinator
        while True:
            wake_ns, message_ns = coordinator.next_wakeup_ns(), inbox.next_ns()
            if wake_ns is not None and (message_ns is None or wake_ns < message_ns):
                if wake_ns > deadline_ns:
                    return
                self.now_ns = max(self.now_ns, wake_ns + self._handoff_ns())
                self._carry_out(None, coordinator.wake(self.now_ns))
                continue
            if message_ns is None or message_ns > deadline_ns:
                return
            self.now_ns = max(self.now_ns, message_ns)
            _, message = inbox.pop()
            if isinstance(message, _Decoded):
                figures = self.figures.dnns[message.dnn]
                figures.end_to_end_ns.append(self.now_ns - message.requested_ns)
            else:
                self._receive(message)

    def _receive(self, event: Event) -> None:
        self._carry_out(event, self.coordinator.receive(event, self.now_ns))

    def _carry_out(self, event: Event | None, actions: list[Action]) -> None:
        self.step(self.now_ns, event, actions)
        for action in actions:
            self._handlers[type(action)](action)

    # --- actions: what they become, and when they are reported -------------------------------

    def _prepare(self, action: Prepare) -> None:
        dnn = self.dnns[action.dnn]
        if action.stage == 0:
            self._requested_ns[action.job] = self.now_ns
        work_ns = self.one_of(dnn.prepare_ns[action.stage])
        end_ns = self._pool.end_ns(self._handed_over(), work_ns)
        self.span("pool-0", f"{action.dnn} preprocess", self.now_ns, end_ns)
        difference = self.one_of(dnn.luminance_difference)
        self._report(end_ns, InputReady(action.job, self.tasks(dnn, action.stage), difference))

    def _run_chunk(self, action: RunChunk) -> None:
        begin_ns, dnn = self._handed_over(), self.dnns[action.dnn]
        if action.processor == GPU:
            free_ns = max(begin_ns, self._gpu_free_ns)
            end_op, work_ns = self._on_gpu(action, free_ns)
            end_ns = self._gpu_free_ns = free_ns + work_ns
            ops = f"{action.start_op}-{end_op}"
            self.on_gpu(action.dnn, free_ns, end_ns, ops=ops, reason=action.reason)
        else:
            cpu_ns = dnn.plan.stages[action.stage].cpu_ns * self.one_of(dnn.cpu_slowdown)
            end_ns = self._cpu.end_ns(begin_ns, int(cpu_ns))
            self.span(CPU, action.dnn, begin_ns, end_ns, reason=action.reason)
            end_op = action.end_op
        elapsed_ns = end_ns - begin_ns
        self._report(
            end_ns, ChunkFinished(action.job, action.processor, action.start_op, end_op, elapsed_ns)
        )

    def _on_gpu(self, action: RunChunk, start_ns: int) -> tuple[int, int]:
        """Where a chunk ends that the GPU starts then, and how long it takes."""
        dnn = self.dnns[action.dnn]
        sums, cost_ns = self._sums[action.dnn][action.stage]
        delay_ns, slowness = self.one_of(dnn.gpu_delay_ns), self.gpu_noise()

        def took_ns(end_op: int) -> int:
            work_ns = sums[end_op] - sums[action.start_op] + cost_ns
            return int((int(work_ns * dnn.gpu_slowdown) + delay_ns) * slowness)

        if not action.until_ns:
            return action.end_op, took_ns(action.end_op)
        now_ns = start_ns
        pace = self._parts[action.dnn][action.stage].pace(action, lambda: now_ns)
        for part, end_op in enumerate(pace.ends):
            if part >= 2:
                now_ns = start_ns + took_ns(pace.ends[part - 2])
                if not pace.go_on(part):
                    break
            reached = end_op
        return reached, took_ns(reached)

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
