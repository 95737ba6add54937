"""Pictures that move by known amounts: the truth that tracking must find again."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import pytest

from heimdall.capture import Frame
from heimdall.tracking import Tracker

WIDTH, HEIGHT = 640, 480


@pytest.fixture(scope="session")
def scenery() -> np.ndarray:
    """Soft blobs of all sizes, BGR: corners everywhere, larger than a frame."""
    draw = np.random.default_rng(7)
    picture = np.zeros((HEIGHT + 320, WIDTH + 320, 3), np.float32)
    for sigma in (3, 8, 20):
        noise = cv2.GaussianBlur(draw.standard_normal(picture.shape), (0, 0), sigma)
        picture += (noise / noise.std()).astype(np.float32)
    return cv2.normalize(picture, None, 0, 255, cv2.NORM_MINMAX).astype(np.uint8)


@pytest.fixture
def shot(scenery) -> Callable[..., Frame]:
    """``shot(sequence, x, y)``: what the camera sees when the world has moved by (x, y) pixels;
    ``actor`` (left, top, size) pastes a piece of other texture over it."""
    texture = cv2.rotate(scenery, cv2.ROTATE_180)

    def take(sequence: int, x: float = 0, y: float = 0, actor: tuple | None = None) -> Frame:
        shift = np.array([[1.0, 0, x - 160], [0, 1, y - 160]])
        picture = cv2.warpAffine(scenery, shift, (WIDTH, HEIGHT))
        if actor is not None:
            left, top, size = actor
            picture[top : top + size, left : left + size] = 255 - texture[:size, :size]
        return Frame(picture, sequence, sequence)

    return take


@pytest.fixture
def tracker() -> Tracker:
    made = Tracker()
    made.carried("detect")  # somebody asks: it follows from now on
    return made
