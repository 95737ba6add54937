"""What a world's parts are tried on: cameras at known places, and frames of the bundled page."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import pytest

from heimdall.capture import Camera, Frame
from heimdall.capture.camera_files import read_camera
from heimdall.system import paths

from .standin import Run, seen_from

PAGE = paths.ASSETS / "media" / "page.mp4"


@pytest.fixture
def camera() -> Camera:
    """640 x 480, half a metre from the origin, which is in the middle of its picture."""
    return Camera.guess(640, 480).at(seen_from((0.0, -0.4, 0.3)))


@pytest.fixture(scope="session")
def page_frames() -> Callable[..., list[Frame]]:
    """``page_frames(first, count)`` of the bundled clip, as its camera took them."""
    lens = read_camera(PAGE.with_suffix(".camera.toml"))

    def read(first: int, count: int) -> list[Frame]:
        video = cv2.VideoCapture(str(PAGE))
        for _ in range(first):
            video.grab()
        numbers = range(first, first + count)
        return [Frame(video.read()[1], each, each * 33_333_333, lens) for each in numbers]

    return read


@pytest.fixture
def run():
    runs = []

    def make(**declared):
        runs.append(Run(**declared))
        return runs[-1]

    yield make
    for each in runs:
        each.world.end()
