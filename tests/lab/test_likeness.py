"""How alike two results are."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.lab.likeness import box_iou, boxes_iou, likeness, mask_iou
from heimdall.models.results import Detection, Hand, Label, Mask


def face(left: float = 0.0, top: float = 0.0, size: float = 10.0) -> Detection:
    return Detection("face", 1.0, (left, top, left + size, top + size))


def mask(*cells: int) -> Mask:
    return Mask(np.array([cells], np.float32))


def hand(moved: int = 0, by: float = 0.0) -> Hand:
    """A hand of 21 points along a line of 200 pixels; ``moved`` of them lie beside it."""
    points = np.zeros((21, 3), np.float32)
    points[:, 0] = np.arange(21) * 10
    points[:moved, 1] = by
    return Hand(points, 0.9, "left")


def test_iou_of_boxes():
    assert box_iou((0, 0, 10, 10), (0, 0, 10, 10)) == 1
    assert box_iou((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(1 / 3)
    assert box_iou((0, 0, 10, 10), (20, 0, 30, 10)) == 0


def test_missed_and_superfluous_boxes_count_as_nothing():
    assert boxes_iou([face()], [face()]) == 1
    assert boxes_iou([face()], [face(), face(100)]) == 0.5
    assert boxes_iou([face(), face(100)], [face()]) == 0.5
    assert boxes_iou([], [face()]) == 0
    assert boxes_iou([], []) == 1
    assert boxes_iou([Detection("cup", 1, face().box)], [face()]) == 0


def test_iou_of_masks_counts_sure_cells():
    assert mask_iou(mask(1, 1, 0, 0), mask(0, 1, 1, 0)) == pytest.approx(1 / 3)
    assert mask_iou(mask(0, 0), mask(0, 0)) == 1


def test_results_are_compared_by_their_kind():
    assert likeness([face()], [face(5)]) == pytest.approx(1 / 3)
    assert likeness(mask(1, 1, 0), mask(1, 0, 0)) == 0.5
    assert likeness(Label("cup", 0.9), Label("cup", 0.2)) == 1
    assert likeness(Label("cup", 0.9), Label("cat", 0.9)) == 0


def test_of_a_hand_the_points_count_that_are_where_they_belong():
    assert likeness(hand(7, 19.0), hand()) == 1  # within a tenth of its size
    assert likeness(hand(7, 21.0), hand()) == pytest.approx(2 / 3)
    assert likeness(None, hand()) == likeness(hand(), None) == 0


def test_that_nothing_is_there_tells_nothing():
    assert likeness([], []) is None
    assert likeness(None, None) is None
    assert likeness([], [face()]) == likeness([face()], []) == 0


def test_other_results_are_refused():
    with pytest.raises(TypeError, match="str are not compared"):
        likeness("a", "a")
