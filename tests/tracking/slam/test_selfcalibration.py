"""A lens that is longer, or shorter, than it is taken to be is found out by the map of the room."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from benchmarks.home import CAMERA, CLIP, FPS, Home
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker

COUNT = 240


@pytest.fixture(scope="module")
def pictures() -> list[np.ndarray]:
    video = cv2.VideoCapture(str(CLIP))
    return [video.read()[1] for _ in range(COUNT)]


def followed(pictures, times: float, *, guessed: bool = True):
    """The tracker after all of them, and the focal length that it had in each, pixels."""
    tracker, focal = RoomTracker(Mapper()), []
    camera = replace(CAMERA, guessed=guessed).zoomed(times)
    for number, each in enumerate(pictures):
        found = tracker.advance(each, camera, number, number / FPS)
        if number > 21:
            assert found.tracked
        focal.append(camera.fx * found.focal)
    return tracker, focal


@pytest.mark.parametrize(("times", "count"), [(0.72, 240), (0.85, 100), (1.2, 100), (1.35, 100)])
def test_a_wrong_lens_is_put_right(pictures, times, count):
    tracker, focal = followed(pictures[:count], times)
    assert focal[-1] == pytest.approx(CAMERA.fx, rel=0.05)
    assert tracker.problem == ""
    lenses = [each.picture.lens.fx for each in tracker.map.keyframes.values()]
    assert lenses == pytest.approx([CAMERA.fx] * len(lenses), rel=0.05)
    assert np.median(turns(tracker)) < 1.5


def turns(tracker: RoomTracker) -> np.ndarray:
    """By how much keyframes' turns since the first one are off, degrees. The first keyframe is the
    first frame, and others are where the true camera fits best."""
    truth = [Home().pose(number / FPS) for number in range(COUNT)]
    first = tracker.map.keyframes[0].pose
    off = []
    for each in tracker.map.keyframes.values():
        turn = each.pose.rotation @ first.rotation.T
        cosines = [
            (np.trace(turn @ (pose.rotation @ truth[0].rotation.T).T) - 1) / 2 for pose in truth
        ]
        off.append(np.degrees(np.arccos(min(1.0, max(cosines)))))
    return np.array(off)


def test_a_right_one_stays_as_it_is(pictures):
    tracker, focal = followed(pictures[:150], 1.0, guessed=False)
    assert set(focal) == {CAMERA.fx}
    assert tracker.problem == ""


def test_one_that_was_calibrated_wrongly_is_told(pictures):
    tracker, focal = followed(pictures[:100], 1.3, guessed=False)
    assert focal[-1] == pytest.approx(CAMERA.fx, rel=0.05)
    assert "times as long as its camera file says: `heimdall calibrate`" in tracker.problem


def test_what_was_found_holds_for_the_next_map(pictures):
    tracker, focal = followed(pictures[:100], 1.3)
    tracker.forget()
    camera = replace(CAMERA, guessed=True).zoomed(1.3)
    found = tracker.advance(pictures[0], camera)
    assert camera.fx * found.focal == pytest.approx(focal[-1])


def test_a_map_begins_by_whatever_lens_one_begins_by(pictures):
    tracker = RoomTracker(Mapper())
    camera = replace(CAMERA, guessed=True).zoomed(0.6)
    focal = [
        camera.fx * tracker.advance(each, camera, number, number / FPS).focal
        for number, each in enumerate(pictures)
    ]
    assert tracker.reason == ""
    assert focal[-1] == pytest.approx(CAMERA.fx, rel=0.1)
