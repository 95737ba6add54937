"""What a run leaves behind: each output is on its own."""

from __future__ import annotations

import logging
from pathlib import Path

import cv2
import pytest

from heimdall.errors import ConfigError, DeviceError, HeimdallError
from heimdall.render import Recorder, open_surface
from heimdall.runtime.session.outputs import Outputs

INTERVAL_NS = round(1e9 / 30)
SIZE = (320, 180)


@pytest.fixture
def surface():
    try:
        with open_surface(SIZE, headless=True) as opened:
            yield opened
    except DeviceError as error:
        pytest.skip(str(error))


def draw(outputs: Outputs, count: int) -> None:
    for number in range(count):
        outputs.frame(number * INTERVAL_NS)


def test_nothing_asked_for_leaves_nothing(surface):
    outputs = Outputs(surface, 30, None)
    draw(outputs, 3)
    outputs.save("screenshot", None, lambda path: pytest.fail("there is no path"))
    outputs.end_recording()
    assert (outputs.summary, outputs.errors) == ({}, [])


def test_what_fails_costs_nothing_else(surface, tmp_path):
    def refuse(path: Path) -> None:
        raise ConfigError(f"cannot write trace {path}")

    def break_down(path: Path) -> None:
        raise ZeroDivisionError("by zero")

    video, text = tmp_path / "a.mp4", tmp_path / "a.txt"
    outputs = Outputs(surface, 30, video)
    draw(outputs, 10)
    outputs.save("trace", Path("t.json"), refuse)
    outputs.save("screenshot", Path("s.png"), break_down)
    outputs.save("text", text, lambda path: path.write_text("kept"))
    outputs.end_recording()
    outputs.end_recording()
    assert outputs.summary == {
        "record": {"path": str(video), "error": None, "frames": 10, "dropped": 0},
        "trace": {"path": "t.json", "error": "cannot write trace t.json"},
        "screenshot": {
            "path": "s.png",
            "error": "--screenshot failed: ZeroDivisionError: by zero",
        },
        "text": {"path": str(text), "error": None},
    }
    assert outputs.errors == [outputs.summary[name]["error"] for name in ("trace", "screenshot")]
    assert cv2.VideoCapture(str(video)).read()[0]
    assert text.read_text() == "kept"


def test_a_recording_that_fails_is_told_once_and_while_frames_are_drawn(
    surface, tmp_path, monkeypatch, caplog
):
    def fail(*_: object) -> None:
        raise OSError(28, "disk full")

    monkeypatch.setattr("heimdall.render.video.VideoFile.write", fail)
    outputs = Outputs(surface, 30, tmp_path / "a.mp4")
    while not outputs.message:
        draw(outputs, 1)
    assert "a.mp4 stopped after 0 frames: disk full" in outputs.message
    draw(outputs, 10)
    outputs.end_recording()
    assert outputs.errors == [outputs.summary["record"]["error"]]
    assert outputs.errors == [outputs.message]
    assert [each.levelno for each in caplog.records].count(logging.ERROR) == 1


def test_a_recording_that_cannot_begin_is_refused_at_once(surface, tmp_path, monkeypatch):
    import av.codec

    monkeypatch.setattr(av.codec, "codecs_available", set())
    with pytest.raises(HeimdallError, match="encoder"):
        Outputs(surface, 30, tmp_path / "a.mp4")


@pytest.mark.parametrize("when", ["while it is opened", "before the first frame"])
def test_a_start_that_is_ended_leaves_no_video_that_nothing_could_play(
    surface, tmp_path, monkeypatch, when
):
    path = tmp_path / "run.mp4"
    if when == "while it is opened":
        ready = Recorder.ready

        def interrupted(self):
            ready(self)
            raise KeyboardInterrupt

        monkeypatch.setattr(Recorder, "ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Outputs(surface, 30, path)
    else:
        outputs = Outputs(surface, 30, path)
        outputs.end_recording()
        assert "no frame" in outputs.summary["record"]["error"]
    assert not path.exists()
