"""How tall things are that a detector sees standing in a room."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Camera

Box = tuple[float, float, float, float]  # left, top, right, bottom, pixels


def height_of(box: Box, camera: Camera, foot: np.ndarray) -> float:
    """How tall something upright is, in the world's units, that stands at ``foot`` (3,) and fills
    ``box`` (left, top, right, bottom) in the picture of a ``camera`` with a pose; z is up."""
    assert camera.pose is not None
    left, top, right, _ = box
    _, slope, _ = camera.rays(np.array([[(left + right) / 2, top]]))[0]
    there, up = camera.pose.to_camera(foot), camera.pose.rotation[:, 2]
    down = float(up[1] - slope * up[2])
    return float(slope * there[2] - there[1]) / down if down else 0.0
