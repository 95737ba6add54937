"""How much longer a lens is than it is taken to be: by one frame, once the map is known."""

from __future__ import annotations

import math

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.solve import reprojected

ALIKE = 0.15  # points near one another err together: they count as so many
LEAST_PX = 0.25  # of errors
LEAST_POINTS = 40
SURE = 5.0  # standard deviations
LEAST = 0.01  # worth following: lenses that focus change less


def longer(lens: Camera, pose: Pose, points: np.ndarray, pixels: np.ndarray) -> tuple[float, float]:
    """How many times longer than ``lens`` the one is through which ``points`` (n, 3) of the map are
    seen at ``pixels`` (n, 2) from about ``pose``, and the standard deviation of that, infinite
    where points do not say it: those of a plane that the camera looks at from the front."""
    seen = lens.rays(pixels)[:, :2]
    off, by_pose = reprojected(pose.rotation, pose.translation, points, seen)
    if off is None or by_pose is None or len(points) < 8:
        return 1.0, math.inf
    errors, slopes = off.ravel(), by_pose.reshape(-1, 6)
    by_lens = (seen.T + off).ravel()  # where points would be, farther from the middle
    rest = by_lens - slopes @ np.linalg.lstsq(slopes, by_lens, rcond=None)[0]
    said = float(rest @ rest)
    if not said > 1e-9 * float(by_lens @ by_lens):
        return 1.0, math.inf
    change = -float(rest @ errors) / said
    left = errors + rest * change
    deviation = max(float(np.sqrt((left**2).mean())), LEAST_PX / lens.fx)
    return 1 + change, deviation / math.sqrt(said * ALIKE)


def zoomed(lens: Camera, pose: Pose, points: np.ndarray, pixels: np.ndarray) -> float:
    """How many times longer, as ``longer``; 1 while that is within what is usual."""
    if len(points) < LEAST_POINTS:
        return 1.0
    times, deviation = longer(lens, pose, points, pixels)
    return times if abs(times - 1) > max(LEAST, SURE * deviation) else 1.0
