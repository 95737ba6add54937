"""Pictures are known by their features in the size in which they are seen."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.rendered import painted
from heimdall.tracking.pose.features import described, learnt, matched

GREY = cv2.cvtColor(painted(3), cv2.COLOR_BGR2GRAY)


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.3])
def test_a_picture_is_known_in_any_size(scale):
    descriptors, places = learnt(GREY)
    seen = cv2.resize(GREY, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    frame = cv2.copyMakeBorder(seen, 60, 60, 60, 60, cv2.BORDER_CONSTANT, value=120)
    there, found = described(frame, 500, 2)
    pairs = matched(found, descriptors, places)
    assert len(pairs) >= 20
    own = (there[pairs[:, 0]] - 60 + 0.5) / scale - 0.5
    right = np.linalg.norm(own - places[pairs[:, 1]], axis=1) < 0.02 * GREY.shape[1]
    assert right.mean() > 0.6


def test_another_picture_is_not():
    descriptors, places = learnt(GREY)
    other = cv2.cvtColor(painted(4), cv2.COLOR_BGR2GRAY)
    _, found = described(other, 500, 2)
    assert len(matched(found, descriptors, places)) < 0.06 * len(found)


def test_what_has_no_corners_has_no_features():
    there, found = described(np.full((240, 320), 90, np.uint8), 500, 2)
    assert there.shape == (0, 2)
    assert matched(found, *learnt(GREY)).shape == (0, 2)
    assert len(learnt(np.full((90, 90), 90, np.uint8))[0]) == 0
