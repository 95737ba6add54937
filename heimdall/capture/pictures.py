"""What a picture is: BGR uint8 (h, w, 3). What can be made one is converted, the rest refused."""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.errors import ConfigError


def check_picture(image: object) -> None:
    """Raise ConfigError for what is no picture."""
    if not isinstance(image, np.ndarray):
        raise ConfigError(f"a frame is a numpy array, BGR uint8 (h, w, 3), not {type(image)}")
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ConfigError(
            f"a frame is BGR uint8 of shape (height, width, 3), not {image.dtype} of {image.shape}"
        )


def as_picture(image: object) -> np.ndarray:
    """A picture as cameras and decoders give it: grey and BGRA ones, and those of 16 bits, become
    BGR uint8 (h, w, 3). Raises ConfigError for anything else."""
    if isinstance(image, np.ndarray) and image.size:
        if image.dtype == np.uint16:
            image = (image >> 8).astype(np.uint8)
        if image.dtype == np.uint8:
            if image.ndim == 2 or (image.ndim == 3 and image.shape[2] == 1):
                return cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
            if image.ndim == 3 and image.shape[2] == 4:
                return cv2.cvtColor(image, cv2.COLOR_BGRA2BGR)
    check_picture(image)
    assert isinstance(image, np.ndarray)
    return image
