"""Where the camera may be, once it was lost: near a keyframe that looks like the picture as a whole
(Klein and Murray, 2008), or where features say (ORB: Rublee et al., 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.solve import Fit, apart, refine
from heimdall.tracking.pose.views import agreed
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture

NEAR_PX = 4.0  # of a point: a feature is of it
LONG = 20  # frames: who was lost for longer may be anywhere
LEAST_POINTS = 30, 45  # that agree after a short loss, and after a long one
LEAST_AGREE = 0.4, 0.6  # of the points found
LEAST_FOUND = 0.0, 0.4  # of the points that should be seen
MOST_RMS_PX = 2.5, 1.5
CLEAR_POINTS, CLEAR_AGREE, CLEAR_FOUND, CLEAR_RMS_PX = 40, 0.75, 0.6, 3.0  # none looks so by chance

RECOGNISED_POINTS, RECOGNISED_SHARE = 30, 0.4
RECOGNISED_PX, RECOGNISED_SD = 2.5, 0.01
NEXT_TURN, NEXT_MOVE = math.radians(10.0), 0.15  # within three frames; of the depth


def features_of(keyframe: Keyframe, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ids (n,) and descriptors (n, 32) of points of a keyframe; ``known`` (m,) says which of its
    points have places."""
    there, descriptors = keyframe.picture.features
    pixels, ids = keyframe.pixels[known], keyframe.ids[known]
    if not len(there) or not len(ids):
        return np.empty(0, np.int64), np.empty((0, 32), np.uint8)
    apart = np.linalg.norm(there[:, None] - pixels[None], axis=2)
    which = apart.argmin(axis=1)
    near = apart[np.arange(len(there)), which] < NEAR_PX
    return ids[which[near]], descriptors[near]


def sure(fit: Fit, found: int, expected: int, lost: int) -> bool:
    """Whether a pose by which ``found`` of ``expected`` points were, is the camera's, and no other
    place that looks alike in part: the more has to speak for it, the longer it was ``lost``
    (frames)."""
    if (
        fit.count >= max(CLEAR_POINTS, CLEAR_AGREE * found)
        and found >= CLEAR_FOUND * expected
        and fit.rms_px < CLEAR_RMS_PX
    ):
        return True
    at = int(lost > LONG)
    return (
        fit.count >= max(LEAST_POINTS[at], LEAST_AGREE[at] * found)
        and found >= LEAST_FOUND[at] * expected
        and fit.rms_px < MOST_RMS_PX[at]
    )


def alike(known: Map, picture: Picture) -> list[Keyframe]:
    """Keyframes, those first whose pictures look most like this one."""
    keyframes = list(known.keyframes.values())
    if not keyframes:
        return []
    same = np.array([each.picture.thumb for each in keyframes]) @ picture.thumb
    return [keyframes[at] for at in np.argsort(-same)]


@dataclass(frozen=True, eq=False)
class Recognised:
    """A pose by features: the points ``ids`` (n,) that they are of, at ``pixels`` (n, 2), and the
    ``fit`` to them."""

    ids: np.ndarray
    pixels: np.ndarray
    fit: Fit

    @property
    def clear(self) -> bool:
        """Whether so many features agree so well that it needs no more than to be seen again."""
        fit = self.fit
        return (
            fit.count >= max(RECOGNISED_POINTS, RECOGNISED_SHARE * len(self.ids))
            and fit.rms_px < RECOGNISED_PX
            and fit.place_sd < RECOGNISED_SD
        )

    def again(self, before: Recognised | None, depth: float) -> bool:
        """Whether another picture, shortly ``before``, said the same, as far as a hand moves."""
        if before is None:
            return False
        turn, move = apart(self.fit.pose, before.fit.pose)
        return turn < NEXT_TURN and move < NEXT_MOVE * depth


def recognised(known: Map, keyframes: list[Keyframe], picture: Picture) -> Recognised | None:
    """The pose that features of those keyframes say; None where they say none."""
    there, descriptors = picture.features
    ids, seen = [], []
    for each in keyframes:
        if each.features is None:
            continue
        owners, own = each.features
        alive = np.isfinite(known.points.spread[owners])
        owners = owners[alive]
        if len(owners) < 8 or not len(there):
            continue
        pairs = matched(descriptors, own[alive], known.points.position[owners])
        ids.append(owners[pairs[:, 1]])
        seen.append(there[pairs[:, 0]])
    if not ids:
        return None
    owners, pixels = np.concatenate(ids), np.concatenate(seen)
    places = known.points.position[owners]
    pose = agreed(picture.lens, places, pixels)
    if pose is None:
        return None
    off = np.linalg.norm(picture.lens.pixels(pose.to_camera(places)) - pixels, axis=1)
    order = np.argsort(off, kind="stable")  # of each point, the look that agrees best
    once = order[np.unique(owners[order], return_index=True)[1]]
    near = off[once] < NEAR_PX
    fit = refine(picture.lens, places[once][near], pixels[once][near], pose)
    if fit is None:
        return None
    near[near] = fit.agree
    return Recognised(owners[once], pixels[once], replace(fit, agree=near))
