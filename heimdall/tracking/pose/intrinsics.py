"""Intrinsics and distortion from views of a flat board: Zhang's method (2000), as OpenCV has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.errors import ConfigError

WORST_PX = 2.0  # root mean square, in a picture 1280 wide
FOCAL_SD = 0.02  # a standard deviation beyond it is no knowledge
SIGNIFICANT = 3.0  # standard deviations that k3 must be away from 0
K3 = 8  # where its deviation is among OpenCV's


@dataclass(frozen=True, eq=False)
class Intrinsics:
    """A ``camera``, how far points are off (root mean square, pixels), the standard deviation of
    the focal length as a share of it, and the ``errors`` of the views (n,), pixels."""

    camera: Camera
    rms_px: float
    focal_sd: float
    errors: np.ndarray

    @classmethod
    def solved(
        cls,
        points: Sequence[np.ndarray],
        pixels: Sequence[np.ndarray],
        size: tuple[int, int],
    ) -> Intrinsics:
        """From each view's ``points`` (n, 3) of a plane and where they are seen (n, 2). Raises
        ConfigError where they say nothing."""
        fit, sure = cls._solved(points, pixels, size, 0)
        if not sure:  # a term that is noise bends the corners, where no board was
            fit, _ = cls._solved(points, pixels, size, cv2.CALIB_FIX_K3)
        return fit

    @classmethod
    def _solved(
        cls,
        points: Sequence[np.ndarray],
        pixels: Sequence[np.ndarray],
        size: tuple[int, int],
        flags: int,
    ) -> tuple[Intrinsics, bool]:
        places = [each.astype(np.float32) for each in points]
        seen = [each.astype(np.float32)[:, None] for each in pixels]
        try:
            rms, matrix, bent, _, _, deviations, _, errors = cv2.calibrateCameraExtended(
                places, seen, size, Camera.guess(*size).matrix, np.zeros(5),
                flags=flags | cv2.CALIB_USE_INTRINSIC_GUESS,
            )  # fmt: skip
        except cv2.error as error:
            raise ConfigError(f"these views say no camera ({error.err}): tilt the board") from error
        spread, distortion = np.ravel(deviations), np.ravel(bent)[:5].astype(np.float64)
        fx, fy, cx, cy = (float(matrix[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        camera = Camera(*size, fx, fy, cx, cy, tuple(distortion.tolist()))
        focal_sd = float(max(spread[0] / fx, spread[1] / fy))
        sure = abs(distortion[4]) > SIGNIFICANT * spread[K3]
        return cls(camera, float(rms), focal_sd, np.ravel(errors)), bool(sure)

    def check(self) -> None:
        """Raises ConfigError for what cannot be a camera."""
        camera = self.camera
        width, height = camera.size
        worst = WORST_PX * max(1.0, width / 1280)
        if self.rms_px > worst:
            raise ConfigError(
                f"corners are off by {self.rms_px:.1f} px, {worst:.1f} is too much: is the board "
                "flat, sharp in the picture, and the zoom left alone?"
            )
        sane = all(0.1 * width < each < 20 * width for each in (camera.fx, camera.fy))
        sane = sane and 0 < camera.cx < width and 0 < camera.cy < height
        if not sane or not self.focal_sd < FOCAL_SD:
            raise ConfigError(
                f"these views leave the focal length open ({camera.fx:.0f} px, give or take "
                f"{self.focal_sd:.0%}): tilt the board to all sides, nearer and farther"
            )
