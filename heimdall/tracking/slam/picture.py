"""A frame as the tracker looks at it: grey, reduced, in halvings, with what blurs it."""

from __future__ import annotations

import copy

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.models.letterbox import shrink
from heimdall.tracking.patch import moved
from heimdall.tracking.pose.features import described

SIDE_PX = 800  # the longer side: larger pictures are reduced by whole halves
WINDOW = 15  # of the search for a point
THUMB = (40, 30)  # by which pictures are compared as wholes
SAME, KEPT = 0.05, 0.95  # of a bent picture: how much more may be bent, how many points stay in it
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
        self._bent: Bent | None = None

    def zoomed(self, times: float) -> Picture:
        """The same picture, by a lens that is so many times longer."""
        made = copy.copy(self)
        made.lens = self.lens.zoomed(times)
        return made

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.grey.shape[1], self.grey.shape[0]

    def bent(self, by: np.ndarray, places: np.ndarray) -> Bent:
        """This picture bent by an affine map (2, 3), or by one much like it for which that was done
        already: a camera moves little from frame to frame. ``places`` (n, 2) must stay in it."""
        made = self._bent
        if made is None or made.apart(by) > SAME or not self._keeps(made, places, by):
            made = self._bent = Bent(self.grey, by)
        return made

    def _keeps(self, made: Bent, places: np.ndarray, by: np.ndarray) -> bool:
        """Whether about as many places lie in what was made as would by another map."""
        now, then = (self.inside(moved(each, places), WINDOW).sum() for each in (made.by, by))
        return bool(now >= KEPT * then)

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


class Bent:
    """A picture ``by`` an affine map (2, 3): ``grey``, and that in ``half`` the size."""

    def __init__(self, grey: np.ndarray, by: np.ndarray) -> None:
        self.by = by
        size = grey.shape[1], grey.shape[0]
        self.grey = cv2.warpAffine(
            grey, by, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        self.half = halved(self.grey)

    def apart(self, by: np.ndarray) -> float:
        """By how much another map bends what is seen here, moves left out."""
        return float(np.abs(by[:, :2] @ np.linalg.inv(self.by[:, :2]) - np.eye(2)).max())


def halved(grey: np.ndarray) -> np.ndarray:
    """A picture at half its size: each pixel is the mean of four."""
    return cv2.resize(grey, (grey.shape[1] // 2, grey.shape[0] // 2), interpolation=cv2.INTER_AREA)
