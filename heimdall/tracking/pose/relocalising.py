"""Finding the camera by what is remembered around the targets: features of a frame against those
of views, whose points have places in the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import cv2
import numpy as np

from heimdall.capture.lens import Camera, Pose
from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.finding import halved
from heimdall.tracking.pose.reference import Reference
from heimdall.tracking.pose.solve import flipped, refine

LEAST_MATCHES = 14
RELOCALISED_PX = 8.0  # in a picture 1280 wide
TRIES = 300  # of RANSAC, once for what all views say: once for each took twice as long


class Remembered(Protocol):
    """Points of the world, where a picture has them, and how they look there."""

    @property
    def reference(self) -> Reference: ...
    @property
    def descriptors(self) -> np.ndarray: ...


def relocalised(
    finder: cv2.ORB, views: Sequence[Remembered], grey: np.ndarray, camera: Camera
) -> Pose | None:
    """Where most of the features say that the camera is, if that many do; to be checked."""
    small, _ = halved(grey)
    keypoints, descriptors = finder.detectAndCompute(small, None)
    if descriptors is None or not views:
        return None
    places = np.array([each.pt for each in keypoints])
    points, seen = [], []
    for view in views:
        pairs = matched(descriptors, view.descriptors, view.reference.places)
        points.append(view.reference.points[pairs[:, 1]])
        seen.append(places[pairs[:, 0]])
    if sum(map(len, points)) < LEAST_MATCHES:
        return None
    lens = camera.scaled(*small.shape[::-1])
    return _agreed(lens, np.concatenate(points), np.concatenate(seen))


def _agreed(lens: Camera, points: np.ndarray, seen: np.ndarray) -> Pose | None:
    """What most of the pairs say. Much of the world is a table, which looks nearly the same tilted
    the other way, so that RANSAC may have taken either."""
    ok, turn, move, agree = cv2.solvePnPRansac(
        points, seen, lens.matrix, lens.coefficients,
        iterationsCount=TRIES, reprojectionError=RELOCALISED_PX * lens.width / 1280,
        flags=cv2.SOLVEPNP_AP3P,
    )  # fmt: skip
    if not ok or agree is None or len(agree) < LEAST_MATCHES:
        return None
    points, seen, pose = points[agree[:, 0]], seen[agree[:, 0]], Pose.of(turn, move)
    both = (pose, flipped(pose, points.mean(axis=0)))
    fits = [fit for each in both if (fit := refine(lens, points, seen, each)) is not None]
    best = max(fits, key=lambda fit: fit.count - fit.rms_px, default=None)
    return best.pose if best is not None and best.count >= LEAST_MATCHES else None
