"""Environment maps: pictures of everything around, .exr (package OpenEXR), .hdr, .png or .jpg.
Which of these a file is, its content says."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import cv2
import numpy as np
from PIL import Image as Pictures

from heimdall.errors import ModelError
from heimdall.render.content.files import naming, read_bytes
from heimdall.render.content.light import Room, room
from heimdall.system.extras import line

_MOST_PIXELS = 64_000_000
_EXR = b"\x76\x2f\x31\x01"
_HDR = re.compile(rb"^[-+][XY] +(\d+) +[-+][XY] +(\d+)$", re.MULTILINE)  # its line of the sides
_NO_PICTURE = "not a picture that can be read (.exr, .hdr, .png or .jpg)"
_HEADER = 4096  # bytes, in which that is


def read_room(path: Path) -> Room:
    """The light of an equirectangular map. Raises ModelError for what cannot be read."""
    with naming(path):
        content = read_bytes(path)
        around = _exr(path) if content.startswith(_EXR) else _picture(content)
        if not around.size or not np.isfinite(around).any():
            raise ModelError("an environment map without light")
        return room(around)


def _picture(content: bytes) -> np.ndarray:
    """Linear RGB float32 (h, w, 3)."""
    _check(*_sides(content))
    data = np.frombuffer(content, np.uint8)
    try:
        found = cv2.imdecode(data, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR)
    except cv2.error:
        found = None
    if found is None:
        raise ModelError(_NO_PICTURE)
    linear = found[..., ::-1].astype(np.float32)
    if found.dtype == np.float32:
        return linear
    return np.asarray((linear / (255 if found.dtype == np.uint8 else 65535)) ** 2)


def _sides(content: bytes) -> tuple[int, int]:
    """Of a picture that is not decoded yet."""
    if content.startswith(b"#?") and (sides := _HDR.search(content[:_HEADER])):
        return int(sides[1]), int(sides[2])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Pictures.open(io.BytesIO(content)) as picture:
                return picture.size
    except (OSError, ValueError, SyntaxError) as error:
        raise ModelError(_NO_PICTURE) from error
    except Pictures.DecompressionBombError as error:
        raise ModelError(f"too large a picture ({error})") from error


def _check(width: int, height: int) -> None:
    if width * height > _MOST_PIXELS:
        raise ModelError(
            f"a picture of {width} x {height}; at most {_MOST_PIXELS // 10**6} million pixels are "
            "read: make it smaller, the light of 1024 x 512 is the same"
        )


def _exr(path: Path) -> np.ndarray:
    try:
        import OpenEXR
    except ImportError as error:
        raise ModelError(
            f".exr files need OpenEXR: {line('model3d')}; or give a .hdr file"
        ) from error
    try:
        with OpenEXR.File(str(path), header_only=True) as file:
            low, high = file.header()["dataWindow"]
        _check(*(int(side) for side in np.subtract(high, low) + 1))
        with OpenEXR.File(str(path)) as file:
            channels = file.channels()
            if "RGB" in channels or "RGBA" in channels:
                pixels = channels["RGB" if "RGB" in channels else "RGBA"].pixels[..., :3]
            else:
                pixels = np.stack([channels[name].pixels for name in "RGB"], axis=-1)
    except ModelError:
        raise
    except Exception as error:  # it raises bare ones
        raise ModelError(f"not an .exr that can be read ({error})") from error
    return np.asarray(pixels, np.float32)
