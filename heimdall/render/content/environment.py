"""Environment maps: pictures of everything around, .exr (package OpenEXR), .hdr, .png or .jpg."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content.files import naming, read_bytes
from heimdall.render.content.light import Room, room
from heimdall.system.extras import line

_MOST_PIXELS = 64_000_000


def read_room(path: Path) -> Room:
    """The light of an equirectangular map. Raises ModelError for what cannot be read."""
    with naming(path):
        around = _exr(path) if path.suffix.lower() == ".exr" else _picture(path)
        if not around.size or not np.isfinite(around).any():
            raise ModelError("an environment map without light")
        return room(around)


def _picture(path: Path) -> np.ndarray:
    """Linear RGB float32 (h, w, 3)."""
    content = np.frombuffer(read_bytes(path), np.uint8)
    found = cv2.imdecode(content, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR) if content.size else None
    if found is None:
        raise ModelError("not a picture that can be read (.exr, .hdr, .png or .jpg)")
    linear = found[..., ::-1].astype(np.float32)
    if found.dtype == np.float32:
        return linear
    return np.asarray((linear / (255 if found.dtype == np.uint8 else 65535)) ** 2)


def _exr(path: Path) -> np.ndarray:
    try:
        import OpenEXR
    except ImportError as error:
        raise ModelError(
            f".exr files need OpenEXR: {line('model3d')}; or give a .hdr file"
        ) from error
    read_bytes(path)  # says what is wrong with a file that cannot be opened
    try:
        with OpenEXR.File(str(path)) as file:
            channels = file.channels()
            if "RGB" in channels or "RGBA" in channels:
                pixels = channels["RGB" if "RGB" in channels else "RGBA"].pixels[..., :3]
            else:
                pixels = np.stack([channels[name].pixels for name in "RGB"], axis=-1)
    except Exception as error:  # it raises bare ones
        raise ModelError(f"not an .exr that can be read ({error})") from error
    if pixels.shape[0] * pixels.shape[1] > _MOST_PIXELS:
        raise ModelError(f"{pixels.shape[1]} x {pixels.shape[0]} is too large")
    return np.asarray(pixels, np.float32)
