"""A run that begins before its networks are built for the GPU: what it does about that meanwhile.

See ``building``. Frames are drawn from the start; figures count from when all DNNs are where they
will stay, and those of the time before are kept apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from heimdall.analyzer.profiler import Progress
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.loop.frame_loop import FrameLoop
from heimdall.runtime.opening.building import Building
from heimdall.runtime.opening.canvas import Canvas
from heimdall.runtime.session.shared_gpu import Names, SharedGpu
from heimdall.runtime.telemetry.figures import Figures
from heimdall.system.faults import Fallible, Faults
from heimdall.vocabulary.events import DnnBuilt

WHAT = "building networks for the GPU"
_ROOM_NS = 6_000_000  # before a frame starts: an op, and what is in its way
_PATIENCE_NS = 1_000_000_000


class FirstStart(Fallible):
    """What stands between what is being built and a run. ``clock``: the run's."""

    def __init__(
        self,
        building: Building | None,
        shared_gpu: SharedGpu,
        names: Names,
        figures: Figures,
        progress: Progress,
        clock: Callable[[], int],
        canvas: Canvas,
    ) -> None:
        self._building, self._shared_gpu, self._names = building, shared_gpu, names
        self._canvas = canvas
        self._figures, self._progress, self._clock = figures, progress, clock
        self._told = (-1, 0)
        self._faults = Faults()
        self.summary: dict[str, Any] | None = None  # of the time until all was built

    def begin(self, loop: FrameLoop) -> None:
        """Frames are about to be drawn by ``loop``: have the rest built beside."""
        self._interval_ns = loop.interval_ns
        if self._building is not None:
            self._building.start(partial(self._pause, loop), self._built, self._not_built)

    @property
    def is_over(self) -> bool:
        """True if all DNNs are where they will stay, for all that is known."""
        return self._building is None or self._building.over.is_set()

    def tell(self) -> str:
        """Pass on how far it is; returns that in words, or nothing when it is over. On the main
        thread, now and then."""
        if self._building is None or self.summary is not None:
            return ""
        self._see()
        if self._building.progress != self._told:
            self._told = self._building.progress
            self._progress(WHAT, *self._told)
        return self._building.message

    def _see(self) -> None:
        """What a frame takes is known after some, if nothing is on the GPU besides."""
        building, canvas = self._building, self._canvas
        if building is None or not canvas.guessed or building.progress[0]:
            return
        if canvas.seen(self._figures.render_ns):
            building.cut = replace(building.cut, gap_ns=self._interval_ns - canvas.lone_render_ns)

    def note(self, now_ns: int, began_s: float, startup_s: float) -> None:
        """The first start is over: keep the figures until now, before others are counted. It began
        at ``began_s``."""
        if self._building is None:
            return
        _, total = self._building.progress
        self._progress(WHAT, total, total)
        figures = self._figures.summary(0, None)
        self.summary = {
            "first_frame_s": round(startup_s, 3),
            "on_gpu_s": round(now_ns / 1e9 - began_s, 3),
            **{name: figures[name] for name in ("frames", "fps", "frame_interval_ms")},
            **{name: figures[name] for name in ("late_frames", "skipped_frames")},
            "dnns": {
                name: {each: dnn[each] for each in ("inferences", "latency_ms", "gpu", "cpu")}
                for name, dnn in figures["dnns"].items()
            },
        }

    # --- on threads of the builders ----------------------------------------------------------

    def _pause(self, loop: FrameLoop, ended: threading.Event) -> None:
        """Return when no frame is drawn, nor soon will be, or the run has ended. A frame that is
        late, or never drawn, does not hold the caller up for ever."""
        until_ns = self._clock() + _PATIENCE_NS
        while (now_ns := self._clock()) < until_ns and loop.start_ns - now_ns < _ROOM_NS:
            if ended.wait(0.001):
                return

    def _built(self, deployment: Deployment) -> None:
        dnn, name = deployment.dnn.name, self._names.inverse[deployment.dnn.name]
        figures = self._figures.dnns[dnn]
        figures.fallback_ops, figures.whole_ns = deployment.fallback_ops, deployment.whole_ns
        self._shared_gpu.inbox.put(DnnBuilt(deployment.plan.named(name)))

    def _not_built(self, deployment: Deployment, why: str) -> None:
        dnn = deployment.dnn.name
        self._faults.report(f"{dnn} stays on the CPU, as it cannot be built for the GPU: {why}")
