"""Pictures of a model as textures: RGBA, sides powers of two, their smaller versions ready.

Powers of two and one pixel format, because llvmpipe compiles a shader anew (tens of ms, in a
frame) for each other kind of texture; smaller versions here, because a software GPU takes
milliseconds to make them.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import cv2
import numpy as np
from PIL import Image as Pictures

from heimdall.errors import ModelError

MOST_PIXELS = 64_000_000  # of a picture that is decoded
_CLAMP, _MIRROR = 33071, 33648


@dataclass(frozen=True)
class Texture:
    """RGBA uint8, the largest first, each half as wide and high as the one before; ``repeat``: it
    goes on beyond its edges, across and up."""

    levels: tuple[np.ndarray, ...]
    repeat: tuple[bool, bool] = (True, True)
    doubled: tuple[bool, bool] = (False, False)  # its mirror image is beside, below it
    smooth: bool = True

    @property
    def nbytes(self) -> int:
        """The bytes of all levels."""
        return sum(level.nbytes for level in self.levels)


def decode(content: bytes, what: str, largest: int) -> np.ndarray:
    """A PNG, JPEG or WebP file as RGBA uint8 (h, w, 4), its sides powers of two and at most
    ``largest``. Its size is looked at before it is decoded."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pictures.open(io.BytesIO(content)) as picture:
                width, height = picture.size
                if width * height > MOST_PIXELS:
                    raise ModelError(
                        f"{what}: a picture of {width} x {height}; at most "
                        f"{MOST_PIXELS // 10**6} million pixels are read"
                    )
                picture.draft("RGB", (largest, largest))
                pixels = np.asarray(picture.convert("RGBA"))
    except (OSError, ValueError, SyntaxError, Pictures.DecompressionBombError) as error:
        raise ModelError(f"{what}: not a picture that can be read ({error})") from error
    return fit(pixels, largest)


def fit(pixels: np.ndarray, largest: int) -> np.ndarray:
    """A picture (h, w, 3 or 4) with sides that are powers of two, at most ``largest``."""
    height, width = pixels.shape[:2]
    size = _power(width, largest), _power(height, largest)
    if size == (width, height):
        return np.ascontiguousarray(pixels)
    shrunk = size[0] <= width and size[1] <= height
    how = cv2.INTER_AREA if shrunk else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, size, interpolation=how))


def textured(pixels: np.ndarray, wrap: tuple[int, int], *, smooth: bool = True) -> Texture:
    """A fitting picture as a texture; ``wrap``: glTF's wrapS and wrapT. Mirroring is done here:
    a picture beside its mirror image simply repeats."""
    if pixels.shape[2] == 3:
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2RGBA)
    across, down = (way == _MIRROR for way in wrap)
    if across:
        pixels = np.hstack([pixels, pixels[:, ::-1]])
    if down:
        pixels = np.vstack([pixels, pixels[::-1]])
    repeat = (wrap[0] != _CLAMP, wrap[1] != _CLAMP)
    return Texture(_levels(pixels), repeat, (across, down), smooth)


def _power(side: int, largest: int) -> int:
    """The power of two nearest to a side."""
    return min(largest, 1 << max(0, round(float(np.log2(max(side, 1))))))


def _levels(pixels: np.ndarray) -> tuple[np.ndarray, ...]:
    levels = [np.ascontiguousarray(pixels)]
    while max(levels[-1].shape[:2]) > 1:
        height, width = levels[-1].shape[:2]
        size = max(width // 2, 1), max(height // 2, 1)
        levels.append(np.asarray(cv2.resize(levels[-1], size, interpolation=cv2.INTER_AREA)))
    return tuple(levels)
