"""Crops that later stages look at: a square of the frame, turned so that what is in it is upright.

Every crop is one affine map (2, 3) from frame pixels to its own; results go back by its inverse.
Both are measured from the corner of the picture, as a resize does it: the middle of the first pixel
is at a half.
"""

from __future__ import annotations

import cv2
import numpy as np


def upright(centre: np.ndarray, up: np.ndarray, side: float, size: int) -> np.ndarray:
    """The map to ``size`` x ``size`` pixels from the square around ``centre`` (2,) that is ``side``
    frame pixels wide. ``up`` (2,) is the direction that points up in it, of any length; straight up
    where it has none."""
    length = float(np.hypot(up[0], up[1]))
    up = up / length if length > 1e-6 else np.array([0.0, -1.0], np.float32)
    across = np.array([-up[1], up[0]])  # a quarter turn clockwise on the screen: the crop's x
    turn = size / max(side, 1.0) * np.stack([across, -up])
    return np.column_stack([turn, size / 2 - turn @ centre])


def cut(image: np.ndarray, to_crop: np.ndarray, size: int) -> np.ndarray:
    """The crop (size, size, 3); outside of the frame its edge goes on, as MediaPipe has it."""
    turn, shift = to_crop[:, :2], to_crop[:, 2]
    middles = np.column_stack([turn, shift + turn.sum(axis=1) / 2 - 0.5])  # warps count from those
    edge = cv2.BORDER_REPLICATE
    return cv2.warpAffine(image, middles, (size, size), flags=cv2.INTER_LINEAR, borderMode=edge)


def to_frame(points: np.ndarray, to_crop: np.ndarray) -> np.ndarray:
    """Crop points (n, 2 or 3) in the frame, float32; z grows as x and y do."""
    back = cv2.invertAffineTransform(to_crop)
    found = points.astype(np.float32)
    found[:, :2] = found[:, :2] @ back[:, :2].T.astype(np.float32) + back[:, 2]
    found[:, 2:] *= float(np.hypot(back[0, 0], back[1, 0]))
    return found


def turned_to_frame(points: np.ndarray, to_crop: np.ndarray) -> np.ndarray:
    """Points in metres (n, 3) along the crop's axes along those of the frame, float32."""
    turn = to_crop[:, :2] / np.hypot(to_crop[0, 0], to_crop[1, 0])
    found = points.astype(np.float32)
    found[:, :2] = found[:, :2] @ turn.astype(np.float32)
    return found


def sigmoid(logit: float) -> float:
    """A score 0..1; far below 0 too."""
    return float(0.5 * (1 + np.tanh(0.5 * float(logit))))
