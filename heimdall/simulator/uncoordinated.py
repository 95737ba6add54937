"""The baselines in virtual time: every DNN in a thread of its own, and nobody decides.

A thread is a generator: it yields the time at which it wants to go on, or the ops that it waits
for on the GPU, and is sent the time that it has become.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import groupby
from typing import Any

from heimdall.bench.systems import Kind, System
from heimdall.coordinator.bystander import Bystander
from heimdall.simulator.agenda import Agenda
from heimdall.simulator.machine import Machine, SimulatedDnn
from heimdall.simulator.run import RENDER, SimulatedRun
from heimdall.simulator.turns import TurnTakingGpu
from heimdall.vocabulary.events import Finish
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU, GPU

Thread = Generator["int | Sequence[int]", int, None]


class UncoordinatedRun(SimulatedRun):
    """``multithread``, ``multithread-onnxruntime`` or ``fixed-N``."""

    def __init__(
        self, dnns: Sequence[SimulatedDnn], machine: Machine, system: System, **options: Any
    ) -> None:
        super().__init__(dnns, machine, **options)
        self._on_gpu = system.kind is not Kind.MULTITHREAD_ONNXRUNTIME
        self._agenda: Agenda[Callable[[int], None]] = Agenda()
        self._gpu = TurnTakingGpu(
            self._agenda,
            batch_ns=machine.batch_ns,
            switch_ns=machine.switch_ns,
            noise=self.gpu_noise,
            ran=self.on_gpu,
        )
        self._pieces = {
            dnn.name: [_pieces(stage, system.ops) for stage in dnn.plan.stages] for dnn in dnns
        }
        self._last_frame = False
        self._until_ns = 0
        self._frame_ended = False
        self._go_on(RENDER, self._rendering(), None)
        for dnn in dnns:
            self._go_on(dnn.name, self._inferring(dnn), None)

    def advance(self, until_ns: int) -> None:
        self._until_ns, self._frame_ended = until_ns, False
        while not self._frame_ended:
            self.now_ns, call = self._agenda.pop()
            call(self.now_ns)

    # --- threads --------------------------------------------------------------------------

    def _go_on(self, name: str, thread: Thread, now_ns: int | None) -> None:
        """Run a thread until it waits again."""
        wanted = next(thread) if now_ns is None else thread.send(now_ns)

        def resume(at_ns: int) -> None:
            self._go_on(name, thread, at_ns)

        if isinstance(wanted, int):
            self._agenda.add(max(wanted, self.now_ns), resume)
        else:
            self._gpu.submit(name, wanted, self.now_ns, resume)

    def _rendering(self) -> Thread:
        """The main thread: a frame at every deadline that it can still keep."""
        loop = self.frame_loop(Bystander())
        while True:
            began_ns = yield loop.start_ns
            loop.started(began_ns)
            completed_ns = yield (int(self.machine.render_ns * self.render_noise()),)
            loop.drawn(completed_ns, completed_ns - began_ns)
            loop.opened(completed_ns)
            presented_ns = yield loop.present_ns
            self.figures.presented(loop.presented(presented_ns))
            self._frame_ended = presented_ns >= self._until_ns

    def _inferring(self, dnn: SimulatedDnn) -> Thread:
        """A DNN: preprocess, infer, postprocess, and again."""
        figures, plan = self.figures.dnns[dnn.name], dnn.plan
        next_ns = 0
        while True:
            requested_ns = now_ns = yield self._due_ns(dnn, next_ns)
            next_ns = requested_ns + plan.min_interval_ns
            enqueued_ns, chunks = 0, 0
            for stage in range(len(plan.stages)):
                now_ns = yield self.cores.end_ns(now_ns, self.one_of(dnn.prepare_ns[stage]))
                enqueued_ns = enqueued_ns or now_ns
                for _ in range(self.tasks(dnn, stage)):
                    chunks += len(self._pieces[dnn.name][stage])
                    now_ns = yield from self._infer(dnn, stage, now_ns)
            latency_ns = now_ns - enqueued_ns
            missed = latency_ns > plan.constraint_ns
            processor = GPU if self._on_gpu else CPU
            figures.finished(Finish(0, dnn.name, processor, latency_ns, missed, chunks))
            now_ns = yield self.cores.end_ns(now_ns, dnn.decode_ns)
            figures.end_to_end_ns.append(now_ns - requested_ns)

    def _due_ns(self, dnn: SimulatedDnn, earliest_ns: int) -> int:
        """When the next inference may begin. Of several events, only the newest is kept."""
        now_ns = max(self.now_ns, earliest_ns)
        if (arrivals := self.arrivals.get(dnn.name)) is None:
            return now_ns
        if not arrivals.take(now_ns):
            now_ns = arrivals.next_ns
            arrivals.take(now_ns)
        return now_ns

    def _infer(
        self, dnn: SimulatedDnn, stage: int, now_ns: int
    ) -> Generator[int | Sequence[int], int, int]:
        """One task of a stage; returns when it has ended."""
        plan = dnn.plan.stages[stage]
        if not self._on_gpu:
            return (yield self.cores.end_ns(now_ns, plan.cpu_ns))
        for ops, fallback in self._pieces[dnn.name][stage]:
            if fallback:
                now_ns = yield self.cores.end_ns(now_ns, sum(ops))
            else:
                yield now_ns + len(ops) * self.machine.launch_ns
                now_ns = yield ops
                now_ns = yield now_ns + self.machine.chunk_cost_ns  # the wait for the GPU
        return now_ns


def _pieces(stage: StagePlan, most: int | None) -> list[tuple[tuple[int, ...], bool]]:
    """(op times, whether on the CPU) between two waits: runs of one kind, on the GPU of at most
    ``most`` ops."""
    pieces = []
    for fallback, run in groupby(zip(stage.op_ns, stage.fallback, strict=True), lambda op: op[1]):
        ops = tuple(ns for ns, _ in run)
        step = len(ops) if fallback or most is None else most
        pieces += [(ops[i : i + step], fallback) for i in range(0, len(ops), step)]
    return pieces
