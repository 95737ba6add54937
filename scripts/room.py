"""Renders the clip that shopping plays where there is no camera.

python scripts/room.py    writes assets/media/room.mp4 and room.camera.toml
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import cv2
import numpy as np

from benchmarks.home import CAMERA, CLIP, FPS, SIZE, Home
from heimdall.capture.camera_files import write_camera
from scripts.page import film


def pictures(room: Home) -> Iterator[np.ndarray]:
    """Of the clip, with the shading of a lens."""
    y, x = np.mgrid[-1 : 1 : SIZE[1] * 1j, -1 : 1 : SIZE[0] * 1j]
    shade = (1.04 - 0.1 * x * x - 0.1 * y * y)[..., None]
    for number in range(room.frames):
        seen = cv2.resize(room.look(number / FPS), SIZE, interpolation=cv2.INTER_AREA)
        yield np.clip(seen * shade, 0, 255).astype(np.uint8)


def main() -> int:
    """Write both."""
    write_camera(CLIP.with_suffix(".camera.toml"), CAMERA)
    film(CLIP, pictures(Home()), SIZE, FPS, crf=35)
    print(f"{CLIP.name}  {CLIP.stat().st_size / 1e3:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
