"""Shared geometry: fit a picture into a network's input, and lead points back to the frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.errors import ConfigError


@dataclass(frozen=True)
class Letterbox:
    """How a frame was placed into an input: ``input = frame * scale + (left, top)``.

    ``width`` and ``height`` are the frame's, for clipping. Downwards the scale is ``stretch``
    times as large, where the aspect ratio was not kept.
    """

    scale: float
    left: int
    top: int
    width: int
    height: int
    stretch: float = 1.0

    @property
    def inner(self) -> tuple[int, int]:
        """Width and height of the picture inside the input."""
        return max(1, round(self.width * self.scale)), max(
            1, round(self.height * self.scale * self.stretch)
        )

    def to_frame(self, points: np.ndarray) -> np.ndarray:
        """Input pixels (..., 2) as frame pixels (..., 2), float32."""
        return (np.asarray(points, np.float32) - (self.left, self.top)) / self._scales

    def to_input(self, points: np.ndarray) -> np.ndarray:
        """Frame pixels (..., 2) as input pixels (..., 2), float32."""
        return np.asarray(points, np.float32) * self._scales + (self.left, self.top)

    @property
    def _scales(self) -> np.ndarray:
        return np.array((self.scale, self.scale * self.stretch), np.float32)

    def boxes_to_frame(self, boxes: np.ndarray) -> np.ndarray:
        """Input boxes (n, 4: left, top, right, bottom) as frame boxes, cut at the frame's edge."""
        corners = self.to_frame(np.asarray(boxes, np.float32).reshape(-1, 2, 2))
        return corners.clip(0, (self.width, self.height)).reshape(-1, 4)


def inside(region: Sequence[float] | None, image: np.ndarray) -> tuple[int, int, int, int]:
    """The region in whole pixels, cut at the picture's edge; all of it if nothing is left."""
    height, width = image.shape[:2]
    if region is None:
        return 0, 0, width, height
    left, top = max(int(region[0]), 0), max(int(region[1]), 0)
    right, bottom = min(int(region[2]), width), min(int(region[3]), height)
    if right - left < 2 or bottom - top < 2:
        return 0, 0, width, height
    return left, top, right, bottom


def fit(
    width: int, height: int, target_width: int, target_height: int, *, centred: bool = False
) -> Letterbox:
    """The largest placement of a ``width`` x ``height`` frame in the target, aspect kept."""
    scale = min(target_width / width, target_height / height)
    placement = Letterbox(scale, 0, 0, width, height)
    if not centred:
        return placement
    inner = placement.inner
    left, top = (target_width - inner[0]) // 2, (target_height - inner[1]) // 2
    return Letterbox(scale, left, top, width, height)


def letterbox(
    image: np.ndarray, width: int, height: int, *, centred: bool = False
) -> tuple[np.ndarray, Letterbox]:
    """``image`` (h, w, 3) scaled into a black (height, width, 3) canvas, aspect kept.

    The picture sits in the top left corner, or in the middle when ``centred``.
    """
    placement = fit(image.shape[1], image.shape[0], width, height, centred=centred)
    inner = placement.inner
    if inner == (width, height):
        return shrink(image, width, height), placement
    canvas = np.zeros((height, width, 3), np.uint8)
    top, left = placement.top, placement.left
    canvas[top : top + inner[1], left : left + inner[0]] = shrink(image, *inner)
    return canvas, placement


def shrink(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """``image`` resized to (height, width), without the aliasing of one bilinear step.

    A bilinear resize to twice the size and an exact halving cost 0.2-0.5 ms from any size;
    INTER_AREA alone took 2-8 ms from 640x480-1080p to 416x416 (one x86 core).
    """
    if image.shape[1] > 2 * width and image.shape[0] > 2 * height:
        image = cv2.resize(image, (2 * width, 2 * height), interpolation=cv2.INTER_LINEAR)
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)


def planes(image: np.ndarray, *, rgb: bool, scale: float = 1.0) -> np.ndarray:
    """BGR uint8 (h, w, 3) as a float32 (1, 3, h, w) tensor times ``scale``, RGB or BGR."""
    return cv2.dnn.blobFromImage(image, scalefactor=scale, swapRB=rgb)


def unit_rgb(image: np.ndarray) -> np.ndarray:
    """BGR uint8 (h, w, 3) as a float32 RGB (1, h, w, 3) tensor in 0..1."""
    rgb = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    return np.multiply(rgb, np.float32(1 / 255), dtype=np.float32)[None]


def sides(what: str, size: tuple[int, int], multiple: int) -> tuple[int, int]:
    """``size`` as (height, width), checked to be positive multiples of ``multiple``."""
    try:
        height, width = (int(side) for side in size)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{what} must be (height, width), not {size!r}") from None
    if min(height, width) < multiple or height % multiple or width % multiple:
        raise ConfigError(f"{what} {height}x{width}: both sides must be multiples of {multiple}")
    return height, width
