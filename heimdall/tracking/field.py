"""A piece of the picture that moves in itself: a person, an arm, whatever a mask covers.

Sparse points do not tell how an outline moves that crosses a plain wall, so masks follow a dense
flow. When this was decided, on the bundled clips with results 900 ms old, a similarity of the
points on the mask reached an IoU of 0.60 (a hand with a box) and 0.44 (with a cup), their movement
spread between them 0.64 and 0.45, the dense flow 0.71 and 0.52. A finer flow adds nothing: OpenCV's
medium preset, ten times as slow, carries the masks of docs/laboratory/accuracy.md no
better than to 0.01.
"""

from __future__ import annotations

import functools
from typing import Any

import cv2
import numpy as np

from heimdall.tracking.flow import Tracks

_ONE_MAP: Any = None  # x and y come in one array (OpenCV's type hints know only two)


class Field:
    """Where every cell of the newest frame was in the frame of ``tracks``, for ``values`` (h, w)
    that lie over that.

    Kept on the grid of ``Tracks.back``; a frame without it counts as still.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._sources: np.ndarray | None = None  # (rows, columns, 2), of the values; None: still

    def follow(self, tracks: Tracks) -> None:
        """Go on to the next frame."""
        if tracks.back is None:
            return
        before = cells(tracks.back.shape) + tracks.back
        if self._sources is None:
            self._sources = self._of_values(before)
        else:
            self._sources = _sampled(self._sources, before)

    def _of_values(self, places: np.ndarray) -> np.ndarray:
        """Places on the grid as places in ``values``."""
        across, down = self._shape[1] / places.shape[1], self._shape[0] / places.shape[0]
        unit = np.array([[across, 0, (across - 1) / 2], [0, down, (down - 1) / 2]])
        return cv2.transform(places, unit)

    def warped(self, values: np.ndarray) -> np.ndarray:
        """``values`` over the own frame, float32, as they lie over the newest."""
        if self._sources is None:
            return values
        return _sampled(values, cv2.resize(self._sources, self._shape[::-1]))


def _sampled(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What ``values`` hold at ``places`` (h, w, 2: x, y), or at the edge nearest to them."""
    return cv2.remap(values, places, _ONE_MAP, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


@functools.lru_cache(maxsize=4)
def cells(shape: tuple[int, ...]) -> np.ndarray:
    """The places (rows, columns, 2) of a grid's own cells: x, y. Not to be written to."""
    x, y = np.meshgrid(np.arange(shape[1]), np.arange(shape[0]))
    return np.dstack([x, y]).astype(np.float32)
