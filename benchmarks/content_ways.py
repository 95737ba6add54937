"""What it takes to send content with its opacity, in several ways: 300 frames of a couch that
moves, and of a card beside it.

    python -m benchmarks.content_ways --size 640x480

`H264`, `VP8`: colours above, opacity below, in one video. `WebP`, `PNG`: the part of each frame
that has content, for itself.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping

import cv2
import numpy as np

from heimdall.app.options import parse_size
from heimdall.render import Scene, open_surface
from heimdall.render.encoder import Drawn
from heimdall.render.preview.video import CODECS, Video

FRAMES = 300
INTERVAL_NS = 33_333_333
QUALITY = 80


def content(size: tuple[int, int]) -> list[np.ndarray]:
    """RGBA uint8 (h, w, 4), bottom row first, premultiplied."""
    width, height = size
    frames = []
    with open_surface(size, headless=True) as surface:
        surface.see_through = True
        scene, camera = Scene(surface), np.zeros((height, width, 3), np.uint8)
        for number in range(-2, FRAMES):
            along = np.sin(number / 40)
            scene.begin(camera, number)
            where = (width * (0.55 + 0.2 * along), height * 0.8)
            scene.model("couch.glb", where, width=width / 3)
            scene.text(f"Hygge sofa\n{1 + number // 30} of 10", (where[0], height * 0.3))
            scene.render()
            scene.settle()
            if number >= 0:
                pixels = np.empty((height, width, 4), np.uint8)
                surface.pixels.read(surface.framebuffer, pixels)
                frames.append(surface.pixels.in_order(pixels))
        scene.close()
    return frames


def video(codec: str) -> Callable[[np.ndarray, int], int]:
    """Bytes of a frame, by number."""
    encoding = Video(codec, opacity=True)
    return lambda pixels, number: len(encoding(pixels, Drawn(number * INTERVAL_NS)).data)


def patch(ending: str, options: list[int]) -> Callable[[np.ndarray, int], int]:
    """The same, each frame for itself."""

    def encode(pixels: np.ndarray, number: int) -> int:
        x, y, width, height = cv2.boundingRect(pixels[..., 3])
        part = cv2.flip(pixels[y : y + height, x : x + width], 0)
        straight = cv2.cvtColor(part, cv2.COLOR_RGBA2BGRA)
        return len(cv2.imencode(ending, straight, options)[1])

    return encode


def measure(frames: list[np.ndarray], encode: Callable[[np.ndarray, int], int]) -> dict[str, float]:
    """ms and kB a frame."""
    took, sent = [], []
    for number, pixels in enumerate(frames):
        began = time.perf_counter()
        sent.append(encode(pixels, number))
        took.append(1000 * (time.perf_counter() - began))
    return {
        "p50_ms": round(statistics.median(took), 2),
        "p99_ms": round(float(np.percentile(took, 99)), 2),
        "kilobytes": round(statistics.mean(sent) / 1000, 2),
        "megabit_s": round(8 * 30 * statistics.mean(sent) / 1e6, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=parse_size, default=(640, 480))
    frames = content(parser.parse_args().size)
    ways: Mapping[str, Callable[[np.ndarray, int], int]] = {
        **{codec: video(codec) for codec in CODECS},
        "WebP": patch(".webp", [cv2.IMWRITE_WEBP_QUALITY, QUALITY]),
        "PNG": patch(".png", [cv2.IMWRITE_PNG_COMPRESSION, 1]),
    }
    for name, encode in ways.items():
        print(json.dumps({"way": name, **measure(frames, encode)}), flush=True)


if __name__ == "__main__":
    main()
