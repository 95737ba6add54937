"""A frame as the tracker looks at it: grey, reduced, in halvings, with what blurs it."""

from __future__ import annotations

import copy

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.models.letterbox import shrink
from heimdall.tracking.pose.features import described

SIDE_PX = 800  # the longer side: larger pictures are reduced by whole halves
WINDOW = 15  # of the search for a point
THUMB = (40, 30)  # by which pictures are compared as wholes
FEATURES, LEVELS = 500, 2  # at most, in so many halvings


class Picture:
    """``grey`` uint8, at most ``SIDE_PX`` long, and the ``lens`` that goes with that size."""

    def __init__(self, image: np.ndarray, camera: Camera, gain: float = 1.0) -> None:
        grey: np.ndarray = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        step = 1
        while max(grey.shape) / step > SIDE_PX:
            step *= 2
        if step > 1:
            grey = shrink(grey, grey.shape[1] // step, grey.shape[0] // step)
        if abs(gain - 1) > 0.02:
            lit = np.clip(np.arange(256) * gain, 0, 255).round().astype(np.uint8)
            grey = cv2.LUT(grey, lit)
        self.grey: np.ndarray = np.ascontiguousarray(grey)
        self.lens = camera.scaled(grey.shape[1], grey.shape[0])
        self.half = halved(self.grey)
        self._thumb: np.ndarray | None = None
        self._features: tuple[np.ndarray, np.ndarray] | None = None

    def zoomed(self, times: float) -> Picture:
        """The same picture, by a lens that is so many times longer."""
        made = copy.copy(self)
        made.lens = self.lens.zoomed(times)
        return made

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.grey.shape[1], self.grey.shape[0]

    @property
    def thumb(self) -> np.ndarray:
        """The whole picture in few numbers of mean 0 and length 1, float32."""
        if self._thumb is None:
            small: np.ndarray = cv2.resize(self.grey, THUMB, interpolation=cv2.INTER_AREA).astype(
                np.float32
            )
            small = cv2.GaussianBlur(small, (0, 0), 1.5)
            small -= small.mean()
            self._thumb = (small / max(float(np.linalg.norm(small)), 1e-6)).ravel()
        return self._thumb

    @property
    def features(self) -> tuple[np.ndarray, np.ndarray]:
        """Places (n, 2) and descriptors (n, 32) of what it is found again by."""
        if self._features is None:
            self._features = described(self.grey, FEATURES, LEVELS)
        return self._features

    @property
    def detail(self) -> float:
        """How much there is to see: the standard deviation of grey levels."""
        eighth = self.size[0] // 8, self.size[1] // 8
        small = cv2.resize(self.grey, eighth, interpolation=cv2.INTER_AREA)
        return float(cv2.meanStdDev(small)[1][0, 0])

    def inside(self, pixels: np.ndarray, margin: float) -> np.ndarray:
        """Which of the pixels (n, 2) lie in the picture, away from its edge."""
        width, height = self.size
        x, y = pixels.T
        return np.asarray(
            (x >= margin) & (y >= margin) & (x < width - 1 - margin) & (y < height - 1 - margin)
        )


def halved(grey: np.ndarray) -> np.ndarray:
    """A picture at half its size: each pixel is the mean of four."""
    return cv2.resize(grey, (grey.shape[1] // 2, grey.shape[0] // 2), interpolation=cv2.INTER_AREA)
