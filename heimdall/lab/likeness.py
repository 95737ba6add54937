"""How alike two results are, 0 to 1: of two networks, or of one network at two times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heimdall.models.results import Detection, Hand, Label, Mask

SURE = 0.5  # probability from which a mask's cell counts
BOTH_EMPTY = 1.0  # nothing there and nothing shown
NEAR = 0.1  # of a hand's size: a point that is no further off is where it belongs


def likeness(result: Any, truth: Any) -> float | None:
    """Of boxes and masks the intersection over union, of a hand the share of its points that are
    within ``NEAR`` of its size, of labels whether they are the same. None where both are empty,
    which tells nothing. Raises TypeError for other results."""
    if isinstance(truth, Mask):
        return mask_iou(result, truth)
    if isinstance(truth, Label):
        return float(result.name == truth.name)
    if truth is None or isinstance(truth, Hand):
        return hand_likeness(result, truth)
    if isinstance(truth, list) and all(isinstance(each, Detection) for each in [*truth, *result]):
        return boxes_iou(result, truth) if truth or result else None
    raise TypeError(f"results of type {type(truth).__name__} are not compared")


def hand_likeness(result: Hand | None, truth: Hand | None) -> float | None:
    """The share of points within ``NEAR`` of the hand's size, which is the longer side of the box
    around its points; 0 where only one of them is a hand."""
    if result is None and truth is None:
        return None
    if result is None or truth is None:
        return 0.0
    off = np.linalg.norm(result.points[:, :2] - truth.points[:, :2], axis=1)
    return float((off <= NEAR * np.ptp(truth.points[:, :2], axis=0).max()).mean())


def mask_iou(shown: Mask, truth: Mask) -> float:
    """IoU of the cells that are sure."""
    one, other = shown.values > SURE, truth.values > SURE
    union = np.count_nonzero(one | other)
    return np.count_nonzero(one & other) / union if union else BOTH_EMPTY


def boxes_iou(shown: Sequence[Detection], truth: Sequence[Detection]) -> float:
    """Mean over the true boxes of the best match of their label; a box too many counts as 0."""
    if not truth:
        return 0.0 if shown else BOTH_EMPTY
    best = [
        max((box_iou(s.box, t.box) for s in shown if s.label == t.label), default=0.0)
        for t in truth
    ]
    return sum(best) / max(len(truth), len(shown))


def box_iou(one: Sequence[float], other: Sequence[float]) -> float:
    """IoU of two boxes (left, top, right, bottom)."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(0.0, wide) * max(0.0, high)
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared) if areas > shared else 0.0
