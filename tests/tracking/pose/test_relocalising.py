"""The camera is found by what several views say together."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.tracking.pose.reference import Reference
from heimdall.tracking.pose.relocalising import relocalised
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.pose.views import View
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


def test_views_say_together_where_the_camera_is():
    here = looking((0.0, 0.0), 0.6, 25, 202)
    few = [view(here, slice(first, None, 5)) for first in range(5)]
    assert np.degrees(apart(found(few), TRUTH)[0]) < 2


@pytest.mark.parametrize("views", [[], [view(looking((0.0, 0.0), 0.6, 25, 20), slice(3))]])
def test_nothing_remembered_says_nothing(views):
    assert found(views) is None


def test_a_plain_picture_says_nothing():
    plain = np.full((360, 640), 120, np.uint8)
    assert relocalised(FINDER, [view(TRUTH)], plain, STRAIGHT) is None
