"""The camera is found by what several views say together."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.tracking.pose.reference import Reference
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.pose.views import View, relocalised
from tests.tracking.pose.photographed import STRAIGHT, desk, looking

FINDER = cv2.ORB.create(700, 1.25, 5)
TRUTH = looking((0.03, 0.02), 0.62, 27, 204)


def view(pose, kept=slice(None)) -> View:
    """Of the desk from ``pose``, where its features are known to lie; ``kept`` of them."""
    picture = desk("nothing").taken(pose)
    keypoints, descriptors = FINDER.detectAndCompute(picture, None)
    places = np.array([each.pt for each in keypoints])[kept]
    rays = STRAIGHT.rays(places)
    points = pose.to_world(rays * (-pose.position[2] / (rays @ pose.rotation)[:, 2])[:, None])
    reference = Reference(picture, places, points, np.zeros(len(places), int))
    return View(pose, reference, descriptors[kept], 0.6, ready=True)


def found(views):
    return relocalised(FINDER, views, desk("nothing").taken(TRUTH), STRAIGHT)


@pytest.mark.parametrize("apart_", [1, 5, 12])
def test_a_desk_is_not_taken_for_its_mirror_image(apart_):
    """All is flat here, and looks nearly the same tilted the other way."""
    views = [view(looking((0.0, 0.0), 0.6, 25, side), slice(None, None, apart_))
             for side in (195, 202)]  # fmt: skip
    turn, metres = apart(found(views), TRUTH)
    assert np.degrees(turn) < 2
    assert metres < 0.02


@pytest.mark.parametrize("views", [[], [view(looking((0.0, 0.0), 0.6, 25, 20), slice(3))]])
def test_nothing_remembered_says_nothing(views):
    assert found(views) is None


def test_a_plain_picture_says_nothing():
    plain = np.full((360, 640), 120, np.uint8)
    assert relocalised(FINDER, [view(TRUTH)], plain, STRAIGHT) is None
