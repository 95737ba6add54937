"""A whole run in a window: progress first, then frames; keys, full screen, and a clean end."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import cv2
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


# The X server dies while frames are drawn, after those that are measured at the start.
LAST_FRAMES = """
import os, signal
from heimdall import DNN, App

class Mine(App):
    dnns = (DNN("segment", model="selfie", rate_hz=5),)
    frames = 0

    def draw(self, scene):
        self.frames += 1
        if self.frames == 80:
            os.kill(int(os.environ["SERVER"]), signal.SIGKILL)
"""


def test_a_display_that_goes_away_costs_neither_figures_nor_recordings(
    mortal_display, kind, tmp_path
):
    server, name = mortal_display
    (tmp_path / "mine.py").write_text(LAST_FRAMES)
    video, picture = tmp_path / "video.mp4", tmp_path / "picture.png"
    options = {
        "--source": paths.ASSETS / "media" / "cup.mp4",
        "--size": "320x180",
        "--device": "onnxruntime",
        "--seconds": 60,
        "--record": video,
        "--screenshot": picture,
    }
    words = [str(word) for option in options.items() for word in option]
    ended = subprocess.run(
        [sys.executable, "-m", "heimdall", "run", "mine.py", "--json", *words],
        cwd=tmp_path,
        env={**os.environ, "DISPLAY": name, "SERVER": str(server.pid)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["errors"] == ["the display has gone away: the run ends"]
    assert summary["seconds"] < 30
    assert summary["outputs"]["record"]["error"] is None
    assert cv2.VideoCapture(str(video)).read()[0]
    assert cv2.imread(str(picture)).shape == (180, 320, 3)
