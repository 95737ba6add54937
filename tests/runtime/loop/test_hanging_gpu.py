"""A GPU that hangs in the middle of a run ends that, and costs nothing of what was there before."""

import cv2
import pytest

from heimdall import App
from heimdall.app.options import RunOptions
from heimdall.render import fence
from heimdall.runtime.run import run_app
from heimdall.system import paths


class Plain(App):
    """Nothing over the picture."""

    frames = 0

    def draw(self, scene):
        type(self).frames += 1


@pytest.fixture
def hangs(monkeypatch):
    """After forty frames of an app no wait for the GPU ends."""
    gl_functions = fence.gl_functions

    def standing(loader, wanted):
        found = gl_functions(loader, wanted)
        wait = found["glClientWaitSync"]
        found["glClientWaitSync"] = lambda *args: 0x911B if Plain.frames > 40 else wait(*args)
        return found

    monkeypatch.setattr(fence, "gl_functions", standing)
    Plain.frames = 0


def test_the_run_ends_says_why_and_keeps_its_recording(hangs, tmp_path):
    record, picture = tmp_path / "a.mp4", tmp_path / "a.png"
    options = RunOptions(
        headless=True,
        seconds=600,
        size=(64, 64),
        source=str(paths.ASSETS / "media" / "cup.mp4"),
        record=record,
        screenshot=picture,
    )
    summary = run_app(Plain(), options)
    assert any("it hangs, and is given up" in each for each in summary["errors"])
    assert summary["given_up"] == ["drawing"]
    assert cv2.VideoCapture(str(record)).read()[0]
    assert "hangs" in summary["outputs"]["screenshot"]["error"]
    assert not picture.exists()
