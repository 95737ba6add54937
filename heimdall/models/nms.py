"""Non-maximum suppression: of boxes that overlap, keep the best."""

from __future__ import annotations

import numpy as np


def pairwise_iou(boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of every two of ``boxes`` (n, 4: left, top, right, bottom)."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    return shared / np.maximum(area[:, None] + area[None, :] - shared, 1e-9)


def nms(
    boxes: np.ndarray,
    scores: np.ndarray,
    iou: float,
    *,
    classes: np.ndarray | None = None,
    limit: int = 100,
) -> np.ndarray:
    """Indices of the boxes to keep, best first: at most ``limit`` candidates are looked at.

    Boxes of different ``classes`` (n,) never suppress one another.
    """
    order = np.argsort(-scores, kind="stable")[:limit]
    overlaps = pairwise_iou(boxes[order]) > iou
    if classes is not None:
        overlaps &= classes[order][:, None] == classes[order][None, :]
    alive = np.ones(len(order), bool)
    for index in range(len(order)):
        if alive[index]:
            alive[index + 1 :] &= ~overlaps[index, index + 1 :]
    return order[alive]
