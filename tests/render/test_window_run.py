"""A whole run in a window: progress first, then frames; keys, full screen, and a clean end."""

from __future__ import annotations

import pytest

from heimdall.app.options import RunOptions
from heimdall.errors import DeviceError
from heimdall.render import Overlay
from heimdall.render.window import WindowSurface
from heimdall.runtime.run import run_app
from heimdall.system import paths

APP = """
from heimdall import DNN, App

class Mine(App):
    title = "My title"
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
"""


def test_a_run_in_a_window_can_be_watched_and_ended(display, tmp_path, monkeypatch):
    titles: list[str] = []
    steps: list[str] = []
    sizes: set[tuple[int, int]] = set()
    set_title, progress, present = (
        WindowSurface.set_title,
        Overlay.progress,
        WindowSurface.present,
    )

    def titled(self, title):
        titles.append(title)
        set_title(self, title)

    def told(self, title, what, share):
        steps.append(what)
        progress(self, title, what, share)

    def presented(self):
        sizes.add(self.size)
        present(self)

    monkeypatch.setattr(WindowSurface, "set_title", titled)
    monkeypatch.setattr(Overlay, "progress", told)
    monkeypatch.setattr(WindowSurface, "present", presented)
    (tmp_path / "mine.py").write_text(APP)
    options = RunOptions(
        source=str(paths.ASSETS / "media" / "cup.mp4"),
        size=(320, 180),
        device="onnxruntime",
        seconds=60,  # escape ends it long before
        press=((0.1, "f2"), (0.2, "f1"), (0.3, "f11"), (0.7, "f11"), (0.9, "f3"), (1.3, "escape")),
    )
    try:
        summary = run_app(str(tmp_path / "mine.py"), options)
    except DeviceError as error:
        pytest.skip(str(error))
    assert summary["errors"] == []
    assert summary["seconds"] < 30
    assert steps
    assert (320, 180) in sizes
    assert len(sizes) > 1  # full screen meanwhile
    assert titles[0].startswith("My title · ")
    assert titles[-1].endswith(" · paused")
