"""The clip of the room is what its room looks like, and its camera comes back to where it began."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.home import CAMERA, CLIP, FPS, SECONDS, SIZE, TABLE_M, Home
from heimdall.capture.camera_files import known_camera


def test_the_way_of_the_camera_is_closed():
    home = Home()
    first, last = home.pose(0.0), home.pose(float(SECONDS))
    assert first.rotation == pytest.approx(last.rotation)
    assert first.translation == pytest.approx(last.translation)


@pytest.mark.parametrize("number", [0, 77, 300])
def test_the_clip_shows_what_the_camera_sees_on_its_way(number):
    video = cv2.VideoCapture(str(CLIP))
    for _ in range(number):
        video.grab()
    seen = video.read()[1].astype(float)
    drawn = cv2.resize(Home().look(number / FPS), SIZE, interpolation=cv2.INTER_AREA)
    off = np.abs(seen - drawn)
    assert off.mean() < 10  # compressed, and darker at its edges
    corner = np.array([[-0.75, TABLE_M, 0.45], [0.75, TABLE_M, 0.45]])
    pose = Home().pose(number / FPS)
    assert (pose.to_camera(corner)[:, 2] > 0).all()


def test_its_camera_is_known():
    found = known_camera(str(CLIP))
    assert (found.size, found.fx, found.guessed) == (SIZE, CAMERA.fx, False)
