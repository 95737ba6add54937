"""Lines and points of the world, as lines and points of the surface."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.render.content.placing import projection
from heimdall.render.layout import Letterbox

NEAREST_M = 0.05  # before the camera: lines end there


def lines(ends: np.ndarray, camera: Camera, box: Letterbox) -> tuple[np.ndarray, np.ndarray]:
    """Where lines (n, 2, 3) of the world start and end on the surface, (m, 2) each, of those that
    lie before the camera, at least in part. ``camera`` must have a pose. As models are drawn:
    without the lens' distortion."""
    assert camera.pose is not None
    there = camera.pose.to_camera(ends.reshape(-1, 3)).reshape(-1, 2, 3)
    there = there[(there[..., 2] > NEAREST_M).any(axis=1)]
    start, end = there[:, 0], there[:, 1]
    return _pixels(_cut(start, end), camera, box), _pixels(_cut(end, start), camera, box)


def points(places: np.ndarray, camera: Camera, box: Letterbox) -> np.ndarray:
    """Where points (n, 3) of the world are on the surface, (m, 2), of those before the camera."""
    assert camera.pose is not None
    there = camera.pose.to_camera(places)
    return _pixels(there[there[:, 2] > NEAREST_M], camera, box)


def _cut(ends: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Ends (n, 3) moved towards the others until they are before the camera."""
    depth = others[:, 2] - ends[:, 2]
    share = np.where(
        ends[:, 2] < NEAREST_M, (NEAREST_M - ends[:, 2]) / np.where(depth, depth, 1), 0
    )
    return np.asarray(ends + share[:, None] * (others - ends))


def _pixels(there: np.ndarray, camera: Camera, box: Letterbox) -> np.ndarray:
    clip = np.column_stack([there, np.ones(len(there))]) @ projection(camera, box).T
    return np.asarray((clip[:, :2] / clip[:, 3:] * (1, -1) + 1) / 2 * box.surface)
