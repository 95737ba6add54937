"""A pose from points of the world and where they are seen: robust, refined, with its uncertainty.

Rotations are varied by a small turn before the camera, not as a Rodrigues vector: that of a camera
above a table is near half a turn, where its derivatives break down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose

STEPS = 9
SETTLED = 1e-5  # radians and metres, 0.01 pixels: a step that changes nothing any more
LEAST_SCALE_PX = 0.25  # of residuals: below it, all are as good
LARGEST_PX = 1.5
FREE_STEPS = 2  # whose residuals may be any size
CUT = 4.0  # of that scale: points farther off have no say (Tukey)
TINY = 1e-12
NEAREST_M = 0.02  # before the camera


@dataclass(frozen=True, eq=False)
class Fit:
    """A pose, which of the points agree with it, how far those are off (root mean square, pixels,
    each as much as it counts),
    and the standard deviations that follow: of a turn in radians, of a place relative to its
    distance."""

    pose: Pose
    agree: np.ndarray
    rms_px: float
    turn_sd: float
    place_sd: float

    @property
    def count(self) -> int:
        """How many points agree."""
        return int(self.agree.sum())


def refine(
    camera: Camera,
    points: np.ndarray,
    pixels: np.ndarray,
    pose: Pose,
    weights: np.ndarray | None = None,
) -> Fit | None:
    """The pose near ``pose`` that explains best that ``points`` (n, 3) are seen at ``pixels``
    (n, 2); None where they do not say one. ``weights`` (n,) say how much each counts."""
    if len(points) < 4:
        return None
    seen = camera.rays(pixels)[:, :2]
    given = np.ones(len(points)) if weights is None else weights
    focal = math.sqrt(camera.fx * camera.fy)
    rotation, translation = pose.rotation, pose.translation
    for step in range(STEPS):
        residuals, jacobian = reprojected(rotation, translation, points, seen)
        if residuals is None or jacobian is None:
            return None
        sizes = np.hypot(*residuals) * focal
        # a first guess may be far off for all points alike: that makes none of them an outlier
        share = given * _tukey(sizes, _scale(sizes, math.inf if step < FREE_STEPS else LARGEST_PX))
        if np.count_nonzero(share) < 4:
            return None
        weighed = _stacked(jacobian * share[:, None])
        normal = weighed.T @ _stacked(jacobian)
        try:
            change = np.linalg.solve(normal + TINY * np.eye(6), -weighed.T @ residuals.ravel())
        except np.linalg.LinAlgError:
            return None
        turned = cv2.Rodrigues(change[:3])[0]
        rotation, translation = turned @ rotation, turned @ translation + change[3:]
        if step > FREE_STEPS and np.abs(change).max() < SETTLED:
            break
    return _judged(Pose(_orthogonal(rotation), translation), points, seen, given, focal)


def _judged(
    pose: Pose, points: np.ndarray, seen: np.ndarray, given: np.ndarray, focal: float
) -> Fit | None:
    residuals, jacobian = reprojected(pose.rotation, pose.translation, points, seen)
    if residuals is None or jacobian is None or not np.isfinite(residuals).all():
        return None
    sizes = np.hypot(*residuals) * focal
    agree = sizes < CUT * _scale(sizes)
    count = int(agree.sum())
    if count < 4:
        return None
    rms = float(np.sqrt(np.average(sizes[agree] ** 2, weights=given[agree])))
    deviation = max(rms, LEAST_SCALE_PX) / focal
    mine = jacobian[:, agree]
    normal = _stacked(mine * given[agree, None]).T @ _stacked(mine)
    values, axes = np.linalg.eigh(normal)
    if not values[0] > 1e-9 * max(float(values.sum()), TINY):
        return None
    covariance = axes / values @ axes.T * deviation**2
    there = pose.to_camera(points[agree])
    far = max(float(np.median(there[:, 2])), TINY)
    # the turn about the points themselves: that about the camera moves them, too
    x, y, z = there.mean(axis=0)
    lever = np.array([[0, z, -y, 1, 0, 0], [-z, 0, x, 0, 1, 0], [y, -x, 0, 0, 0, 1]])
    turn = np.sqrt(np.diag(covariance)[:3].max())
    place = np.sqrt(np.diag(lever @ covariance @ lever.T).max())
    return Fit(pose, agree, rms, float(turn), float(place / far))


def reprojected(
    rotation: np.ndarray, translation: np.ndarray, points: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Of x and y of each point (2, n), on the plane z = 1, and their derivatives (2, n, 6) by a
    turn of the camera's axes and a move; None where points lie behind it."""
    x, y, z = rotation @ points.T + translation[:, None]
    if (z <= 1e-4).any():
        return None, None
    near = 1 / z
    x, y = x * near, y * near
    jacobian = np.zeros((2, len(points), 6))
    across, down = jacobian
    across[:, 0], across[:, 1], across[:, 2] = -x * y, 1 + x * x, -y
    across[:, 3], across[:, 5] = near, -x * near
    down[:, 0], down[:, 1], down[:, 2] = -1 - y * y, x * y, x
    down[:, 4], down[:, 5] = near, -y * near
    return np.stack([x, y]) - seen.T, jacobian


def _stacked(jacobian: np.ndarray) -> np.ndarray:
    return np.reshape(jacobian, (-1, 6))


def _scale(sizes: np.ndarray, largest: float = LARGEST_PX) -> float:
    """The standard deviation that residuals show, by their median."""
    middle = len(sizes) // 2
    median = float(np.partition(sizes, middle)[middle])
    return min(max(1.48 * median, LEAST_SCALE_PX), largest)


def _tukey(sizes: np.ndarray, scale: float) -> np.ndarray:
    reach = np.minimum(sizes / (CUT * scale), 1.0)
    return np.asarray((1 - reach**2) ** 2)


def _orthogonal(rotation: np.ndarray) -> np.ndarray:
    u, _, v = np.linalg.svd(rotation)
    return np.asarray(u @ v)


def flipped(pose: Pose, centre: np.ndarray) -> Pose:
    """The other pose of a plane with z as its normal that looks nearly the same: tilted to the
    other side of the line of sight to ``centre`` (3,), a point of the plane."""
    there = pose.to_camera(centre)
    sight, normal = -there / np.linalg.norm(there), pose.rotation[:, 2]
    axis = np.cross(normal, sight)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-6:
        return pose
    angle = 2 * math.atan2(sine, float(normal @ sight))
    turned = cv2.Rodrigues(axis / sine * angle)[0]
    rotation = turned @ pose.rotation
    return Pose(rotation, there - rotation @ centre)


def planar(camera: Camera, points: np.ndarray, pixels: np.ndarray) -> list[Pose]:
    """Both poses from four points or more of a plane z = 0, the better one first."""
    seen = camera.rays(pixels)[:, None, :2]
    try:
        _, turns, moves, _ = cv2.solvePnPGeneric(
            points.reshape(-1, 1, 3), seen, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE
        )
    except cv2.error:  # points on a line
        return []
    poses = [Pose.of(turn, move) for turn, move in zip(turns, moves, strict=True)]
    return [each for each in poses if np.isfinite(each.translation).all()]


def to_plane(rays: np.ndarray, pose: Pose, reach: float) -> np.ndarray:
    """How far along each ray (n, 3) before the camera the plane z = 0 of the world is; NaN where
    that is behind it, or as far as ``reach``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        depths = -float(pose.position[2]) / (rays @ pose.rotation)[:, 2]
    return np.where((depths > NEAREST_M) & (depths < reach), depths, np.nan)


def apart(one: Pose, other: Pose) -> tuple[float, float]:
    """How far two poses differ: radians, and metres between what they make of the origin."""
    cosine = (np.trace(one.rotation @ other.rotation.T) - 1) / 2
    turn = math.acos(float(np.clip(cosine, -1, 1)))
    return turn, float(np.linalg.norm(one.translation - other.translation))
