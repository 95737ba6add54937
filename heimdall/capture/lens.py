"""A camera as geometry: where a point of the world is in its picture, and which ray a pixel is.

Two frames of reference. The *world*, in metres: right-handed, with whatever origin its markers,
targets or planes give it. The *camera*: x right, y down, z into the picture, as OpenCV has it, with
the picture's pixels measured from the middle of the first one. A `Pose` leads from the world to the
camera.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np

from heimdall.capture.device_pose import DevicePose
from heimdall.capture.pose import Pose
from heimdall.errors import ConfigError

GUESSED_DEGREES = 60.0  # across a picture of 4:3, if not calibrated: webcams have 55-70
COUNTS = (0, 4, 5, 8, 12, 14)  # of coefficients, as OpenCV has them
FISHEYE_COUNT = 4
WIDEST = np.radians(85.0)  # from the axis: a ray farther off would have no z = 1
_STEPS = 20  # of what inverts a lens
# OpenCV stops after five steps by itself, 0.3 pixels off at the edges of wide lenses
_UNTIL = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, _STEPS, 1e-3)


@dataclass(frozen=True, eq=False)
class Motion:
    """What a camera's sensors say of the moment of a picture, in its axes (x right, y down, z into
    the picture): ``down`` (3,), where gravity pulls, of any length, and its ``acceleration`` (3,)
    in m/s^2 without gravity; None: unknown. Raises ConfigError for what is none."""

    down: np.ndarray | Sequence[float]
    acceleration: np.ndarray | Sequence[float] | None = None

    def __post_init__(self) -> None:
        down = _three(self.down)
        length = float(np.linalg.norm(down)) if down is not None else 0.0
        if down is None or not 0 < length < np.inf:
            raise ConfigError(
                f"gravity {self.down!r}: give where it pulls as three finite numbers, not all 0, "
                "along x to the right, y down and z into the picture"
            )
        object.__setattr__(self, "down", down / length)
        if self.acceleration is None:
            return
        pushed = _three(self.acceleration)
        if pushed is None:
            raise ConfigError(
                f"acceleration {self.acceleration!r}: give three finite numbers in m/s^2, without "
                "gravity, along x to the right, y down and z into the picture"
            )
        object.__setattr__(self, "acceleration", pushed)


def _three(given: object) -> np.ndarray | None:
    """Three finite numbers, of one's own; None for what is none."""
    try:
        found = np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.shape == (3,) and np.isfinite(found).all() else None


@dataclass(frozen=True)
class Camera:
    """Intrinsics of a picture ``width`` x ``height``: focal lengths and centre in pixels, and
    OpenCV's ``distortion``: k1, k2, p1, p2, k3, of a rational lens k4, k5, k6 too; of a ``fisheye``
    k1 to k4 by Kannala and Brandt. With the ``pose``, where that is known.
    ``guessed``: it was not calibrated. ``motion``: what its sensors say; None: nothing.
    ``device``: what a device that tracks itself says of the picture; None: it does not.
    Raises ConfigError for a number of coefficients that no such lens has."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0)
    pose: Pose | None = None
    guessed: bool = False
    motion: Motion | None = None
    device: DevicePose | None = None
    fisheye: bool = False

    def __post_init__(self) -> None:
        counts = (FISHEYE_COUNT,) if self.fisheye else COUNTS
        if len(self.distortion) not in counts:
            raise ConfigError(
                f"a {'fisheye' if self.fisheye else 'lens'} of {len(self.distortion)} distortion "
                f"coefficients: give {' or '.join(map(str, counts))}"
            )

    @classmethod
    def guess(cls, width: int, height: int) -> Camera:
        """What most webcams are near: square pixels, no distortion, 60 degrees across 4:3 of the
        picture's height (a wider picture sees more)."""
        focal = height * (4 / 3) / 2 / np.tan(np.radians(GUESSED_DEGREES) / 2)
        focal = float(focal if width >= height else focal * width / height)
        centre = (width - 1) / 2, (height - 1) / 2
        return cls(width, height, focal, focal, *centre, guessed=True)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, pixels."""
        return self.width, self.height

    @property
    def matrix(self) -> np.ndarray:
        """K, (3, 3) float64."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])

    @property
    def coefficients(self) -> np.ndarray:
        """The distortion as OpenCV's functions take it, those of ``cv2.fisheye`` for a fisheye."""
        return np.array(self.distortion, np.float64)

    def at(self, pose: Pose | None) -> Camera:
        """This camera at another pose."""
        return replace(self, pose=pose)

    def scaled(self, width: int, height: int) -> Camera:
        """For the same picture resized to ``width`` x ``height``."""
        x, y = width / self.width, height / self.height
        return replace(
            self,
            width=width,
            height=height,
            fx=self.fx * x,
            fy=self.fy * y,
            cx=(self.cx + 0.5) * x - 0.5,
            cy=(self.cy + 0.5) * y - 0.5,
        )

    def sensing(self, motion: Motion | None) -> Camera:
        """This camera at another moment, of which its sensors say that."""
        return replace(self, motion=motion)

    def zoomed(self, times: float) -> Camera:
        """This camera with a focal length that many times longer."""
        return replace(self, fx=self.fx * times, fy=self.fy * times)

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """Where points (n, 3) before the camera, metres with z > 0, are in the picture: (n, 2)."""
        where = np.asarray(points, np.float64).reshape(-1, 1, 3)
        if not len(where):
            return np.empty((0, 2))
        still = np.zeros(3)
        project = cv2.fisheye.projectPoints if self.fisheye else cv2.projectPoints
        seen = project(where, still, still, self.matrix, self.coefficients)[0]
        return np.asarray(seen)[:, 0]

    def rays(self, pixels: np.ndarray) -> np.ndarray:
        """The directions that pixels (n, 2) look in, before the camera, z = 1: (n, 3). Pixels of a
        fisheye that are farther than 85 degrees from its axis count as 85 degrees."""
        where = np.asarray(pixels, np.float64).reshape(-1, 1, 2)
        if not len(where):
            return np.empty((0, 3))
        if self.fisheye:
            flat = self._unbent((where[:, 0] - (self.cx, self.cy)) / (self.fx, self.fy))
        elif hasattr(cv2, "undistortPointsIter"):  # OpenCV 4
            flat = cv2.undistortPointsIter(
                where, self.matrix, self.coefficients, None, None, _UNTIL
            )[:, 0]
        else:
            flat = cv2.undistortPoints(
                where, self.matrix, self.coefficients, None, None, None, _UNTIL
            )[:, 0]
        # coefficients of no lens lead to no direction: then it is ahead
        flat = np.nan_to_num(flat, nan=0.0, posinf=0.0, neginf=0.0)
        return np.column_stack([flat, np.ones(len(flat))])

    def straightened(self, pixels: np.ndarray) -> np.ndarray:
        """Where pixels (n, 2) would be without distortion: (n, 2)."""
        return self.rays(pixels)[:, :2] * (self.fx, self.fy) + (self.cx, self.cy)

    def _unbent(self, bent: np.ndarray) -> np.ndarray:
        """Newton's method for the angles from the axis that a fisheye shows at ``bent`` (n, 2)."""
        far = np.linalg.norm(bent, axis=1)
        powers = np.array([1, 3, 5, 7, 9])
        shares = np.array([1.0, *self.distortion])
        angles = np.minimum(far, WIDEST)
        for _ in range(_STEPS):
            off = (shares * angles[:, None] ** powers).sum(axis=1) - far
            slopes = (shares * powers * angles[:, None] ** (powers - 1)).sum(axis=1)
            angles = np.clip(angles - off / np.maximum(slopes, 0.1), 0, WIDEST)
        times = np.divide(np.tan(angles), far, out=np.ones_like(far), where=far > 1e-9)
        return np.asarray(bent * times[:, None])
