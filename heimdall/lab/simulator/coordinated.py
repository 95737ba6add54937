"""The runtime's loop in virtual time, around a real Coordinator and its scheduler.

It mirrors ``runtime.loop.live``: one main thread that draws, coordinates and dispatches, a GPU
worker, a CPU worker and a pool. While the main thread draws, what workers report waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heimdall.analyzer.partition import Cut, strategy_of
from heimdall.app import App
from heimdall.coordinator.coordinator import Coordinator
from heimdall.lab.bench.systems import System
from heimdall.lab.simulator.clients import Follow, Frames, Requests, SimulatedModel
from heimdall.lab.simulator.cores import Threads
from heimdall.lab.simulator.jobs import FramesAndJobs, Jobs
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.processors import Cpu, Gpu
from heimdall.lab.simulator.run import RENDER, SimulatedRun
from heimdall.system.clock import SPIN_NS
from heimdall.vocabulary.events import Event, FrameArrived, InferenceRequested, SceneChanged
from heimdall.vocabulary.plans import DnnPlan
from heimdall.vocabulary.processors import CPU, GPU


class CoordinatedRun(FramesAndJobs):
    """Heimdall: ``system`` names scheduler, chunk mode and whether DNNs may move. ``requests``:
    those for its models, from when figures count."""

    def __init__(
        self,
        dnns: Sequence[SimulatedDnn],
        machine: Machine,
        system: System,
        *,
        models: Sequence[SimulatedModel] = (),
        follow: Follow | None = None,
        **options: Any,
    ) -> None:
        """``models`` are asked for beside the frames; see ``Requests``."""
        SimulatedRun.__init__(self, dnns, machine, **options)
        asked = [each.network for each in models]
        self.networks = {each.name: each for each in (*dnns, *asked)}
        plans = [each.plan for each in self.networks.values()]
        cpu = Threads(self.cores, machine.cpu_workers)
        Jobs.__init__(
            self,
            plans,
            pool=Threads(self.cores, machine.pool_threads),
            movers=cpu,
            move_ns=machine.move_ns,
            handoff_ns=lambda: self.one_of(machine.handoff_ns),
        )
        assert system.scheduler is not None
        cut = Cut(self.interval_ns - machine.render_ns, strategy_of(system.mode))
        self.coordinator = Coordinator(
            [_cut(plan, cut) for plan in plans],
            scheduler=system.scheduler,
            frame_interval_ns=self.interval_ns,
            mode=system.mode,
            offload=system.offload,
            content=App.content,
            admission=system.admission,
            cpu_workers=machine.cpu_workers,
            repeats=False,
        )
        self._gpu = Gpu(self)
        self.processors = {GPU: self._gpu, CPU: Cpu(self, cpu)}
        self.requests = Requests(self, models, follow)
        frames = {dnn.name: Frames(self, dnn) for dnn in dnns}
        self.clients = {**frames, **{each.plan.name: self.requests for each in models}}
        observe = None if self.tracer is None else self.tracer.step
        self._loop = self.frame_loop(self.coordinator, observe)
        self.frame = 0  # the number of the newest
        self._pictured_ns: int | None = None
        self._before = self.coordinator.snapshot(0)

    def advance(self, until_ns: int) -> None:
        while self.now_ns < until_ns:
            self._turn()

    def warm(self) -> None:
        super().warm()
        self._before = self.coordinator.snapshot(self.now_ns)
        self.requests.begin(self.now_ns)

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
        self.frame += 1
        self.tell(FrameArrived(tuple(self.dnns), self.frame))
        self._tell_scenes()
        self.carry_out(loop.started(start_ns))
        free_ns = max(start_ns, self._gpu.free_ns)
        render_ns = self.one_of(self.machine.renders_ns or (self.machine.render_ns,))
        self.now_ns = free_ns + int(render_ns * self.gpu_noise() * self.render_noise())
        self.on_gpu(RENDER, free_ns, self.now_ns)
        loop.drawn(self.now_ns, self.now_ns - start_ns)
        self._serve_reported(self.now_ns)
        self.carry_out(loop.opened(self.now_ns))
        self._serve_until(loop.present_ns)
        self.now_ns = max(self.now_ns, loop.present_ns)
        self.figures.presented(loop.presented(self.now_ns))
        for name, arrivals in self.arrivals.items():
            for _ in range(arrivals.take(self.now_ns)):
                self.tell(InferenceRequested(name))

    def _tell_scenes(self) -> None:
        """How much has changed between the last picture and this one."""
        before_ns, self._pictured_ns = self._pictured_ns, self.now_ns
        if not self.coordinator.replaces:
            return
        for dnn in self.dnns.values():
            if dnn.watched is not None:
                change = dnn.watched.difference(before_ns, self.now_ns)
                self.tell(SceneChanged((dnn.name,), change))

    def _serve_until(self, deadline_ns: int) -> None:
        """Handle what workers report until the next frame starts."""
        agenda, loop = self.agenda, self._loop
        while True:
            wake_ns, message_ns = loop.next_wakeup_ns(), agenda.next_ns()
            if wake_ns is not None and (message_ns is None or wake_ns < message_ns):
                if wake_ns > deadline_ns:
                    return
                self.now_ns = max(self.now_ns, wake_ns + self.handoff_ns())
                self.carry_out(loop.woken(self.now_ns))
                continue
            if message_ns is None or message_ns > deadline_ns:
                return
            self._serve_reported(message_ns)

    def _serve_reported(self, until_ns: int) -> None:
        """Handle what has been reported by then."""
        while (at_ns := self.agenda.next_ns()) is not None and at_ns <= until_ns:
            self.now_ns = max(self.now_ns, at_ns)
            self.happen()

    def tell(self, event: Event) -> None:
        self.carry_out(self._loop.received(event, self.now_ns))


def _cut(plan: DnnPlan, cut: Cut) -> DnnPlan:
    """The same DNN, cut another way."""
    return replace(plan, stages=tuple(cut.apply(stage) for stage in plan.stages))
