"""Flat things as a camera takes them: boards to calibrate with, and a desk with a target on it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import cv2
import numpy as np

from benchmarks.rendered import painted, printed, scenery
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose import ImageTarget, Marker
from heimdall.tracking.pose.calibration import ChessBoard
from heimdall.tracking.pose.paper import DPI, board_page

BOARD = ChessBoard()
BENT = Camera(640, 360, 455.0, 458.0, 331.0, 174.0, (0.07, -0.11, 0.001, -0.0012, 0.0))
STRAIGHT = Camera(640, 360, 460.0, 460.0, 319.5, 179.5)
SHRUNK = 4  # of a page's pixels, one texel
TEXEL_M = 0.001  # of the desk
DICTIONARY, NUMBER = "DICT_4X4_50", 7
MARKER = Marker(DICTIONARY, NUMBER, 0.12)
PICTURE = ImageTarget(painted(5), 0.24)


class Photographed:
    """``surface`` (h, w) grey in the world: its middle the origin, x right, y up, z out of it."""

    def __init__(
        self, surface: np.ndarray, texel_m: float, camera: Camera = STRAIGHT, fine: int = 1
    ) -> None:
        self.camera, self._surface, self._texel_m, self._fine = camera, surface, texel_m, fine
        whole = camera.scaled(fine * camera.width, fine * camera.height)
        x, y = np.meshgrid(np.arange(whole.width), np.arange(whole.height))
        self._rays = whole.rays(np.stack([x.ravel(), y.ravel()], axis=1))

    def taken(self, pose: Pose) -> np.ndarray:
        """Grey uint8, the camera at ``pose``: each ray meets the surface somewhere."""
        where, rays = pose.position, self._rays @ pose.rotation
        with np.errstate(divide="ignore", invalid="ignore"):
            along = -where[2] / rays[:, 2]
        metres = where[:2] + along[:, None] * rays[:, :2]
        texels = metres * (1, -1) / self._texel_m + (np.array(self._surface.shape[::-1]) - 1) / 2
        texels[along <= 0] = -1e4
        shape = (self._fine * self.camera.height, self._fine * self.camera.width)
        x, y = (each.reshape(shape).astype(np.float32) for each in texels.T)
        picture = cv2.remap(
            self._surface, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=130
        )
        return cv2.resize(picture, self.camera.size, interpolation=cv2.INTER_AREA)


def photographed_board(board: ChessBoard = BOARD, camera: Camera = BENT) -> Photographed:
    """The printed page of ``board``."""
    page = board_page(board)
    size = [side // SHRUNK for side in page.shape[::-1]]
    small = cv2.resize(page, size, interpolation=cv2.INTER_AREA)
    return Photographed(small, SHRUNK * 0.0254 / DPI, camera, fine=2)


@functools.cache
def desk(target: str = "marker", *, plain: bool = False, camera: Camera = STRAIGHT) -> Photographed:
    """A desk full of papers with ``target`` in its middle: "marker", "picture" or "nothing"."""
    surface = cv2.cvtColor(scenery(11, 1400), cv2.COLOR_BGR2GRAY)
    if plain:
        surface = np.full_like(surface, 125)
    if target != "nothing":
        thing = printed(NUMBER) if target == "marker" else painted(5)
        metres = MARKER.width_m * 8 / 6 if target == "marker" else PICTURE.width_m
        width = round(metres / TEXEL_M)
        height = width * thing.shape[0] // thing.shape[1]
        thing = cv2.resize(thing, (width, height), interpolation=cv2.INTER_AREA)
        left, top = (1400 - width) // 2, (1400 - height) // 2
        surface[top : top + height, left : left + width] = cv2.cvtColor(thing, cv2.COLOR_BGR2GRAY)
    return Photographed(surface, TEXEL_M, camera)


def looking(at: tuple[float, float], far: float, lean: float, side: float) -> Pose:
    """``far`` metres from a point (2,) of the plane, so many degrees off its normal."""
    tilt, turn = np.radians(lean), np.radians(side)
    out = np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)])
    right = np.cross(-out, (0.0, 1.0, 0.1))
    right /= np.linalg.norm(right)
    turned = np.stack([right, np.cross(-out, right), -out])
    return Pose(turned, -turned @ (np.array([*at, 0.0]) + far * out))


def around(count: int, tilt: float = 35.0, seed: int = 3) -> Iterator[Pose]:
    """Cameras that look at a page from all sides, up to ``tilt`` degrees off its normal."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        lean = tilt * draw.uniform(0.5, 1.0)
        far = draw.uniform(0.3, 0.5)
        at = draw.uniform(-0.12, 0.12, 2)
        yield looking((at[0], at[1]), far, lean, np.degrees(2.4 * number))


def swaying(number: int) -> Pose:
    """Where a hand holds the camera in this frame: it goes about the desk, the target in view."""
    phase = number / 30
    at = (0.03 * np.sin(1.3 * phase), 0.03 * np.cos(1.1 * phase))
    return looking(at, 0.6 + 0.1 * np.sin(phase), 30 + 8 * np.cos(phase), 200 + 40 * phase)


def noisy(picture: np.ndarray, seed: int, deviation: float = 2.0) -> np.ndarray:
    """With a sensor's noise, grey levels."""
    noise = np.random.default_rng(seed).normal(0, deviation, picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8)
