"""The map behind the camera: new keyframes take their place in it, points get theirs.

Each new keyframe looks for the points that its neighbours know, gives places to those it has seen
with parallax, and is adjusted together with all that see the same (Mur-Artal et al., 2015, VI).
"""

from __future__ import annotations

import math

import numpy as np

from heimdall.tracking.slam.adjust import adjust
from heimdall.tracking.slam.follow import follow
from heimdall.tracking.slam.found import Planes
from heimdall.tracking.slam.loop import Loops
from heimdall.tracking.slam.model import (
    KNOWN,
    POINTS,
    Keyframe,
    Map,
    NewKeyframe,
    Update,
    nearer,
)
from heimdall.tracking.slam.planes import PlaneFinder
from heimdall.tracking.slam.relocalise import features_of
from heimdall.tracking.slam.selfcalibration import ASKED, Looks, longer
from heimdall.tracking.slam.selfcalibration import STEPS as CALIBRATING_STEPS
from heimdall.tracking.slam.triangulate import refine_points

NOISE_PX = 0.8  # standard deviation of where a point is seen
WRONG_PX = 3.0  # farther off it is another point
WINDOW = 12  # keyframes that are adjusted
FIXED = 10  # keyframes around them that are held
SHARED = 12  # points that two keyframes must share to be neighbours
LEAST_PARALLAX = math.radians(0.8)
STEPS = 6
MOST_KEYFRAMES = 150  # half a megabyte each
RECENT = 8  # keyframes that stay
ENOUGH = 3  # looks at a point: one less costs it nothing
NEAR_PX = 6.0  # where a known point is looked for
SAME_PX = 2.5
PATIENCE = 4  # keyframes after which a point without a place is dropped
SIMILAR = 0.7
LOOKS_EVERY = 2  # keyframes, for planes: about once a second while the camera moves


class Mapper:
    """The map as the mapper has it. ``add`` a keyframe, and hear what follows."""

    def __init__(self) -> None:
        self._map = Map()
        self._changed: set[int] = set()  # keyframes that are not as they were
        self._changed_by_fusing: set[int] = set()
        self._finder = PlaneFinder()
        self._loops = Loops(self._map)
        self.busy = False

    def close(self) -> None:
        """Nothing to end."""

    def forget(self) -> None:
        """What was asked does not matter any more: there is nothing under way."""

    def updates(self) -> list[Update]:
        """Nothing: ``begin`` and ``add`` have told it."""
        return []

    def begin(self, first: Map) -> Update:
        """A new map, of two keyframes."""
        self._map = Map()
        for each in first.keyframes.values():
            self._map.add(Keyframe(**{**each.__dict__}))
        points, given = self._map.points, first.points
        points.reach(len(given))
        for name in POINTS:
            getattr(points, name)[: len(given)] = getattr(given, name)
        self._loops = Loops(self._map)
        self._map.times = first.times
        newest = self._map.keyframes[max(self._map.keyframes)]
        touched = self._adjust(newest)
        self._finder = PlaneFinder(first.planes)
        return self._update(set(self._map.keyframes), touched, np.empty(0, np.int64))

    def add(self, new: NewKeyframe) -> Update:
        """One more keyframe."""
        keyframe = self._insert(new)
        gone = [self._associate(keyframe)]
        placed = self._triangulate(keyframe)
        touched = self._adjust(keyframe)
        if len(self._map.keyframes) in ASKED:
            touched = np.union1d(touched, self._calibrate())
        loop = self._loops.close(keyframe, {each.number for _, each in self._neighbours(keyframe)})
        if loop:
            gone += [self._associate(each) for each in loop]
            touched = np.union1d(self._adjust(keyframe), self._map.placed())
            self._changed = set(self._map.keyframes)
        gone.append(self._cull(keyframe))
        dropped, moved, lost = self._thin()
        gone.append(lost)
        changed = self._changed
        ids = np.union1d(np.union1d(placed, touched), moved)
        keyframe.features = features_of(keyframe, self._map.points.known(keyframe.ids))
        planes = self._look() if loop or keyframe.number % LOOKS_EVERY == 0 else None
        return self._update(
            changed | {keyframe.number}, ids, np.concatenate(gone),
            {keyframe.number: keyframe.features}, planes, dropped,
        )  # fmt: skip

    # --- parts ------------------------------------------------------------------------------

    def _insert(self, new: NewKeyframe) -> Keyframe:
        known, points = self._map.keyframes, self._map.points
        pose, scale, nearer_by = new.relative, new.scale, 1.0
        if new.reference is not None and new.reference in known:
            reference = known[new.reference]
            scale, nearer_by = reference.scale, reference.scale / new.scale  # a loop meanwhile
            pose = nearer(new.relative, nearer_by).after(reference.pose)
        picture = new.picture.zoomed(self._map.times / new.times)
        keyframe = Keyframe(new.number, picture, pose, new.ids, new.pixels, new.pixels)
        keyframe.scale = scale
        points.reach(int(new.ids.max(initial=-1)) + 1)
        first = new.pixels[np.searchsorted(new.ids, new.fresh)]
        rays = picture.lens.rays(first)[:, :2]
        points.begin(new.fresh, rays, nearer_by * new.inverse, new.spread, keyframe)
        alive = np.isfinite(points.spread[new.ids])
        keyframe.observe(new.ids[alive], new.pixels[alive])
        there = pose.to_camera(points.position[keyframe.ids])[:, 2]
        known_ = points.known(keyframe.ids)
        keyframe.depth = float(np.median(there[known_] if known_.sum() > 8 else there))
        self._map.add(keyframe)
        return keyframe

    def _neighbours(self, keyframe: Keyframe, least: int = SHARED) -> list[tuple[int, Keyframe]]:
        """Keyframes by how many points they share with this one, most first."""
        found = []
        for each in self._map.keyframes.values():
            if each is not keyframe:
                shared = int((each.places(keyframe.ids) >= 0).sum())
                if shared >= least:
                    found.append((shared, each))
        return sorted(found, key=lambda pair: (-pair[0], -pair[1].number))

    def _associate(self, keyframe: Keyframe) -> np.ndarray:
        """Find what others know in this keyframe, too. Returns ids that were the same as others."""
        points, picture = self._map.points, keyframe.picture
        near = self._map.nearest(keyframe.pose, 12, 2.0)
        taken = keyframe.ids
        new_ids, new_pixels = [], []
        for other in near:
            if other is keyframe:
                continue
            at = np.flatnonzero(points.known(other.ids) & ~np.isin(other.ids, taken))
            ids, nearest = other.ids[at], 0.05 * keyframe.depth
            inside, guess = self._map.visible(ids, keyframe.pose, picture, nearest)
            at = at[inside]
            if len(at) < 4:
                continue
            found, ok = follow(other, at, guess, picture, 1, SIMILAR)
            ok &= np.linalg.norm(found - guess, axis=1) < NEAR_PX
            new_ids.append(other.ids[at[ok]])
            new_pixels.append(found[ok])
            taken = np.concatenate([taken, other.ids[at]])
        if not new_ids:
            return np.empty(0, np.int64)
        ids, pixels = np.concatenate(new_ids), np.concatenate(new_pixels)
        gone = self._fuse(keyframe, ids, pixels)
        fresh = ~np.isin(ids, keyframe.ids)
        ids, pixels = ids[fresh], pixels[fresh]
        kept = ~np.isin(keyframe.ids, gone)
        keyframe.observe(
            np.concatenate([keyframe.ids[kept], ids]),
            np.concatenate([keyframe.pixels[kept], pixels]),
        )
        return gone

    def _fuse(self, keyframe: Keyframe, ids: np.ndarray, pixels: np.ndarray) -> np.ndarray:
        """Points of this keyframe that are older ones, found now: those take their place, in all
        keyframes."""
        if not len(ids) or not len(keyframe.ids):
            return np.empty(0, np.int64)
        apart = np.linalg.norm(keyframe.pixels[:, None] - pixels[None], axis=2)
        which = apart.argmin(axis=1)
        same = apart[np.arange(len(which)), which] < SAME_PX
        younger, older = keyframe.ids[same], ids[which[same]]
        points = self._map.points
        # two that both have places are the same only if those agree
        if len(younger):
            far = np.linalg.norm(points.position[younger] - points.position[older], axis=1)
            agree = ~points.known(younger) | (far < 0.05 * keyframe.depth)
            younger, older = younger[agree], older[agree]
        for each in self._map.keyframes.values():
            at = each.places(younger)
            same = at >= 0
            if each is keyframe or not same.any():
                continue
            renamed = each.ids.copy()
            renamed[at[same]] = older[same]
            # it looks at each point once: where it has both, as it saw the older one
            order = np.concatenate([np.delete(np.arange(len(renamed)), at[same]), at[same]])
            first = order[np.unique(renamed[order], return_index=True)[1]]
            each.observe(renamed[first], each.pixels[first])
            self._changed_by_fusing.add(each.number)
        points.spread[younger] = np.inf
        return younger

    def _triangulate(self, keyframe: Keyframe) -> np.ndarray:
        """Give places to points that have none, and were seen with parallax."""
        points = self._map.points
        ids = keyframe.ids[~points.known(keyframe.ids)]
        if not len(ids):
            return ids
        numbers, which, seen = self._map.observed(ids)
        looks = np.bincount(which, minlength=len(ids))
        several = looks >= 2
        if not several.any():
            return ids[:0]
        ids, keep = ids[several], several[which]
        which = (np.cumsum(several) - 1)[which[keep]]
        cameras, numbers = np.unique(numbers[keep], return_inverse=True)
        turned, moved = self._map.poses(cameras)
        found, errors, parallax = refine_points(
            turned, moved, numbers, which, seen[keep], points.position[ids]
        )
        noise = NOISE_PX / keyframe.picture.lens.fx
        good = (parallax > LEAST_PARALLAX) & (errors < 2.0 * noise) & np.isfinite(found).all(axis=1)
        depth = keyframe.pose.to_camera(found)[:, 2]
        good &= depth > 0.02 * keyframe.depth
        ids = ids[good]
        points.position[ids] = found[good]
        points.spread[ids] = noise / parallax[good]
        self._map.hung(ids)
        return ids

    def _adjust(self, keyframe: Keyframe) -> np.ndarray:
        """Adjust a keyframe, its neighbours and all points that they see. Returns those."""
        points = self._map.points
        self._changed = set(self._changed_by_fusing)
        self._changed_by_fusing = set()
        window = [keyframe, *(each for _, each in self._neighbours(keyframe)[: WINDOW - 1])]
        ids = np.unique(np.concatenate([each.ids for each in window]))
        ids = ids[points.spread[ids] < 2 * KNOWN]
        numbers, which, seen = self._map.observed(ids)
        inner = {each.number for each in window}
        others, counts = np.unique(numbers[~np.isin(numbers, list(inner))], return_counts=True)
        held = others[np.argsort(-counts)][:FIXED]
        held = held[counts[np.argsort(-counts)][:FIXED] >= 4]
        keep = np.isin(numbers, [*inner, *held.tolist()])
        looks = np.bincount(which[keep], minlength=len(ids))
        keep &= looks[which] >= 2
        used = looks >= 2
        ids = ids[used]
        which = (np.cumsum(used) - 1)[which[keep]]
        cameras, at = np.unique(numbers[keep], return_inverse=True)
        if len(cameras) < 2 or len(ids) < 10:
            return ids[:0]
        fixed = np.isin(cameras, held)
        if not fixed.any():
            fixed[0] = True  # the oldest
        turned, moved = self._map.poses(cameras)
        sigma = NOISE_PX / keyframe.picture.lens.fx
        found = adjust(
            turned, moved, points.position[ids], at, which, seen[keep], fixed,
            sigma=sigma, steps=STEPS,
        )  # fmt: skip
        self._map.place(cameras, found.rotations, found.translations)
        points.position[ids] = found.points
        parallax = self._parallax(cameras, at, which, len(ids), found.points)
        points.spread[ids] = np.minimum(sigma / np.maximum(parallax, 1e-6), 1.0)
        # a point whose rays have become parallel has no place: it is as good as its depth
        self._drop_wrong(cameras, at, ids, which, found.errors, WRONG_PX / keyframe.picture.lens.fx)
        self._map.hung(ids)
        self._map.measure(cameras)
        self._changed |= set(cameras.tolist())
        return ids

    def _calibrate(self) -> np.ndarray:
        """Find out whether the lens is another one than was thought: then all of the map is.
        Returns ids of points that have moved."""
        looks = Looks(self._map, NOISE_PX)
        times = longer(looks)
        if times == 1:
            return np.empty(0, np.int64)
        found = looks.adjusted(math.log(times), 2 * CALIBRATING_STEPS)
        self._map.zoom(times)
        self._map.place(looks.numbers, found.rotations, found.translations)
        self._map.points.position[looks.ids] = found.points
        self._map.hung(looks.ids)
        self._changed = set(self._map.keyframes)
        self._map.rehang(self._changed, looks.ids)
        self._map.measure(np.array(list(self._changed)))
        return self._map.placed()

    def _parallax(
        self, cameras: np.ndarray, at: np.ndarray, which: np.ndarray, count: int, found: np.ndarray
    ) -> np.ndarray:
        """How far the rays to each point are apart, radians: twice their spread about the mean."""
        centres = np.stack([self._map.keyframes[n].pose.position for n in cameras.tolist()])
        rays = found[which] - centres[at]
        rays = rays / np.maximum(np.linalg.norm(rays, axis=1, keepdims=True), 1e-12)
        mean = np.stack([np.bincount(which, rays[:, k], count) for k in range(3)], axis=1)
        mean = mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)
        off = np.arccos(np.clip((rays * mean[which]).sum(axis=1), -1, 1))
        return np.asarray(2 * np.sqrt(np.bincount(which, off**2, count) / 2))

    def _drop_wrong(
        self,
        cameras: np.ndarray,
        at: np.ndarray,
        ids: np.ndarray,
        which: np.ndarray,
        errors: np.ndarray,
        most: float,
    ) -> None:
        wrong = errors > most
        for index in np.unique(at[wrong]).tolist():
            each = self._map.keyframes[int(cameras[index])]
            each.forget(ids[which[wrong & (at == index)]])

    def _cull(self, keyframe: Keyframe) -> np.ndarray:
        """Points that no two keyframes see any more, or that have waited for long."""
        points = self._map.points
        alive = np.flatnonzero(np.isfinite(points.spread))
        looks = self._map.looks()
        old = points.anchor[alive] < keyframe.number - PATIENCE
        gone = alive[(looks[alive] == 0) | (old & (looks[alive] < 2))]
        vague = alive[old & ~points.known(alive) & (points.spread[alive] > 2 * KNOWN)]
        vague = vague[points.anchor[vague] < keyframe.number - 3 * PATIENCE]
        gone = np.union1d(gone, vague)
        self._remove(gone)
        return gone

    def _remove(self, gone: np.ndarray) -> None:
        """There are no such points any more."""
        self._map.points.spread[gone] = np.inf
        for each in self._map.keyframes.values():
            if each.forget(gone):
                self._changed.add(each.number)

    def _look(self) -> Planes:
        """The planes, as the map is now."""
        points, keyframes = self._map.points, self._map.keyframes.values()
        count, centres = np.zeros(len(points)), np.zeros((len(points), 3))
        for each in keyframes:
            count[each.ids] += 1
            centres[each.ids] += each.pose.position
        ids = np.flatnonzero((count > 1) & (points.spread < KNOWN))
        overhead = -np.mean([each.pose.rotation[1] for each in keyframes], axis=0)
        seen_from = centres[ids] / count[ids, None]
        return self._finder.look(
            points.position[ids], ids, points.spread[ids], seen_from, self._map.up, overhead
        )

    def _thin(self) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
        """Drop the keyframe whose points most others see, too, if there are too many: its number,
        ids of points that hang on another one from now on, and of those that are gone with it."""
        known, points = self._map.keyframes, self._map.points
        none = np.empty(0, np.int64)
        if len(known) <= MOST_KEYFRAMES:
            return (), none, none
        looks = self._map.looks()
        old = sorted(known)[1:-RECENT]
        number = max(old, key=lambda each: float(np.mean(looks[known[each].ids] > ENOUGH)))
        dropped = known.pop(number)
        own = np.flatnonzero((points.anchor == number) & np.isfinite(points.spread))
        left, placed = own[points.known(own)], []
        for other in self._map.nearest(dropped.pose, len(known), math.inf):
            seen = other.places(left) >= 0
            points.anchor[left[seen]] = other.number
            points.hung(left[seen], other.pose)
            placed.append(left[seen])
            left = left[~seen]
        moved = np.concatenate([none, *placed])
        gone = np.setdiff1d(own, moved)
        self._remove(gone)
        return (number,), moved, gone

    def _update(
        self,
        numbers: set[int],
        ids: np.ndarray,
        gone: np.ndarray,
        features: dict[int, tuple[np.ndarray, np.ndarray]] | None = None,
        planes: Planes | None = None,
        dropped: tuple[int, ...] = (),
    ) -> Update:
        known, points = self._map.keyframes, self._map.points
        ids = ids[np.isfinite(points.spread[ids])]
        keyframes = {
            number: (known[number].pose, known[number].ids.copy(), known[number].pixels.copy())
            for number in sorted(numbers)
            if number in known
        }
        return Update(
            keyframes, ids, points.position[ids].copy(), points.spread[ids].copy(),
            points.anchor[ids].copy(), gone, dropped, features=features or {}, planes=planes,
            scales={number: each for number in keyframes if (each := known[number].scale) != 1},
            times=self._map.times,
        )  # fmt: skip
