"""A pose from points of the world and where they are seen: robust, refined, with its uncertainty.

Rotations are varied by a small turn before the camera, not as a Rodrigues vector: that of a camera
above a table is near half a turn, where its derivatives break down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from heimdall.capture.lens import Camera, Pose

STEPS = 8
SETTLED = 1e-7  # radians and metres: a step that changes nothing any more
LEAST_SCALE_PX = 0.25  # of residuals: below it, all are as good
LARGEST_SCALE_PX = 1.5
CUT = 4.0  # of that scale: points farther off have no say (Tukey)
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Fit:
    """A pose, which of the points agree with it, how far those are off (root mean square, pixels),
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
        residuals, jacobian = _residuals(rotation, translation, points, seen)
        if residuals is None or jacobian is None:
            return None
        sizes = np.linalg.norm(residuals, axis=1) * focal
        share = given * _tukey(sizes, _scale(sizes))
        if (share > 0).sum() < 4:
            return None
        normal = np.einsum("n,nki,nkj->ij", share, jacobian, jacobian)
        pull = np.einsum("n,nki,nk->i", share, jacobian, residuals)
        try:
            change = np.linalg.solve(normal + TINY * np.eye(6), -pull)
        except np.linalg.LinAlgError:
            return None
        turned = cv2.Rodrigues(change[:3])[0]
        rotation, translation = turned @ rotation, turned @ translation + change[3:]
        if step > 1 and np.abs(change).max() < SETTLED:
            break
    return _judged(Pose(_orthogonal(rotation), translation), points, seen, given, focal)


def _judged(
    pose: Pose, points: np.ndarray, seen: np.ndarray, given: np.ndarray, focal: float
) -> Fit | None:
    residuals, jacobian = _residuals(pose.rotation, pose.translation, points, seen)
    if residuals is None or jacobian is None or not np.isfinite(residuals).all():
        return None
    sizes = np.linalg.norm(residuals, axis=1) * focal
    agree = sizes < CUT * _scale(sizes)
    count = int(agree.sum())
    if count < 4:
        return None
    rms = float(np.sqrt((sizes[agree] ** 2).mean()))
    deviation = max(rms, LEAST_SCALE_PX) / focal
    normal = np.einsum("n,nki,nkj->ij", given[agree], jacobian[agree], jacobian[agree])
    covariance = np.linalg.pinv(normal) * deviation**2
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    if np.linalg.matrix_rank(normal, tol=1e-9 * max(np.trace(normal), TINY)) < 6:
        return None
    far = max(float(np.median(pose.to_camera(points[agree])[:, 2])), TINY)
    # the turn about the points themselves: that about the camera moves them, too
    middle = pose.to_camera(points[agree]).mean(axis=0)
    lever = np.hstack([-_crosses(middle[None])[0], np.eye(3)])
    place = np.sqrt(np.maximum(np.diag(lever @ covariance @ lever.T), 0))
    return Fit(pose, agree, rms, float(spread[:3].max()), float(place.max() / far))


def _residuals(
    rotation: np.ndarray, translation: np.ndarray, points: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Of each point (n, 2), on the plane z = 1, and their derivatives (n, 2, 6) by a turn of the
    camera's axes and a move; None where points lie behind it."""
    there = points @ rotation.T + translation
    z = there[:, 2]
    if (z <= 1e-4).any():
        return None, None
    x, y = there[:, 0] / z, there[:, 1] / z
    flat = np.zeros((len(points), 2, 3))
    flat[:, 0, 0] = flat[:, 1, 1] = 1 / z
    flat[:, 0, 2], flat[:, 1, 2] = -x / z, -y / z
    jacobian = np.concatenate([-flat @ _crosses(there), flat], axis=2)
    return np.column_stack([x, y]) - seen, jacobian


def _crosses(vectors: np.ndarray) -> np.ndarray:
    """The matrix of each vector's cross product (n, 3, 3)."""
    matrices = np.zeros((len(vectors), 3, 3))
    x, y, z = vectors.T
    matrices[:, 0, 1], matrices[:, 0, 2] = -z, y
    matrices[:, 1, 0], matrices[:, 1, 2] = z, -x
    matrices[:, 2, 0], matrices[:, 2, 1] = -y, x
    return matrices


def _scale(sizes: np.ndarray) -> float:
    return float(np.clip(1.48 * np.median(sizes), LEAST_SCALE_PX, LARGEST_SCALE_PX))


def _tukey(sizes: np.ndarray, scale: float) -> np.ndarray:
    reach = np.minimum(sizes / (CUT * scale), 1.0)
    weights: np.ndarray = (1 - reach**2) ** 2
    return weights


def _orthogonal(rotation: np.ndarray) -> np.ndarray:
    u, _, v = np.linalg.svd(rotation)
    turned: np.ndarray = u @ v
    return turned


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


def apart(one: Pose, other: Pose) -> tuple[float, float]:
    """How far two poses differ: radians, and metres between what they make of the origin."""
    cosine = (np.trace(one.rotation @ other.rotation.T) - 1) / 2
    turn = math.acos(float(np.clip(cosine, -1, 1)))
    return turn, float(np.linalg.norm(one.translation - other.translation))
