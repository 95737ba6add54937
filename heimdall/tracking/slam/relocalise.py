"""Where the camera may be, once it was lost: near a keyframe that looks like the picture as a whole
(Klein and Murray, 2008), or where features say (ORB: Rublee et al., 2011)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heimdall.capture.lens import Pose
from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.solve import Fit
from heimdall.tracking.pose.views import agreed
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.picture import Picture

TRIED = 2  # keyframes, in each frame
COMPARED = 6  # keyframes, by features
NEAR_PX = 4.0  # of a point: a feature is of it
LONG = 20  # frames: who was lost for longer may be anywhere
LEAST_POINTS = 30, 45  # that agree after a short loss, and after a long one
LEAST_AGREE = 0.4, 0.6  # of the points found
LEAST_FOUND = 0.0, 0.4  # of the points that should be seen
MOST_RMS_PX = 2.5, 1.5


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
    at = int(lost > LONG)
    return (
        fit.count >= max(LEAST_POINTS[at], LEAST_AGREE[at] * found)
        and found >= LEAST_FOUND[at] * expected
        and fit.rms_px < MOST_RMS_PX[at]
    )


def candidates(known: Map, picture: Picture, turn: int) -> Iterator[Pose]:
    """Poses worth a try; each ``turn`` others. All of them are to be checked."""
    if not known.keyframes:
        return
    keyframes = list(known.keyframes.values())
    alike = np.array([each.picture.thumb for each in keyframes]) @ picture.thumb
    best = [keyframes[at] for at in np.argsort(-alike)]
    if turn % 3 == 2:
        pose = _by_features(known, best[:COMPARED], picture)
        if pose is not None:
            yield pose
        return
    begin = turn % 3 * TRIED
    yield from (each.pose for each in best[begin : begin + TRIED])


def _by_features(known: Map, keyframes: list[Keyframe], picture: Picture) -> Pose | None:
    there, descriptors = picture.features
    points, seen = [], []
    for each in keyframes:
        if each.features is None:
            continue
        ids, own = each.features
        alive = np.isfinite(known.points.spread[ids])
        places = known.points.position[ids[alive]]
        if len(places) < 8 or not len(there):
            continue
        pairs = matched(descriptors, own[alive], places)
        points.append(places[pairs[:, 1]])
        seen.append(there[pairs[:, 0]])
    if not points:
        return None
    return agreed(picture.lens, np.concatenate(points), np.concatenate(seen))
