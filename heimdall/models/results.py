"""Results that apps receive. Coordinates are pixels of the frame the DNN ran on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Detection:
    """A box (left, top, right, bottom) with a label, a score in 0..1 and optional key points."""

    label: str
    score: float
    box: tuple[float, float, float, float]
    points: np.ndarray | None = None  # (n, 2) pixels


@dataclass(frozen=True)
class Mask:
    """Probability 0..1 of each cell, float32 (h, w), stretched over the whole frame."""

    values: np.ndarray


@dataclass(frozen=True)
class Hand:
    """21 points (x, y in frame pixels, z relative), a score, and "left" or "right"."""

    points: np.ndarray  # (21, 3) float32
    score: float
    side: str

    @property
    def pinch(self) -> float:
        """Thumb tip to index tip, over the palm's length: below about 0.35 it is a pinch."""
        tip = np.linalg.norm(self.points[4, :2] - self.points[8, :2])
        palm = np.linalg.norm(self.points[0, :2] - self.points[9, :2])
        return float(tip / max(palm, 1e-6))

    @property
    def pointing(self) -> bool:
        """The index finger is stretched out, the middle finger is not."""
        index, middle = np.linalg.norm(self.points[[8, 12], :2] - self.points[0, :2], axis=1)
        return bool(index > 1.25 * middle)


@dataclass(frozen=True)
class Body:
    """17 joints (COCO order): (x, y in frame pixels, score)."""

    joints: np.ndarray  # (17, 3) float32


@dataclass(frozen=True)
class TextRegion:
    """A text line as a quadrilateral (4, 2) in frame pixels, clockwise from the top left."""

    corners: np.ndarray
    score: float


@dataclass(frozen=True)
class Picture:
    """An output picture, RGB uint8 (h, w, 3)."""

    image: np.ndarray
