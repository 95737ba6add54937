"""The order of a frame's life, over real runs; tests/apps has whole apps."""

from __future__ import annotations

from heimdall.app.options import RunOptions
from heimdall.coordinator.coordinator import Coordinator
from heimdall.render.headless import HeadlessSurface
from heimdall.runtime.run import run_app
from heimdall.system import paths
from heimdall.vocabulary.events import FrameRendered, RenderStarted

APP = """
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
"""


def test_networks_get_the_gpu_before_the_frame_that_is_drawn_is_shown(tmp_path, monkeypatch):
    steps: list[str] = []
    receive = Coordinator.receive

    def received(self, event, now_ns):
        if isinstance(event, (RenderStarted, FrameRendered)):
            steps.append(type(event).__name__)
        return receive(self, event, now_ns)

    monkeypatch.setattr(Coordinator, "receive", received)
    monkeypatch.setattr(HeadlessSurface, "present", lambda self: steps.append("present"))
    (tmp_path / "mine.py").write_text(APP)
    options = RunOptions(
        source=str(paths.ASSETS / "media" / "cup.mp4"),
        headless=True,
        size=(320, 180),
        device="onnxruntime",
        frames=20,
    )
    summary = run_app(str(tmp_path / "mine.py"), options)
    assert summary["frames"] == 20
    frames = [steps[first : first + 3] for first in range(0, len(steps), 3)]
    assert frames == [["RenderStarted", "FrameRendered", "present"]] * len(frames)
    assert summary["draw_interval_ms"]["p50"] is not None
    assert 0 < summary["picture_age_ms"]["p50"] <= summary["picture_age_ms"]["p99"]
