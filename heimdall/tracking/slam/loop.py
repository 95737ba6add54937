"""A place that is seen again after a way around: the drift on the way is spread over all of it.

As in ORB-SLAM (Mur-Artal, Montiel and Tardos, 2015, VII) a place must look the same, fit as it lies
in space, and do so in several keyframes in a row. Then keyframes are moved as a graph of
similarities says (Strasdat, Montiel and Davison, 2010), and points go with the keyframe that they
hang on.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.pose.features import matched
from heimdall.tracking.pose.solve import Fit, refine
from heimdall.tracking.pose.views import agreed
from heimdall.tracking.slam.follow import follow
from heimdall.tracking.slam.model import Keyframe, Map
from heimdall.tracking.slam.relocalise import features_of
from heimdall.tracking.slam.similarity import Similarities, relaxed

COMPARED = 3  # keyframes that look most alike
ALIKE = 0.3  # correlation of whole pictures
RECENT = 10  # keyframes before this one that are no loop
IN_A_ROW = 3  # keyframes that must say the same
AROUND = 4  # keyframes whose points are looked for
SIMILAR = 0.7  # correlation of a point's surroundings
LEAST_AGREE, LEAST_SHARE = 40, 0.5  # points, of those found
SURE_TURN, SURE_PLACE = math.radians(0.6), 0.03  # standard deviations; of the distance
SAME_PX = 4.0  # points of both maps so near to each other say the scale
LEAST_SCALES, SURE_SCALE = 8, 0.03
SAME_MOVE, SAME_TURN, SAME_SCALE = 0.12, 0.06, 0.12  # of the depth, radians: of one correction
NOISE_PX, NOISE_SCALE = 3.0, 0.02  # what is less is no drift
EDGES = 6  # to the keyframes that share most with each
MOST_WEIGHT = 100.0  # points


@dataclass(frozen=True, eq=False)
class Sighting:
    """Keyframe ``number`` has seen the place of keyframe ``old``: the similarity ``there`` from
    the world as it was then to this camera, and how many points say so."""

    number: int
    old: int
    there: Similarities
    count: int


class Loops:
    """Give it each new keyframe."""

    def __init__(self, known: Map) -> None:
        self._map = known
        self._seen: list[Sighting] = []  # in a row

    def close(self, keyframe: Keyframe, near: Collection[int]) -> list[Keyframe]:
        """If a loop ends here: put the map right, and return the keyframes that have seen it.
        ``near``: keyframes that share points with this one."""
        found = self._sighted(keyframe, {*near, keyframe.number})
        if found is None:
            self._seen = []
            return []
        if self._seen and not self._fits(keyframe, found):
            self._seen = []
        self._seen.append(found)
        if len(self._seen) < IN_A_ROW:
            return []
        seen, self._seen = self._seen, []
        if not self._correct(seen):
            return []
        return [self._map.keyframes[each.number] for each in seen]

    # --- is it one? -------------------------------------------------------------------------

    def _sighted(self, keyframe: Keyframe, near: Collection[int]) -> Sighting | None:
        others = [
            each
            for each in self._map.keyframes.values()
            if each.number not in near and each.number < keyframe.number - RECENT
        ]
        if not others:
            return None
        alike = np.array([each.picture.thumb for each in others]) @ keyframe.picture.thumb
        best = [others[at] for at in np.argsort(-alike)[:COMPARED] if alike[at] > ALIKE]
        if not best:
            return None
        there, descriptors = keyframe.picture.features
        for old in best:
            pose = self._placed(keyframe, old, there, descriptors)
            sighting = self._proven(keyframe, old, pose, near) if pose is not None else None
            if sighting is not None:
                return sighting
        return None

    def _placed(
        self, keyframe: Keyframe, old: Keyframe, there: np.ndarray, descriptors: np.ndarray
    ) -> Pose | None:
        """Where features say that the camera is, in the world as ``old`` has it."""
        points = self._map.points
        if old.features is None:  # of a map that another process began
            old.features = features_of(old, points.known(old.ids))
        ids, own = old.features
        alive = points.known(ids)
        places = points.position[ids[alive]]
        if len(places) < LEAST_SCALES:
            return None
        pairs = matched(descriptors, own[alive], places)
        return agreed(keyframe.picture.lens, places[pairs[:, 1]], there[pairs[:, 0]])

    def _proven(
        self, keyframe: Keyframe, old: Keyframe, pose: Pose, near: Collection[int]
    ) -> Sighting | None:
        """What is known there must be seen from there, and say how large it is."""
        ids, pixels, fit = self._compared(keyframe, old, pose, near)
        if fit is None or fit.count < max(LEAST_AGREE, LEAST_SHARE * len(ids)):
            return None
        if fit.turn_sd > SURE_TURN or fit.place_sd > SURE_PLACE:
            return None
        ids, pixels = ids[fit.agree], pixels[fit.agree]
        scale = self._scale(keyframe, ids, pixels, fit.pose)
        if scale is None or not self._drifted(keyframe, ids, pixels, scale):
            return None
        there = Similarities.of([fit.pose], scale)
        return Sighting(keyframe.number, old.number, there, fit.count)

    def _compared(
        self, keyframe: Keyframe, old: Keyframe, pose: Pose, near: Collection[int]
    ) -> tuple[np.ndarray, np.ndarray, Fit | None]:
        """Points of keyframes there that were found in this one, where, and the pose they say."""
        points, picture = self._map.points, keyframe.picture
        around = [
            each
            for each in self._map.nearest(pose, 3 * AROUND)
            if each.number not in near and each is not old
        ]
        taken, ids, pixels = keyframe.ids, [], []
        for other in [old, *around[: AROUND - 1]]:
            at = np.flatnonzero(points.known(other.ids) & ~np.isin(other.ids, taken))
            inside, guess = self._map.visible(other.ids[at], pose, picture, 0.05 * other.depth)
            at = at[inside]
            if len(at) < 4:
                continue
            found, ok = follow(other, at, guess, picture, 3, SIMILAR)
            ids.append(other.ids[at[ok]])
            pixels.append(found[ok])
            taken = np.concatenate([taken, other.ids[at]])
        if not ids:
            return np.empty(0, np.int64), np.empty((0, 2)), None
        all_ids, all_pixels = np.concatenate(ids), np.concatenate(pixels)
        fit = refine(picture.lens, points.position[all_ids], all_pixels, pose)
        return all_ids, all_pixels, fit

    def _scale(
        self, keyframe: Keyframe, ids: np.ndarray, pixels: np.ndarray, pose: Pose
    ) -> float | None:
        """How many times farther away this keyframe has what is seen at the same pixels."""
        points = self._map.points
        known = points.known(keyframe.ids)
        if known.sum() < LEAST_SCALES:
            return None
        apart = np.linalg.norm(pixels[:, None] - keyframe.pixels[known][None], axis=2)
        which = apart.argmin(axis=1)
        same = apart[np.arange(len(which)), which] < SAME_PX
        then = pose.to_camera(points.position[ids[same]])[:, 2]
        own = keyframe.ids[known][which[same]]
        now = keyframe.pose.to_camera(points.position[own])[:, 2]
        good = (then > 1e-6) & (now > 1e-6)
        if good.sum() < LEAST_SCALES:
            return None
        ratios = np.log(now[good] / then[good])
        middle = float(np.median(ratios))
        deviation = 1.48 * float(np.median(np.abs(ratios - middle)))
        if deviation / math.sqrt(len(ratios)) > SURE_SCALE or abs(middle) > math.log(2):
            return None
        return math.exp(middle)

    def _drifted(
        self, keyframe: Keyframe, ids: np.ndarray, pixels: np.ndarray, scale: float
    ) -> bool:
        """True if the map has what is seen elsewhere, by more than noise."""
        there = keyframe.pose.to_camera(self._map.points.position[ids])
        if abs(math.log(scale)) > NOISE_SCALE or (there[:, 2] <= 1e-6).mean() > 0.5:
            return True
        ahead = there[:, 2] > 1e-6
        off = np.linalg.norm(keyframe.picture.lens.pixels(there[ahead]) - pixels[ahead], axis=1)
        return float(np.median(off)) > NOISE_PX

    def _fits(self, keyframe: Keyframe, found: Sighting) -> bool:
        """True if the last one said the same correction."""
        last = self._seen[-1]
        if last.number not in self._map.keyframes or last.old not in self._map.keyframes:
            return False
        moved = Similarities.of([keyframe.pose, self._map.keyframes[last.number].pose])
        expected = moved[:1].after(moved[1:].inverse).after(last.there)
        off = found.there.after(expected.inverse).log()[0]
        return bool(
            np.linalg.norm(off[:3]) < SAME_MOVE * keyframe.depth
            and np.linalg.norm(off[3:6]) < SAME_TURN
            and abs(off[6]) < SAME_SCALE
        )

    # --- and then ---------------------------------------------------------------------------

    def _correct(self, seen: list[Sighting]) -> bool:
        """Move all keyframes and their points, so that the loop closes."""
        known = self._map.keyframes
        numbers = sorted(known)
        place = {number: at for at, number in enumerate(numbers)}
        nodes = Similarities.of([known[number].pose for number in numbers])
        one, other, weights = self._edges(numbers)
        measured = nodes[one].after(nodes[other].inverse)
        seen = [each for each in seen if each.old in place and each.number in place]
        ends = np.array([[place[each.number], place[each.old]] for each in seen])
        loops = [each.there for each in seen]
        closing = _joined(loops).after(nodes[ends[:, 1]].inverse)
        measured = _joined([measured, closing])
        weights = np.concatenate([weights, [float(each.count) for each in seen]])
        one, other = np.concatenate([one, ends[:, 0]]), np.concatenate([other, ends[:, 1]])
        depths = np.array([known[number].depth for number in numbers])[one]
        entries = np.ones((len(one), 7))
        entries[:, :3] /= depths[:, None] ** 2
        entries *= np.minimum(weights, MOST_WEIGHT)[:, None]
        fixed = np.arange(len(numbers)) == 0
        try:
            moved = relaxed(nodes, one, other, measured, entries, fixed)
        except np.linalg.LinAlgError:
            return False
        if not (np.isfinite(moved.translation).all() and np.isfinite(moved.scale).all()):
            return False
        for at, number in enumerate(numbers):
            self._map.move(number, moved.pose(at), float(moved.scale[at]))
        return True

    def _edges(self, numbers: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pairs of keyframes, as places in ``numbers``, that share most points, or follow upon each
        other; and how many points they share."""
        known = self._map.keyframes
        looks = np.zeros((len(numbers), len(self._map.points)), np.float32)
        for at, number in enumerate(numbers):
            looks[at, known[number].ids] = 1
        shared = looks @ looks.T
        np.fill_diagonal(shared, 0)
        wanted = np.eye(len(numbers), k=1, dtype=bool)
        best = np.argsort(-shared, axis=1)[:, :EDGES]
        wanted[np.arange(len(numbers))[:, None], best] |= np.take_along_axis(shared, best, 1) >= 12
        one, other = np.nonzero(np.triu(wanted | wanted.T, 1))
        return one, other, np.maximum(shared[one, other], 1.0).astype(float)


def _joined(parts: list[Similarities]) -> Similarities:
    return Similarities(
        np.concatenate([each.scale for each in parts]),
        np.concatenate([each.rotation for each in parts]),
        np.concatenate([each.translation for each in parts]),
    )
