"""What every simulated run has: its figures, its random numbers, and the end of its warm-up."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from heimdall.lab.simulator.cores import Cores, noise_source
from heimdall.lab.simulator.machine import Machine, SimulatedDnn
from heimdall.lab.simulator.throttle import throttled
from heimdall.lab.simulator.windows import WINDOW_NS, Windows
from heimdall.runtime.loop.frame_loop import Decider, FrameLoop, Observer
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.trace import Tracer
from heimdall.vocabulary.enums import Lane
from heimdall.vocabulary.processors import CPU, GPU

# A live run is warm by then at the latest: the offload step has settled.
WARM_UP_NS = 5_000_000_000
_NEVER_NS = 2**63
Value = TypeVar("Value")
RENDER = "frame"  # what the GPU draws


class Arrivals:
    """When an event-driven DNN is asked for."""

    def __init__(self, waits_s: Iterator[float]) -> None:
        self._waits_s = waits_s
        self.next_ns = 0
        self.next_ns = self._later()

    def _later(self) -> int:
        wait_s = next(self._waits_s, None)
        return _NEVER_NS if wait_s is None else self.next_ns + round(wait_s * 1e9)

    def take(self, now_ns: int) -> int:
        """How many have come by now, and have not been taken yet."""
        count = 0
        while self.next_ns <= now_ns:
            count += 1
            self.next_ns = self._later()
        return count


class SimulatedRun:
    """One run of DNNs and rendering on a machine; subclasses say how they share it."""

    def __init__(
        self,
        dnns: Sequence[SimulatedDnn],
        machine: Machine,
        *,
        fps: float,
        seed: int,
        tracer: Tracer | None = None,
    ) -> None:
        self.dnns = {dnn.name: dnn for dnn in dnns}
        self.machine = machine
        self.draw = random.Random(seed)
        self.cores = Cores(
            machine.cores, machine.contention, noise_source(self.draw, machine.cpu_noise)
        )
        self.now_ns = 0
        self._warm_ns: int | None = None
        self.gpu_noise = throttled(
            noise_source(self.draw, machine.gpu_noise), machine.throttle, self._counted_ns
        )
        # Drawn apart, so that scenes that vary leave all else as it is.
        self.render_noise = noise_source(random.Random(f"{RENDER} {seed}"), machine.render_noise)
        self.tracer = tracer
        counted = {
            dnn.name: ModelFigures(
                fallback_ops=dnn.fallback_ops,
                whole_ns=dnn.whole_ns,
                stages=len(dnn.plan.stages),
                required_hz=dnn.plan.rate_hz,
                utility=dnn.plan.utility,
            )
            for dnn in dnns
        }
        self.figures = Figures(fps, counted, simulated=True)
        self.arrivals = {
            dnn.name: Arrivals(dnn.event.waits_s(seed)) for dnn in dnns if dnn.event is not None
        }
        self.figures.lanes = {CPU: machine.cpu_workers}
        self.interval_ns = round(1e9 / fps)
        self.windows = Windows(self.figures)
        self._gpu_total_ns = self._gpu_before_ns = self._cpu_before_ns = 0

    def run(self, seconds: float) -> None:
        """Warm up, then count for ``seconds``; window by window where the machine changes."""
        self.advance(WARM_UP_NS)
        self.warm()
        end_ns = self.now_ns + round(seconds * 1e9)
        if self.machine.throttle is not None:
            for window_ns in range(self.now_ns + WINDOW_NS, end_ns, WINDOW_NS):
                self.advance(window_ns)
                self.windows.end(self.now_ns)
        self.advance(end_ns)
        if self.machine.throttle is not None:
            self.windows.end(self.now_ns)

    def advance(self, until_ns: int) -> None:
        """Go on until then, and to the end of the frame that is being drawn."""
        raise NotImplementedError

    def warm(self) -> None:
        """Figures count from here."""
        self._warm_ns = self.now_ns
        self.figures.restart(self.now_ns)
        self._cpu_before_ns = self.cores.busy_ns
        self._gpu_before_ns = self._gpu_total_ns

    def _counted_ns(self) -> int:
        """How long figures have counted; below 0 before."""
        return -1 if self._warm_ns is None else self.now_ns - self._warm_ns

    def config(self) -> dict[str, Any]:
        """The coordinator's configuration, for a trace; empty where there is none."""
        return {}

    @property
    def errors(self) -> list[str]:
        """What the policy did wrong, where there is one."""
        return []

    def on_gpu(self, name: str, start_ns: int, end_ns: int, **details: object) -> None:
        """The GPU works for a DNN, or draws."""
        self._gpu_total_ns += end_ns - start_ns
        if name != RENDER:
            self.figures.ran(GPU, end_ns - start_ns)
        self.span(Lane.RENDER if name == RENDER else Lane.GPU, name, start_ns, end_ns, **details)

    @property
    def gpu_busy_ns(self) -> int:
        """GPU time since the warm-up, rendering included."""
        return self._gpu_total_ns - self._gpu_before_ns

    @property
    def cpu_core_s(self) -> float:
        """Busy core-seconds since the warm-up."""
        return (self.cores.busy_ns - self._cpu_before_ns) / 1e9

    def gap_utilization(self) -> float | None:
        """Chunk GPU time / gap time while work was runnable; None where no gaps are kept."""
        return None

    def frame_loop(self, coordinator: Decider, observe: Observer | None = None) -> FrameLoop:
        """Frames of this run, from the first interval on."""
        machine = self.machine
        return FrameLoop(
            coordinator,
            interval_ns=self.interval_ns,
            start_ns=self.interval_ns,
            drawing_ns=machine.render_ns,
            load_limit=machine.load_limit,
            guard_ns=machine.guard_ns,
            observe=observe,
        )

    def tasks(self, dnn: SimulatedDnn, stage: int) -> int:
        """How many inputs a stage gets this time."""
        return self.one_of(dnn.numbers_of_tasks(stage))

    def one_of(self, values: Sequence[Value]) -> Value:
        """One of the values that were seen."""
        return values[0] if len(values) == 1 else self.draw.choice(values)

    def span(self, lane: str, name: str, start_ns: int, end_ns: int, **details: object) -> None:
        if self.tracer is not None:
            self.tracer.span(lane, name, start_ns, end_ns, details)
