"""Going through the sources: each is opened in the background, and a failure is a sentence."""

from __future__ import annotations

import time

import cv2
import numpy as np
import pytest

from heimdall.capture import switching
from heimdall.capture.switching import Sources

PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def _no_camera(monkeypatch):
    monkeypatch.setattr(switching, "camera_likely", lambda index: False)


@pytest.fixture
def clips(tmp_path):
    for name in ("a.png", "b.png", "notes.txt"):
        (tmp_path / name).write_bytes(cv2.imencode(".png", np.zeros((24, 32, 3)))[1].tobytes())
    return tmp_path


def opened(sources):
    end = time.monotonic() + PATIENCE_S
    while (found := sources.opened()) is None:
        assert time.monotonic() < end, "nothing was opened"
        time.sleep(0.005)
    return found


def test_the_next_source_is_opened_in_the_background_round_and_round(clips):
    sources = Sources(str(clips / "a.png"), clips, (32, 24), 30)
    assert sources.opened() is None
    for name in ("b.png", "a.png", "b.png"):  # notes are no picture
        assert sources.next() == str(clips / name)
        source = opened(sources)
        assert source.name == f"image {name}"
        assert source.latest().image.shape == (24, 32, 3)
        sources.close(source)
    assert sources.opened() is None


def test_cameras_come_before_clips(clips, monkeypatch):
    monkeypatch.setattr(switching, "camera_likely", lambda index: index == 2)
    monkeypatch.setattr(switching, "open_source", _refuse)
    sources = Sources("own.mp4", clips, (32, 24), 30)
    assert sources.next() == 2
    opened(sources)
    assert sources.next() == str(clips / "a.png")
    opened(sources)


def test_while_one_is_being_opened_no_other_is_tried(clips, monkeypatch):
    asked = []

    def refuse(spec, **wishes):
        asked.append(spec)
        _refuse()

    monkeypatch.setattr(switching, "open_source", refuse)
    sources = Sources("own.mp4", clips, (32, 24), 30)
    sources.next()
    sources.next()
    assert opened(sources) == "not today"
    assert len(asked) == 1


def test_what_cannot_be_opened_is_a_sentence_and_the_next_may_be_tried(clips):
    sources = Sources(str(clips / "a.png"), clips, (32, 24), 30)
    sources.open(str(clips / "missing.mp4"))
    assert "missing.mp4" in opened(sources)
    sources.open(str(clips / "b.png"))
    sources.close(opened(sources))


def test_a_source_without_a_picture_is_closed_and_said_so(clips, monkeypatch):
    class Blind:
        name, closed = "camera 3", False

        def wait_first(self, timeout_s):
            return None

        def close(self):
            self.closed = True

    blind = Blind()
    monkeypatch.setattr(switching, "open_source", lambda spec, **wishes: blind)
    sources = Sources("own.mp4", clips, (32, 24), 30)
    sources.next()
    assert opened(sources) == "camera 3 gives no picture"
    assert blind.closed


def _refuse(*_, **__):
    from heimdall.errors import DeviceError

    raise DeviceError("not today")
