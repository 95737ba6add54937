from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heimdall.models.nms import nms, pairwise_iou

corners = arrays(np.float32, (12, 2), elements=st.floats(0, 100, width=32))


def test_iou_of_known_boxes() -> None:
    boxes = np.array([[0, 0, 10, 10], [5, 0, 15, 10], [20, 20, 30, 30]], np.float32)
    overlap = pairwise_iou(boxes)
    assert overlap[0].tolist() == pytest.approx([1, 1 / 3, 0])


@given(corners, corners, arrays(np.float32, 12, elements=st.floats(0, 1, width=32)))
def test_kept_boxes_do_not_overlap_and_dropped_ones_do(low, size, scores) -> None:
    boxes = np.concatenate([low, low + size + 1], axis=1)
    kept = nms(boxes, scores, 0.4)
    overlap = pairwise_iou(boxes)
    among = overlap[np.ix_(kept, kept)] - np.eye(len(kept))
    assert among.max() <= 0.4 + 1e-6
    for index in set(range(12)) - set(kept.tolist()):
        assert any(overlap[index, k] > 0.4 and scores[k] >= scores[index] for k in kept)
    assert (np.diff(scores[kept]) <= 0).all()


def test_classes_do_not_suppress_one_another() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 10]], np.float32)
    scores = np.array([0.5, 0.9], np.float32)
    assert nms(boxes, scores, 0.5).tolist() == [1]
    assert nms(boxes, scores, 0.5, classes=np.array([3, 4])).tolist() == [1, 0]


def test_nothing_in_nothing_out() -> None:
    assert len(nms(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 0.5)) == 0


def test_a_crowd_keeps_everyone() -> None:
    """400 people, each found by 20 cells: the best 100 boxes are those of a few of them."""
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 1, 2) * 30.0
    corners = (places + rng.uniform(-1, 1, (400, 20, 2))).reshape(-1, 2)
    boxes = np.concatenate([corners, corners + 20], axis=1).astype(np.float32)
    sure = np.repeat(np.linspace(0.5, 0.9, 400), 20) + rng.uniform(0, 0.05, 8000)
    kept = nms(boxes, sure.astype(np.float32), 0.5)
    assert set(kept // 20) == set(range(400))
    assert len(kept) == 400


def test_classes_stay_apart_where_boxes_leave_the_picture() -> None:
    """OpenCV alone moves the second box, of class 1, by 411 and so onto the first."""
    boxes = np.array([[300, 300, 410, 410], [-111, -111, -1, -1]], np.float32)
    scores = np.array([0.9, 0.8], np.float32)
    assert nms(boxes, scores, 0.5, classes=np.array([0, 1])).tolist() == [0, 1]


@pytest.mark.parametrize("broken", [np.inf, -np.inf, np.nan])
def test_a_box_that_is_not_finite_removes_no_other(broken) -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, broken, 10], [50, 50, 60, 60]], np.float32)
    kept = nms(boxes, np.array([0.9, 0.8, 0.7], np.float32), 0.5, classes=np.array([0, 0, 1]))
    assert {0, 2} <= set(kept.tolist())
