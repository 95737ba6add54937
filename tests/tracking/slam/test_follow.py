"""A keyframe's points, found again in pictures that are bent as a camera that moves bends them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.patch import moved
from heimdall.tracking.slam.follow import corners, follow
from heimdall.tracking.slam.model import Keyframe
from heimdall.tracking.slam.picture import Picture

SIZE = (320, 240)
CAMERA = Camera(*SIZE, 300.0, 300.0, 159.5, 119.5)


def turned(degrees: float, times: float, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    """An affine map about the picture's middle."""
    found = cv2.getRotationMatrix2D((159.5, 119.5), degrees, times)
    found[:, 2] += np.array((x, y))
    return np.asarray(found)


@pytest.fixture
def keyframe() -> Keyframe:
    rough = np.random.default_rng(3).integers(0, 255, (60, 80), np.uint8)
    picture = Picture(cv2.resize(rough, SIZE, interpolation=cv2.INTER_CUBIC), CAMERA)
    there = corners(picture, np.empty((0, 2)), 120)
    made = Keyframe(0, picture, Pose(np.eye(3), np.zeros(3)), np.arange(len(there)), there, there)
    made.observe(np.arange(len(there)), there)
    return made


def seen(keyframe: Keyframe, by: np.ndarray) -> Picture:
    bent = cv2.warpAffine(keyframe.picture.grey, by, SIZE, borderMode=cv2.BORDER_REPLICATE)
    return Picture(bent, CAMERA)


def test_points_are_found_as_exactly_whatever_the_picture_was_bent_for(keyframe):
    """A camera that rolls on, ever farther from where the keyframe was bent first."""
    at = np.arange(len(keyframe.ids))
    random = np.random.default_rng(1)
    kept = []
    for degrees in np.arange(12.0, 24.0, 1.0):
        by = turned(degrees, 1 + degrees / 100, degrees / 2)
        true = moved(by, keyframe.pixels)
        guess = true + random.normal(0, 1.0, true.shape)
        there, found = follow(keyframe, at, guess, seen(keyframe, by), 2)
        inside = keyframe.picture.inside(true, 20)
        assert found[inside].mean() > 0.9
        off = np.linalg.norm(there - true, axis=1)[found & inside]
        assert np.median(off) < 0.1
        assert np.percentile(off, 95) < 0.5
        kept.append(keyframe.picture.bent(by, keyframe.pixels))
    assert 2 <= len(set(map(id, kept))) <= 8  # bent once for several frames


def test_a_keyframe_is_bent_anew_when_points_leave_it(keyframe):
    picture, places = keyframe.picture, keyframe.pixels
    first = picture.bent(turned(10, 1.2), places)
    assert picture.bent(turned(11, 1.22, 1.0), places) is first
    assert picture.bent(turned(20, 1.2), places) is not first
    again, aside = picture.bent(turned(10, 1.2), places), turned(10, 1.2, 90.0)
    shown = places[picture.inside(moved(aside, places), 15)]
    away = picture.bent(aside, shown)
    assert away is not again
    assert picture.inside(moved(away.by, shown), 15).all()


def test_nothing_is_found_of_no_points(keyframe):
    there, found = follow(keyframe, np.empty(0, int), np.empty((0, 2)), keyframe.picture, 2)
    assert (len(there), len(found)) == (0, 0)
