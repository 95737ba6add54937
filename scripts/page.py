"""Draws the page that the marker app makes come alive, and a clip of it on a table.

python scripts/page.py    writes assets/media/page.png, page.mp4 and page.camera.toml

The clip is rendered: a camera goes around the page, lets it go to the picture's edge, and comes
back to where it began, so that the clip can be looped. Printed at 100%, the page's black square is
80 mm wide.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import av
import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from benchmarks.wood import TABLE_M, table
from heimdall.capture.camera_files import write_camera
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.system.paths import ASSETS

MEDIA = ASSETS / "media"
DICTIONARY, NUMBER, WIDTH_M = cv2.aruco.DICT_4X4_50, 7, 0.08
PAGE_M = (0.148, 0.21)  # A5
DPI = 150
MARKER_UP_M = -0.012  # of its middle above the page's
SIZE, FPS, SECONDS = (640, 480), 30, 9
CAMERA = Camera(*SIZE, 560.0, 560.0, 319.5, 239.5)
FINER = 2  # pixels of a frame are drawn so often in each direction
MOMENTS = (-0.2, 0.0, 0.2)  # of an exposure, in frames


def page() -> np.ndarray:
    """The page as it is printed, grey uint8."""
    dot = DPI / 0.0254  # pixels a metre
    across, down = (round(side * dot) for side in PAGE_M)
    sheet = Image.new("L", (across, down), 255)
    draw = ImageDraw.Draw(sheet)

    def words(text: str, y: float, size: int, bold: bool = False) -> None:
        name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
        font = ImageFont.truetype(str(ASSETS / "fonts" / name), size)
        draw.text((across / 2, y * down), text, fill=30, font=font, anchor="mm")

    words("The rabbit", 0.085, 74, bold=True)
    words("lives on this page.", 0.15, 40)
    words("Show it to your camera:", 0.85, 32)
    words("heimdall run marker", 0.895, 36, bold=True)
    words("Print at 100%. The square is 80 mm wide.", 0.955, 22)
    for x in (0.12, 0.2, 0.3, 0.71, 0.83, 0.9):  # grass
        for blade in (-14, -5, 6, 15):
            foot = (x * across, 0.80 * down)
            draw.line([foot, (foot[0] + 2 * blade, 0.765 * down - abs(blade))], fill=90, width=5)
    side = round(WIDTH_M * dot)
    known = cv2.aruco.getPredefinedDictionary(DICTIONARY)
    marker = cv2.aruco.generateImageMarker(known, NUMBER, side)
    middle = down / 2 - MARKER_UP_M * dot
    sheet.paste(Image.fromarray(marker), (round((across - side) / 2), round(middle - side / 2)))
    return np.asarray(sheet)


def pose(share: float) -> Pose:
    """World (the marker's axes) to camera after a ``share`` of the clip, 0 and 1 the same."""
    turn = 2 * np.pi * share
    around = np.radians(48 * np.sin(turn))
    lean = np.radians(46 - 9 * np.cos(turn) + 6 * np.sin(2 * turn))
    far = 0.43 - 0.1 * np.cos(2 * turn) + 0.03 * np.sin(3 * turn)
    away = np.clip(1.45 - abs(share - 0.73) / 0.15, 0, 1)  # the page leaves the picture, and comes
    away = away * away * (3 - 2 * away)
    spot = np.array([0.015 * np.sin(3 * turn), 0.02 + 0.01 * np.cos(2 * turn), 0.02])
    spot -= np.array([0.5, 0.12, 0.0]) * away
    out = np.array([np.sin(lean) * np.sin(around), -np.sin(lean) * np.cos(around), np.cos(lean)])
    where = spot + far * out
    forward = -out
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    turned = np.stack([right, np.cross(forward, right), forward])
    return Pose(turned, -turned @ where)


def laid(size_m: tuple[float, float], shape: tuple[int, ...], up_m: float = 0.0) -> np.ndarray:
    """From texels to a level plane's points, (3, 3): its middle ``up_m`` up from the marker's."""
    rows, columns = shape[:2]
    x, y = size_m[0] / columns, size_m[1] / rows
    left, top = (x - size_m[0]) / 2, (size_m[1] - y) / 2 + up_m
    return np.array([[x, 0, left], [0, -y, top], [0, 0, 0]])


def frame(share: float, flats: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """One moment, BGR uint8."""
    there = pose(share)
    camera = CAMERA.scaled(SIZE[0] * FINER, SIZE[1] * FINER)
    picture = np.full((camera.height, camera.width, 3), 60, np.uint8)
    for texture, place in flats:
        seen = there.rotation @ place
        seen[:, 2] += there.translation
        into = camera.matrix @ seen
        cv2.warpPerspective(
            texture, into, camera.size, picture, cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_TRANSPARENT,
        )  # fmt: skip
    return cv2.resize(picture, SIZE, interpolation=cv2.INTER_AREA)


def main() -> int:
    """Write all three."""
    sheet = page()
    Image.fromarray(sheet).quantize(16).save(MEDIA / "page.png", dpi=(DPI, DPI), optimize=True)
    write_camera(MEDIA / "page.camera.toml", CAMERA)
    paper = cv2.cvtColor((sheet * 0.92 + 6).astype(np.uint8), cv2.COLOR_GRAY2BGR)
    small = cv2.resize(paper, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    wood = table()
    flats = [
        (wood, laid((TABLE_M, TABLE_M), wood.shape)),
        (small, laid(PAGE_M, small.shape, -MARKER_UP_M)),
    ]
    film(MEDIA / "page.mp4", clip(flats), SIZE, FPS, crf=36)
    for name in ("page.png", "page.mp4"):
        print(f"{name}  {(MEDIA / name).stat().st_size / 1e3:.0f} kB")
    return 0


def film(
    path: Path, pictures: Iterable[np.ndarray], size: tuple[int, int], fps: int, crf: int
) -> None:
    """A clip of pictures, BGR uint8, as small as it gets at that quality."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=fps)
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        stream.options = {"crf": str(crf), "preset": "veryslow", "tune": "animation"}
        for picture in pictures:
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")):
                file.mux(packet)
        for packet in stream.encode(None):
            file.mux(packet)


def clip(flats: list[tuple[np.ndarray, np.ndarray]]) -> Iterator[np.ndarray]:
    """Its pictures, with shading that the table does not have and the mean of each exposure."""
    y, x = np.mgrid[-1 : 1 : SIZE[1] * 1j, -1 : 1 : SIZE[0] * 1j]
    shade = (1.05 - 0.16 * x - 0.12 * (x * x + y * y))[..., None]
    count = SECONDS * FPS
    for number in range(count):
        moments = [frame((number + each) / count, flats) for each in MOMENTS]
        yield np.clip(np.mean(moments, axis=0) * shade, 0, 255).astype(np.uint8)


if __name__ == "__main__":
    sys.exit(main())
