"""An undeclared plane: where the user points, by a stated guess.

The camera is taken to be so high above it, looking down by so many degrees; the part of the picture
around the point, seen from above, then is a target like any other. True shapes and steady content
follow from that, true sizes only as far as the guess is right.
"""

from __future__ import annotations

import cv2
import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.pose import ImageTarget, PoseTracker, Views

HEIGHT_M = 0.5  # of a webcam or a phone above a table
PITCH = 30.0  # degrees that it looks down
MOST_HEIGHTS = 12.0  # away: beyond it is the horizon, and the wall behind
SHARE = 0.55  # of the picture's width that the target takes, at most
LEAST_PX = 90  # across: less holds too little to be found by
TEXELS = 480


def guessed(camera: Camera, at: tuple[float, float], height_m: float, pitch: float) -> Pose | None:
    """World to camera for a level plane under the camera: the origin at the pixel ``at``, x right,
    y away, z up. None for a pixel above the horizon, or too near to it."""
    c, s = np.cos(np.radians(pitch)), np.sin(np.radians(pitch))
    up = np.array([0.0, -c, -s])
    ray = camera.rays(np.array([at]))[0]
    down = -float(up @ ray)
    if down <= 0 or height_m / down * float(np.linalg.norm(ray)) > MOST_HEIGHTS * height_m:
        return None
    away = np.array([0.0, -s, c])
    turned = np.column_stack([np.cross(away, up), away, up])
    return Pose(turned, ray * (height_m / down))


def around(camera: Camera, pose: Pose) -> float | None:
    """The side in metres of the largest square around the world's origin that is a good target: all
    of it in the picture, and no larger than is worth it; None where that is too small."""
    side = SHARE * camera.width * float(pose.translation[2]) / camera.fx
    for _ in range(24):
        half = side / 2
        there = pose.to_camera(np.array([[x, y, 0] for x in (-half, half) for y in (-half, half)]))
        if (there[:, 2] > 0.01).all():
            pixels = camera.pixels(there)
            if (pixels >= 0).all() and (pixels < camera.size).all():
                across = np.ptp(pixels, axis=0)
                return side if across.min() >= LEAST_PX else None
        side *= 0.88
    return None


def tracker(
    image: np.ndarray, camera: Camera, pose: Pose, side: float, *, remember: bool
) -> PoseTracker:
    """What follows that square from this very picture, BGR, on."""
    # its shape follows from the guess: it cannot correct it
    views = Views() if remember else None
    made = PoseTracker([target(image, camera, pose, side)], views, true=False)
    made.expect(pose)
    return made


def target(image: np.ndarray, camera: Camera, pose: Pose, side: float) -> ImageTarget:
    """That square of the picture, as seen from above."""
    metres = (np.arange(TEXELS) - (TEXELS - 1) / 2) * side / TEXELS
    x, y = np.meshgrid(metres, -metres)
    plane = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    where = camera.pixels(pose.to_camera(plane)).reshape(TEXELS, TEXELS, 2).astype(np.float32)
    return ImageTarget(cv2.remap(image, where[..., 0], where[..., 1], cv2.INTER_LINEAR), side)
