"""What a world's parts are tried on: cameras at known places, and frames of the bundled page."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from heimdall.capture import Camera, Frame, Pose
from heimdall.capture.camera_files import read_camera
from heimdall.system import paths

PAGE = paths.ASSETS / "media" / "page.mp4"


def seen_from(
    where: tuple[float, float, float], at: tuple[float, float, float] = (0, 0, 0)
) -> Pose:
    """World to camera at ``where``, looking ``at`` a point, z up in the picture."""
    forward = np.subtract(at, where) / np.linalg.norm(np.subtract(at, where))
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right = right / np.linalg.norm(right)
    turned = np.stack([right, np.cross(forward, right), forward])
    return Pose(turned, -turned @ np.asarray(where, float))


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
