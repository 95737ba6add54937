"""Pictures of a calibration board as a camera with known intrinsics and distortion takes them."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from heimdall.capture.lens import Camera, Pose
from heimdall.tracking.pose.calibration import ChessBoard
from heimdall.tracking.pose.paper import DPI, board_page

BOARD = ChessBoard()
CAMERA = Camera(640, 360, 455.0, 458.0, 331.0, 174.0, (0.07, -0.11, 0.001, -0.0012, 0.0))
SHRUNK = 4  # of the page's pixels, one texel
FINE = 2  # rays to a pixel, each way


class Photographed:
    """The printed page in the world: metres, its middle the origin, x right, y up, z out of it."""

    def __init__(self, board: ChessBoard = BOARD, camera: Camera = CAMERA) -> None:
        self.camera = camera
        page = board_page(board)
        size = [side // SHRUNK for side in page.shape[::-1]]
        self._page = cv2.resize(page, size, interpolation=cv2.INTER_AREA)
        fine = camera.scaled(FINE * camera.width, FINE * camera.height)
        x, y = np.meshgrid(np.arange(fine.width), np.arange(fine.height))
        self._rays = fine.rays(np.stack([x.ravel(), y.ravel()], axis=1))

    def taken(self, pose: Pose) -> np.ndarray:
        """Grey uint8, the camera at ``pose``: each pixel's ray meets the page somewhere."""
        where, rays = pose.position, self._rays @ pose.rotation
        with np.errstate(divide="ignore", invalid="ignore"):
            along = -where[2] / rays[:, 2]
        metres = where[:2] + along[:, None] * rays[:, :2]
        texel = SHRUNK * 0.0254 / DPI
        texels = metres * (1, -1) / texel + (np.array(self._page.shape[::-1]) - 1) / 2
        texels[along <= 0] = -1e4
        shape = (FINE * self.camera.height, FINE * self.camera.width)
        x, y = (each.reshape(shape).astype(np.float32) for each in texels.T)
        picture = cv2.remap(
            self._page, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=130
        )
        return cv2.resize(picture, self.camera.size, interpolation=cv2.INTER_AREA)


def around(count: int, tilt: float = 35.0, seed: int = 3) -> Iterator[Pose]:
    """Cameras that look at the page from all sides, up to ``tilt`` degrees off its normal."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        side = 2.4 * number
        lean = np.radians(tilt * draw.uniform(0.5, 1.0))
        out = np.array([np.sin(lean) * np.cos(side), np.sin(lean) * np.sin(side), np.cos(lean)])
        far = draw.uniform(0.3, 0.5)
        spot = np.array([*draw.uniform(-0.12, 0.12, 2), 0.0])
        forward = -out
        right = np.cross(forward, (0.0, 1.0, 0.1))
        right /= np.linalg.norm(right)
        turned = np.stack([right, np.cross(forward, right), forward])
        yield Pose(turned, -turned @ (spot + far * out))
