"""A phone's pictures as a source: the newest, with what its sensors said, and words where none is
there."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from heimdall.capture import Source
from heimdall.capture.lens import Camera, Motion
from heimdall.capture.phone import NOBODY, PhonePictures, Taken

SIZE = (64, 48)


def picture(level: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    return np.full((size[1], size[0], 3), level, np.uint8)


def taken(level: int, size: tuple[int, int] = SIZE, motion: Motion | None = None) -> Taken:
    def seen_by(camera: Camera) -> Camera:
        return camera.sensing(motion)

    return Taken(lambda: picture(level, size), time.perf_counter_ns(), seen_by)


@pytest.fixture
def pictures():
    return PhonePictures(SIZE)


@pytest.fixture
def source(pictures):
    opened = Source(lambda: pictures, "phone")
    opened.wait_open()
    yield opened
    pictures.end()
    opened.close(timeout_s=60)
    assert not opened._thread.is_alive()


def until(source, level):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        frame = source.latest()
        if frame is not None and frame.image[0, 0, 0] == level:
            return frame
        time.sleep(0.002)
    raise AssertionError("the picture never came")


def test_before_a_phone_is_there_the_picture_is_dark_and_the_source_says_what_to_do(source):
    assert source.wait_first(60).image.shape == (48, 64, 3)
    assert source.live
    assert source.error == f"phone: {NOBODY}"
    assert source.errors == []  # nobody has failed yet


def test_pictures_come_as_they_were_taken(source, pictures):
    pictures.absent = ""
    motion = Motion((0, 1, 0), (0.5, 0, 0))
    given = taken(90, motion=motion)
    pictures.put(given)
    frame = until(source, 90)
    assert frame.captured_ns == given.captured_ns
    assert frame.camera.motion is motion
    assert source.error is None


def test_a_phone_that_is_turned_gives_pictures_of_another_shape(source, pictures):
    for level, size in ((10, (64, 48)), (20, (48, 64)), (30, (96, 54))):
        pictures.put(taken(level, size))
        frame = until(source, level)
        assert frame.image.shape[:2] == frame.camera.size[::-1] == size[::-1]


def test_of_those_that_nobody_has_read_the_newest_wins(pictures):
    assert pictures.read().max() == 0
    for level in (1, 2, 3):
        pictures.put(taken(level))
    assert pictures.read().max() == 3
    assert pictures.overtaken == 2


def test_whoever_waits_is_freed_at_the_end(pictures):
    pictures.read()
    found = []
    waiting = threading.Thread(target=lambda: found.append(pictures.read()))
    waiting.start()
    pictures.end()
    waiting.join(60)
    assert found == [None]


def test_a_phone_that_falls_silent_is_told_of(source, pictures):
    pictures.absent = ""
    pictures.put(taken(50))
    until(source, 50)
    end = time.monotonic() + 60
    while not source.error:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "no picture for" in source.error
