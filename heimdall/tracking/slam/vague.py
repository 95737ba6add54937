"""Points whose depth is not known yet: what they are taken to be, how much they count, and what
each look at them adds."""

from __future__ import annotations

import numpy as np

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.tracking.slam.model import KNOWN, Map
from heimdall.tracking.slam.triangulate import inverse_depths

NOISE_PX = 1.0


def like_neighbours(new: np.ndarray, pixels: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Inverse depths for new points, at pixels (n, 2): what the nearest ones have."""
    if not len(new):
        return np.empty(0)
    apart = np.linalg.norm(new[:, None] - pixels[None], axis=2)
    count = min(4, len(pixels))
    near = np.argpartition(apart, count - 1, axis=1)[:, :count]
    return np.asarray(np.median(inverse[near], axis=1))


def weights(known: Map, ids: np.ndarray, pose: Pose, lens: Camera) -> np.ndarray:
    """How much each point counts for a camera at ``pose``, (n,): those of unknown depth as long as
    it has not moved from where their rays begin."""
    points = known.points
    spread, found = points.spread[ids], np.ones(len(ids))
    vague = np.flatnonzero(spread > KNOWN / 4)
    if len(vague):
        centres = _centres(known, points.anchor[ids[vague]])
        moved = np.linalg.norm(centres - pose.position, axis=1)
        off = lens.fx * moved * points.inverse[ids[vague]] * spread[vague]
        found[vague] = 1 / (1 + (off / NOISE_PX) ** 2)
    return found


def _centres(known: Map, anchors: np.ndarray) -> np.ndarray:
    numbers, back = np.unique(anchors, return_inverse=True)
    frames = known.keyframes
    centres = [frames[n].pose.position if n in frames else np.zeros(3) for n in numbers.tolist()]
    return np.array(centres)[back]


def learn(known: Map, ids: np.ndarray, pixels: np.ndarray, pose: Pose, lens: Camera) -> None:
    """Better inverse depths for points that have no place yet, from where a camera at ``pose`` sees
    them (Civera et al., 2008)."""
    points = known.points
    vague = points.spread[ids] > KNOWN / 2
    if not vague.any():
        return
    ids, seen = ids[vague], lens.rays(pixels[vague])[:, :2]
    for number in np.unique(points.anchor[ids]).tolist():
        anchor = known.keyframes.get(number)
        if anchor is None:
            continue
        mine = points.anchor[ids] == number
        own, there = ids[mine], seen[mine]
        relative = pose.after(anchor.pose.inverse)
        ray = np.column_stack([points.ray[own], np.ones(len(own))]) @ relative.rotation.T
        move = relative.translation
        measured, square = inverse_depths(ray, move, there)
        lever = np.sqrt(square) / np.maximum(ray[:, 2] + points.inverse[own] * move[2], 1e-6)
        with np.errstate(divide="ignore"):
            deviation = 2 * NOISE_PX / lens.fx / lever
        before = points.inverse[own]
        prior = points.spread[own] * before
        gate = measured > 0
        gate &= np.abs(measured - before) < 3 * np.hypot(prior, deviation)
        if not gate.any():
            continue
        own, measured, deviation = own[gate], measured[gate], deviation[gate]
        before, prior = before[gate], prior[gate]
        share = prior**2 / (prior**2 + deviation**2)
        after = before + share * (measured - before)
        points.inverse[own] = after
        # looks of one keyframe's point are not independent: no frame may halve it
        spread = prior * np.sqrt(1 - share) / after
        points.spread[own] = np.maximum(spread, 0.9 * points.spread[own])
        points.hang(own, anchor.pose)
