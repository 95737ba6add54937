"""Runs real pipelines: every stage through onnxruntime, as the engines would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

Run = Callable[..., Any]


@pytest.fixture(scope="session")
def clip_frame() -> Callable[[str, int], np.ndarray]:
    """``clip_frame("box.mp4", 30)``: that frame of a bundled clip."""
    from heimdall.system import paths

    def read(name: str, index: int) -> np.ndarray:
        for number, image in enumerate(_frames(paths.ASSETS / "media" / name)):
            if number == index:
                return image
        raise AssertionError(f"{name} has no frame {index}")

    return read


@pytest.fixture(scope="session")
def five_people() -> np.ndarray:
    from heimdall.system import paths

    return cv2.imread(str(paths.ASSETS / "media" / "multi_face.jpg"))


def _frames(path: Path) -> Iterator[np.ndarray]:
    capture = cv2.VideoCapture(str(path))
    try:
        while True:
            ok, image = capture.read()
            if not ok:
                return
            yield image
    finally:
        capture.release()
