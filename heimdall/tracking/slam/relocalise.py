"""Where the camera may be, once it was lost: near a keyframe that looks like the picture as a whole
(Klein and Murray, 2008), or where features say (ORB: Rublee et al., 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.solve import Fit, apart, refine
from heimdall.tracking.pose.views import agreed
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture

NEAR_PX = 4.0  # of a point: a feature is of it
LONG = 20  # frames: who was lost for longer may be anywhere
RECOGNISED_POINTS, RECOGNISED_SHARE = 30, 0.4  # features that agree, of the points they are of
RECOGNISED_PX, RECOGNISED_SD = 2.5, 0.01  # root mean square; of the distance
NEXT_TURN, NEXT_MOVE = math.radians(10.0), 0.15  # within three frames; of the depth


class Needed(NamedTuple):
    """What speaks for a pose: so many ``points`` agree, and such shares of those that were found
    (``agree``), and are found of those that should be seen; off by no more than ``rms_px``."""

    points: int
    agree: float
    found: float
    rms_px: float

    def met(self, fit: Fit, found: int, expected: int) -> bool:
        """Whether all of it is there."""
        return (
            fit.count >= max(self.points, self.agree * found)
            and found >= self.found * expected
            and fit.rms_px < self.rms_px
        )


AFTER_SHORT, AFTER_LONG = Needed(30, 0.4, 0.0, 2.5), Needed(45, 0.6, 0.4, 1.5)
CLEAR = Needed(40, 0.75, 0.6, 3.0)  # no other place looks so by chance


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
    needed = AFTER_LONG if lost > LONG else AFTER_SHORT
    return needed.met(fit, found, expected) or CLEAR.met(fit, found, expected)


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
