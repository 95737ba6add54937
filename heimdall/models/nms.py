"""Non-maximum suppression: of boxes that overlap, keep the best."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

_FAR = 1e6  # pixels: places beyond it, infinity included, count as there


def pairwise_iou(boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of every two of ``boxes`` (n, 4: left, top, right, bottom)."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=2)
    area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    return shared / np.maximum(area[:, None] + area[None, :] - shared, 1e-9)


def nms(
    boxes: np.ndarray, scores: np.ndarray, iou: float, *, classes: np.ndarray | None = None
) -> np.ndarray:
    """Indices of the boxes to keep, best first.

    Boxes (n, 4: left, top, right, bottom) of different ``classes`` (n,) never suppress one
    another.
    """
    if not len(boxes):
        return np.zeros(0, np.intp)
    corners = np.nan_to_num(np.asarray(boxes, np.float64)).clip(-_FAR, _FAR)
    # OpenCV moves each class by the largest place: classes overlap where a place is negative.
    corners -= min(corners.min(), 0)
    rectangles = np.hstack([corners[:, :2], corners[:, 2:] - corners[:, :2]])
    kinds = np.zeros(len(boxes), np.intp) if classes is None else classes
    keep: Any = cv2.dnn.NMSBoxesBatched  # its stub says lists; it takes arrays
    kept = keep(rectangles, scores, kinds, -np.finfo(np.float32).max, iou)
    return np.asarray(kept, np.intp)
