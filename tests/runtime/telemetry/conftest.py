"""A run of one DNN that is being watched, on a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heimdall.app import App
from heimdall.coordinator.coordinator import Coordinator
from heimdall.runtime.session.shared_gpu import Names
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.jobs import ModelFigures
from heimdall.runtime.telemetry.report import Reporter
from heimdall.runtime.telemetry.spans import Spans
from heimdall.vocabulary.plans import DnnPlan, StagePlan

MS = 1_000_000


class Watched(App):
    title = "Watched app"


@pytest.fixture
def watched() -> Any:
    """``reporter`` over a real coordinator and real figures; ``setup`` stands in for devices."""
    stage = StagePlan((5 * MS,) * 4, (False,) * 4, 90 * MS, 0, ((0, 4),))
    coordinator = Coordinator(
        [DnnPlan("eye", (stage,), 500 * MS)],
        scheduler="max-total",
        frame_interval_ns=round(1e9 / 20),
    )
    figures = Figures(20, {"eye": ModelFigures()}, simulated=True)
    source = SimpleNamespace(error=None, held=False, describe=lambda: "video cup.mp4, 640x480")
    setup: Any = SimpleNamespace(
        gpu_name="a GPU",
        source=source,
        canvas=SimpleNamespace(surface=SimpleNamespace(size=(320, 180))),
        describe_devices=lambda: {"gpu": "a GPU"},
        lone_render_ns=5 * MS,
        deployments={"eye": SimpleNamespace(pipeline=SimpleNamespace(makes="results"))},
    )
    app = Watched()
    shared_gpu: Any = SimpleNamespace(
        coordinator=coordinator, scheduler="max-total", mode="elastic", spans=Spans(None, ["gpu2"])
    )
    reporter = Reporter(app, setup, shared_gpu, figures, Names({"eye": "eye"}))
    return SimpleNamespace(
        reporter=reporter,
        setup=setup,
        shared_gpu=shared_gpu,
        coordinator=coordinator,
        figures=figures,
        app=app,
    )
