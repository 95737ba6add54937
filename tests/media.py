"""Clips and pictures as tests make them: small ones, with what containers state of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from av.video.stream import VideoStream

GREEN, WHITE = (30, 160, 60), (255, 255, 255)  # RGB
NEAR = 9  # levels that coding costs
Prepare = Callable[[Any], object]


def scene(width: int = 64, height: int = 48) -> np.ndarray:
    """Green, RGB uint8, with a white square at the top left."""
    image = np.full((height, width, 3), GREEN, np.uint8)
    image[: height // 4, : height // 4] = WHITE
    return image


def make(
    path: Path,
    images: Sequence[np.ndarray],
    *,
    prepare: Prepare = lambda stream: None,
    codec: str = "libx264",
    form: str = "yuv420p",
    times_ms: Sequence[int] | None = None,
    convert: Callable[[av.VideoFrame], av.VideoFrame] = lambda frame: frame,
    rate: int = 25,
    **options: str,
) -> Path:
    """A clip of RGB images; ``prepare`` sets what its stream states."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=options)
        assert isinstance(stream, VideoStream)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = form
        if times_ms:
            stream.codec_context.time_base = Fraction(1, 1000)
        prepare(stream)
        for number, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            if times_ms:
                frame.pts, frame.time_base = times_ms[number], Fraction(1, 1000)
            stated = convert(frame)
            stated.pts = frame.pts
            container.mux(stream.encode(stated))
        container.mux(stream.encode())
    return path


def near(pixel: np.ndarray, rgb: Sequence[int], most: int = NEAR) -> bool:
    """True if a BGR pixel has that colour."""
    return bool(np.abs(pixel[::-1].astype(int) - rgb).max() <= most)
