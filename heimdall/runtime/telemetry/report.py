"""What a run shows of itself: the overlay's status while it lasts, and the summary at its end."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from heimdall.app import App
from heimdall.coordinator.gap import Gap
from heimdall.coordinator.snapshot import DnnStatus as DnnSnapshot
from heimdall.coordinator.states import State
from heimdall.render import DnnStatus, Status
from heimdall.runtime.opening.setup import Setup
from heimdall.runtime.session.shared_gpu import Names, SharedGpu
from heimdall.runtime.telemetry.figures import SCHEMA, Figures
from heimdall.runtime.telemetry.spreads import percentiles

RATE_WINDOW_NS = 3_000_000_000
_MOST_RESULTS = 1024  # of one DNN in that time


class Reporter:
    """Reads the figures and the coordinator; changes neither."""

    def __init__(
        self, app: App, setup: Setup, shared_gpu: SharedGpu, figures: Figures, names: Names
    ) -> None:
        self._app = app
        self._setup = setup
        self._shared_gpu = shared_gpu
        self._figures = figures
        self._names = names
        self._before = shared_gpu.coordinator.snapshot(0)
        self._results_ns: dict[str, deque[int]] = {
            name: deque(maxlen=_MOST_RESULTS) for name in figures.dnns
        }

    def result(self, dnn: str, now_ns: int) -> None:
        """A result of ``dnn`` has reached the app."""
        self._results_ns[dnn].append(now_ns)

    def warm(self, now_ns: int) -> None:
        """Warm-up is over: gaps count from here."""
        self._before = self._shared_gpu.coordinator.snapshot(now_ns)
        if self._app.world is not None:
            self._app.world.count_afresh()

    def status(self, now_ns: int, reason: str, message: str) -> Status:
        """What the overlay shows."""
        figures = self._figures
        snapshot = self._shared_gpu.coordinator.snapshot(now_ns)
        return Status(
            app=self._app.title or self._app.name,
            fps=figures.recent_fps(),
            fps_target=figures.fps_target,
            frame_ms=tuple(figures.recent_ms),
            late_frames=figures.late_frames,
            picture_age_ms=figures.recent_picture_ms(),
            scheduler=self._shared_gpu.scheduler,
            mode=self._shared_gpu.mode,
            device=self._setup.gpu_name,
            dnns=tuple(self._dnn_status(snapshot.dnns[name], now_ns) for name in self._names),
            gap_utilization=self._utilization(snapshot.gap),
            reason=reason,
            message=message or self._setup.source.error or "",
            others=self._shared_gpu.spans.others,
        )

    def _utilization(self, gap: Gap) -> float | None:
        """None where nothing waited for a gap, such as in an app without networks."""
        waited = gap.runnable_ns > self._before.gap.runnable_ns
        if not waited or not self._shared_gpu.coordinator.keeps_gaps:
            return None
        return gap.utilization_since(self._before.gap)

    def _dnn_status(self, item: DnnSnapshot, now_ns: int) -> DnnStatus:
        name = self._names[item.name]
        results = self._results_ns[name]
        while results and results[0] < now_ns - RATE_WINDOW_NS:
            results.popleft()
        return DnnStatus(
            name=name,
            latency_ms=None if item.latency_ns is None else item.latency_ns / 1e6,
            constraint_ms=item.constraint_ns / 1e6,
            processor=item.processor,
            rate_hz=len(results) / (RATE_WINDOW_NS / 1e9),
            age_ms=(now_ns - results[-1]) / 1e6 if results else None,
            misses=item.misses,
            active=item.state == State.RUNNING,
            exit=self._figures.dnns[name].exit,
            makes=self._setup.deployments[name].pipeline.makes,
        )

    def summary(self, now_ns: int, startup_s: float, ready_s: float) -> dict[str, Any]:
        """The run summary, all but ``wall_s`` and ``errors``, which are known after it."""
        setup = self._setup
        gap = self._utilization(self._shared_gpu.coordinator.snapshot(now_ns).gap)
        figures = self._figures.summary(setup.lone_render_ns, gap)
        if not self._shared_gpu.coordinator.keeps_gaps:  # nor how long the GPU worked for which DNN
            figures["gpu"]["busy_ms"] = None
        return {
            "schema": SCHEMA,
            "app": self._app.name,
            "startup_s": round(startup_s, 3),
            "ready_s": round(ready_s, 3),
            "source": setup.source.describe(),
            "scheduler": self._shared_gpu.scheduler,
            "mode": self._shared_gpu.mode,
            "device": setup.describe_devices(),
            "size": list(setup.canvas.surface.size) if setup.canvas else None,
            **figures,
            **self._world(),
        }

    def _world(self) -> dict[str, Any]:
        """What became of the app's world; nothing where it has none."""
        world = self._app.world
        if world is None or world.thread is None:
            return {}
        costs = percentiles(np.asarray(world.thread.costs_ms), maximum=False)
        return {"world": {**world.figures(), "pose_ms": costs}}
