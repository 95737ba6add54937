"""Where the camera is in a room that nothing is known of, frame by frame.

As in PTAM (Klein and Murray, 2007) following is apart from mapping: each frame is compared with
keyframes, whose points have places, and the map behind it is refined by another process. A pose
counts as tracked only while the picture bears it out.
"""

from __future__ import annotations

import logging
import math

import numpy as np

from heimdall.capture.lens import Camera, Motion
from heimdall.capture.pose import Pose
from heimdall.tracking.pose.solve import Fit, refine
from heimdall.tracking.pose.tracker import LOST, TRACKED, Tracking
from heimdall.tracking.slam import vague
from heimdall.tracking.slam.atlas import Atlas, Left
from heimdall.tracking.slam.begin import Beginning
from heimdall.tracking.slam.follow import corners, follow, spread_out
from heimdall.tracking.slam.found import Planes
from heimdall.tracking.slam.lens import zoomed
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.model import (
    KNOWN,
    UNKNOWN,
    Keyframe,
    Map,
    NewKeyframe,
    Update,
    carried,
    nearer,
)
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.relocalise import LONG, Recognised, alike, recognised, sure
from heimdall.tracking.slam.worker import MappingProcess

log = logging.getLogger(__name__)

INITIALIZING = "initializing"
EXCESSIVE_MOTION = "excessive motion"
INSUFFICIENT_FEATURES = "insufficient features"
RELOCALIZING = "relocalizing"

POINTS = 320  # of a keyframe
FINE, COARSE = 220, 50  # points that are followed in a frame: exactly, roughly
CELL = 40  # pixels: points are spread over cells of it
LEAST_POINTS = 20
LEAST_SHARE = 0.4  # of the points found that must agree
FAR_APART = 0.3  # of the nearest keyframe: another is worth it
EARLY_APART = 0.15  # while there are few
FEW_KEYFRAMES = 5
LEAST_BETWEEN = 3  # frames between keyframes
FOUND = 0.75  # of the points that should be seen: fewer ask for one
COVERED = 0.6  # of cells in which points are followed: fewer ask for a keyframe
WIDE = 2.0  # how differently a keyframe may see what is compared with it
REFRESHED = 5  # frames after which references are chosen anew
MOST_LOST = 300  # frames: this may be another room, and a map of it begins
EARLY_LOST = 15  # frames, while there are few keyframes: it did not begin well
PROVEN = 10  # frames in a row: then what has begun is no mistake
TRIED, COMPARED = 2, 6  # keyframes, in a frame that is lost: by their points, by features
COASTED = 6  # frames that a pose is searched for where it should be
NEAREST = 0.02  # of the scene's depth, before the camera
CALM_PX = 5.0  # that guesses are off: no rough search is needed
LIT = (0.5, 2.0)
WRONG_LENS = 0.05  # of the focal length that was calibrated
LOOK_BACK, LOOK_BACK_LOST = 30, 3  # frames between two looks for one of them
MOST_IDS = 1 << 17  # of points: then those that live are numbered from 0 again


class RoomTracker:
    """Give it frame after frame. One thread only. ``reason``: why the last frame has no pose.
    ``known``: a map to find the camera in; if it is not found there, a new one begins, too.

    As in ORB-SLAM3's Atlas (Campos et al., 2021) a map that the camera has left is kept, and taken
    up again once the camera is found in it: after a long time without a pose, and where pictures
    had another size meanwhile. Of two maps that both see the camera the older one holds.
    ``gravity``: what the camera's sensors would say when a map begins, if it had any."""

    def __init__(
        self,
        mapper: Mapper | MappingProcess | None = None,
        known: Map | None = None,
        gravity: Motion | None = None,
    ) -> None:
        self.reason = INITIALIZING
        self._mapper = mapper if mapper is not None else MappingProcess()
        self._gravity = gravity
        self._longer = self._zoom = 1.0  # the lens is, than frames say; with a zoom
        self._wrong_lens = ""
        self.forget()
        self._stranger = ""  # why the map that was known is none of this room
        self._expected_map = known
        if known is not None and known.keyframes:
            self._have(Left(known, len(known.points), self._zoom, self._longer))
            self._lost = COASTED + 1
            self._begin_mapping()

    def forget(self) -> None:
        """Nothing is known of the room, or of any other."""
        self._atlas = Atlas()
        self._frames = 0
        self._clear()

    def _clear(self) -> None:
        """There is no map."""
        self._mapper.forget()
        self.map = Map()
        self._mapped: Map | None = None  # that the mapper has
        self._start: Beginning | None = None
        self._pose: Pose | None = None
        self._step: Pose | None = None
        self._proven = 0  # frames in a row that have borne the map out
        self._lost = 0  # frames since the pose was known
        self._age = 0  # frames since the last keyframe
        self._next_id = 0
        self._references: list[Keyframe] = []
        self._recognised: Recognised | None = None  # the last pose by features, while lost
        self._gain, self._zoom = 1.0, self._longer
        self._off_px = math.inf  # by which the last guess was off

    @property
    def problem(self) -> str:
        """What is wrong with the mapper, in words; empty while all is well."""
        return self._stranger or self._wrong_lens or getattr(self._mapper, "problem", "")

    def close(self) -> None:
        """End the mapper."""
        self._mapper.close()

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Tracking:
        """The next frame, BGR or grey uint8."""
        self._frames += 1
        self._take_updates()
        if self._next_id > MOST_IDS and not self._mapper.busy:
            self._renumber()
        if self._expected_map is not None and camera.guessed and self._frames == 1:
            self._zoom = self._longer = _known_lens(self._expected_map, image, camera)
        picture = Picture(image, camera.zoomed(self._zoom), self._gain)
        if self.map.keyframes and self.map.size != picture.size:
            self._disown("its pictures are of other size")
            self._leave()
            self._return(picture.size, LONG + 1)
        elif self._badly_begun:
            self._clear()
            self._return(picture.size, MOST_LOST + 1)
        fit = self._track(picture) if self.map.keyframes else self._initialise(picture)
        if fit is None and self.map.keyframes and self._lost > MOST_LOST:
            if self._lost == MOST_LOST + 1:
                self._disown("the camera was not found in it")
            fit = self._initialise(picture)
        every = LOOK_BACK_LOST if fit is None else LOOK_BACK
        if self._frames % every == 0:
            fit = self._look_back(picture, fit) or fit
        if self._on_probation(fit, picture.size) or fit is None:
            return Tracking(sequence, LOST, self._pose, focal=self._zoom)
        self.reason = ""
        return Tracking(
            sequence, TRACKED, fit.pose, fit.pose, fit.rms_px, fit.count, focal=self._zoom
        )

    def _on_probation(self, fit: Fit | None, size: tuple[int, int]) -> bool:
        """Whether the map is not to be told yet: by few looks a wrong one may seem right, and the
        next frames contradict it, which ends it."""
        if self._proven == PROVEN:
            return False
        if not self.map.keyframes:
            return True
        self.reason = INITIALIZING
        if fit is None:
            self._clear()
            self._return(size, MOST_LOST + 1)
            return True
        self._proven += 1
        return self._proven < PROVEN

    @property
    def _badly_begun(self) -> bool:
        """Whether a young map is not found any more in pictures that show something."""
        young = len(self.map.keyframes) < FEW_KEYFRAMES and self.map is not self._expected_map
        lost = EARLY_LOST < self._lost <= MOST_LOST
        return young and lost and self.reason == RELOCALIZING

    # --- maps that the camera has left ------------------------------------------------------

    def _mine(self) -> Left:
        return Left(self.map, self._next_id, self._zoom, self._longer)

    def _leave(self) -> None:
        """Keep the map for when the camera comes back, and have none."""
        if self._proven == PROVEN:
            self._atlas.keep(self._mine())
        self._clear()

    def _have(self, left: Left) -> None:
        """Have that map; where the camera is in it has to be found."""
        self.map, self._next_id = left.map, left.next_id
        self._zoom, self._longer = left.zoom, left.longer
        self._pose, self._step, self._references, self._recognised = None, None, [], None
        self.reason, self._lost, self._proven = RELOCALIZING, LONG + 1, PROVEN

    def _return(self, size: tuple[int, int], lost: int) -> None:
        """Look for the camera in the map of such pictures that it was in last, if there is one, as
        if it was ``lost`` for so many frames."""
        fitting = self._atlas.of(size)
        if fitting:
            self._atlas.drop(fitting[-1])
            self._have(fitting[-1])
            self._lost = lost

    def _disown(self, why: str) -> None:
        """Say so, if the camera was never found in the map that was known."""
        if self._expected_map is self.map:
            self._stranger = f"the room's map: {why}; it is kept, and a new one begins, too"
            log.warning("%s", self._stranger)

    def _look_back(self, picture: Picture, now: Fit | None) -> Fit | None:
        """The pose in a map that was left, if the picture bears it out: that one holds again.
        ``now``: the pose in this one, against which only older ones count."""
        others = self._atlas.of(picture.size, None if now is None else self.map)
        if not others:
            return None
        other = others[self._frames // LOOK_BACK_LOST % len(others)]
        mine, before = self._mine(), vars(self).copy()
        seen = picture.zoomed(other.zoom / self._zoom)
        self._have(other)
        found = recognised(self.map, alike(self.map, seen)[:COMPARED], seen)
        fit = self._borne(seen, found.fit.pose) if found is not None else None
        if fit is None:
            vars(self).update(before)
            return None
        self._atlas.drop(other)
        if before["_proven"] == PROVEN:
            self._atlas.keep(mine)
        self._pose, self._lost, self._start = fit.pose, 0, None
        self._stranger, self._expected_map = "", None
        self._mapper.forget()
        self._begin_mapping()
        return fit

    def _begin_mapping(self) -> None:
        """Have the mapper go on with the map as it is."""
        self._mapped = self.map
        self._receive(self._mapper.begin(self.map))

    def _renumber(self) -> None:
        """Number points that live from 0 again, in the mapper, too."""
        self._mapper.forget()
        self._next_id = self.map.renumber()
        self._recognised = None
        self._begin_mapping()

    # --- the beginning ----------------------------------------------------------------------

    def _initialise(self, picture: Picture) -> Fit | None:
        second = bool(self.map.keyframes)  # the camera is still looked for in the first map
        if not second:
            self.reason = INITIALIZING
        if self._start is None or self._start.size != picture.size:
            self._start = Beginning(picture)
            if not self._start.usable:
                self._start = None
                if not second:
                    self.reason = INSUFFICIENT_FEATURES
            return None
        started = self._start.advance(picture)
        if started is None:
            if not self._start.usable:
                self._start = None
            return None
        first, now = started.first, started.now
        if second:
            self._leave()
            self.reason = INITIALIZING
        self._start = None
        self._zoom, self._longer = self._zoom * started.times, self._longer * started.times
        if first.picture.lens.motion is None:
            first.picture.lens = first.picture.lens.sensing(self._gravity)
        self._next_id = len(started.points)
        for each in (first, now):
            self.map.add(each)
        points = self.map.points
        points.reach(self._next_id)
        ids = np.flatnonzero(np.isfinite(started.points[:, 0]))
        points.position[ids] = started.points[ids]
        points.spread[ids], points.anchor[ids] = KNOWN * 0.9, 0
        points.hung(ids, first.pose)
        self._pose, self._step, self._lost, self._stranger = now.pose, None, 0, ""
        self._references = [now]
        self.map.planes = Planes(up=self.map.up)
        self._begin_mapping()
        fit = self._look(now.picture, self._pose)
        self._age = 0
        if fit is not None:
            self._pose = fit.pose
        return fit

    # --- following --------------------------------------------------------------------------

    def _track(self, picture: Picture) -> Fit | None:
        self._age += 1
        fit = None
        if self._lost <= COASTED:
            assert self._pose is not None
            guesses = [self._step.after(self._pose)] if self._step is not None else []
            for guess in [*guesses, self._pose][: 2 if self._lost else 1]:
                fit = self._look(picture, guess)
                if fit is not None:
                    break
        if fit is None and self._lost:
            fit = self._recover(picture)
        if fit is not None and self._zooms(picture, fit):
            fit = self._look(picture, fit.pose)
        if fit is None:
            self._lost += 1
            self._step = None
            self.reason = self._why(picture)
            return None
        before, self._expected_map, self._start = self._pose, None, None
        self._step = fit.pose.after(before.inverse) if before and not self._lost else None
        self._pose, self._lost, self._recognised = fit.pose, 0, None
        if self._mapped is not self.map:
            self._begin_mapping()
        elif self._worth_keeping(fit):
            self._keep(picture, fit)
        return fit

    def _zooms(self, picture: Picture, fit: Fit) -> bool:
        """True if the lens has zoomed, by what the map knows: ``picture`` has the new one then."""
        ids, pixels, agree = self._seen
        mine = np.flatnonzero(agree & self.map.points.known(ids))
        places = self.map.points.position[ids[mine]]
        times = zoomed(picture.lens, fit.pose, places, pixels[mine])
        self._zoom *= times
        picture.lens = picture.lens.zoomed(times)
        return times != 1

    def _why(self, picture: Picture) -> str:
        if picture.detail < 6:
            return INSUFFICIENT_FEATURES
        return EXCESSIVE_MOTION if self._lost <= COASTED else RELOCALIZING

    def _look(self, picture: Picture, guess: Pose) -> Fit | None:
        """The pose near ``guess`` by which keyframes' points are where the picture has them."""
        if not self._references or self._frames % REFRESHED == 0 or self._lost:
            self._references = self.map.nearest(guess, 3, WIDE)
        if not self._references:
            return None
        fit = None
        if self._off_px < CALM_PX and not self._lost:
            fit = self._compare(picture, guess, FINE, 2)
        if fit is None:
            fit = self._compare(picture, guess, COARSE, 3, rough=True)
            fit = self._compare(picture, fit.pose if fit else guess, FINE, 1 if fit else 2)
        self._off_px = self._apart_px(picture, guess, fit) if fit is not None else math.inf
        if fit is None or fit.count < LEAST_POINTS or fit.turn_sd > math.radians(1.0):
            return None
        vague.learn(self.map, *self._seen[:2], fit.pose, picture.lens)
        self._adapt(picture)
        return fit

    def _apart_px(self, picture: Picture, guess: Pose, fit: Fit) -> float:
        """By how much the guess was off, in the middle of the scene, pixels."""
        depth = self._references[0].depth
        rays = np.array([[0, 0, 1.0], [0.3, 0, 1], [0, 0.3, 1]]) * depth
        there = guess.to_camera(fit.pose.to_world(rays))
        if there[:, 2].min() <= 0:
            return math.inf
        off = picture.lens.fx * (there[:, :2] / there[:, 2:] - rays[:, :2] / rays[:, 2:])
        return float(np.linalg.norm(off, axis=1).max())

    def _adapt(self, picture: Picture) -> None:
        """Take the next frame as bright as keyframes were at the same points."""
        ids, pixels, agree = self._seen
        keyframe = self._references[0]
        at = keyframe.places(ids)
        both = agree & (at >= 0)
        if both.sum() < LEAST_POINTS:
            return
        x, y = (pixels[both] / 2).astype(int).T
        u, v = (keyframe.pixels[at[both]] / 2).astype(int).T
        now, then = picture.half[y, x].astype(float), keyframe.picture.half[v, u].astype(float)
        self._gain = float(np.clip(self._gain * np.median((then + 1) / (now + 1)), *LIT))

    def _compare(
        self, picture: Picture, guess: Pose, most: int, levels: int, *, rough: bool = False
    ) -> Fit | None:
        points, lens = self.map.points, picture.lens
        all_ids, all_pixels = [], []
        taken = np.empty(0, np.int64)
        self._expected = 0
        for keyframe in self._references:
            ids = keyframe.ids
            at = np.flatnonzero(np.isfinite(points.spread[ids]) & ~np.isin(ids, taken))
            nearest = NEAREST * keyframe.depth
            inside, pixels = self.map.visible(ids[at], guess, picture, nearest)
            at = at[inside]
            order = np.argsort(points.spread[ids[at]], kind="stable")
            cell = CELL if most >= FINE else 2 * CELL
            chosen = spread_out(pixels, order, picture.size, cell, 2)[: most - len(taken)]
            at, pixels = at[chosen], pixels[chosen]
            found, ok = follow(keyframe, at, pixels, picture, levels, rough=rough)
            self._expected += len(at)
            all_ids.append(ids[at[ok]])
            all_pixels.append(found[ok])
            taken = np.concatenate([taken, ids[at]])
            if len(taken) >= 0.8 * most:
                break
        if not all_ids:
            return None
        ids, pixels = np.concatenate(all_ids), np.concatenate(all_pixels)
        if len(ids) < min(LEAST_POINTS, most // 3):
            return None
        where = points.position[ids]
        ahead = guess.to_camera(where)[:, 2] > 1e-3
        ids, pixels, where = ids[ahead], pixels[ahead], where[ahead]
        fit = refine(lens, where, pixels, guess, vague.weights(self.map, ids, guess, lens))
        if fit is None or fit.count < LEAST_SHARE * len(ids) or fit.count < 8:
            return None
        self._seen = ids, pixels, fit.agree
        return fit

    # --- keyframes --------------------------------------------------------------------------

    def _worth_keeping(self, fit: Fit) -> bool:
        if self._age < LEAST_BETWEEN or self._mapper.busy:
            return False
        nearest = float(self.map.away(fit.pose).min())
        early = len(self.map.keyframes) < FEW_KEYFRAMES
        if nearest > (EARLY_APART if early else FAR_APART):
            return True
        ids, pixels, agree = self._seen
        if len(ids) < FOUND * self._expected and nearest > EARLY_APART:
            return True
        cells = (pixels[agree] // 80).astype(int)
        covered = len(np.unique(cells[:, 0] * 100 + cells[:, 1]))
        size = self._references[0].picture.size
        every = (size[0] // 80) * (size[1] // 80)
        return covered < COVERED * every and nearest > EARLY_APART / 2 and self._age > 8

    def _keep(self, picture: Picture, fit: Fit) -> None:
        points, pose = self.map.points, fit.pose
        ids, pixels, agree = self._seen
        ids, pixels = ids[agree], pixels[agree]
        inverse = 1 / np.maximum(pose.to_camera(points.position[ids])[:, 2], 1e-6)
        new = corners(picture, pixels, POINTS - len(ids))
        guessed = vague.like_neighbours(new, pixels, inverse)
        fresh = np.arange(self._next_id, self._next_id + len(new))
        self._next_id += len(new)
        points.reach(self._next_id)
        reference = self.map.nearest(pose, 1, math.inf)[0]
        number = max(self.map.keyframes) + 1
        keyframe = Keyframe(number, picture, pose, ids, pixels, pixels)
        keyframe.observe(np.concatenate([ids, fresh]), np.concatenate([pixels, new]))
        keyframe.depth = float(1 / np.median(inverse))
        keyframe.scale = reference.scale
        points.begin(fresh, picture.lens.rays(new)[:, :2], guessed, UNKNOWN, keyframe)
        self.map.add(keyframe)
        self._age = 0
        self._references = self.map.nearest(pose, 3)
        self._receive(
            self._mapper.add(
                NewKeyframe(
                    number,
                    picture,
                    reference.number,
                    pose.after(reference.pose.inverse),
                    keyframe.ids,
                    keyframe.pixels,
                    fresh,
                    guessed,
                    points.spread[fresh],
                    reference.scale,
                    self.map.times,
                )
            )
        )

    def _take_updates(self) -> None:
        for each in self._mapper.updates():
            self._receive(each)

    def _receive(self, update: Update | None) -> None:
        """Take over what the mapper found out; the camera's pose moves with the keyframe that it is
        nearest to."""
        if update is None:
            return
        known = self.map.keyframes
        self.map.number += 1
        if update.times != self.map.times:
            self._calibrated(update.times / self.map.times)
        self.map.planes = update.planes or self.map.planes
        fixed = None
        if self._pose is not None and known:
            fixed = self.map.nearest(self._pose, 1, math.inf)[0]
        before = {number: (each.pose, each.scale) for number, each in known.items()}
        for number, (pose, ids, pixels) in update.keyframes.items():
            if number in known:
                scale = update.scales.get(number, 1.0) / known[number].scale
                self._move(number, pose, scale)
                known[number].observe(ids, pixels)
        for number in update.dropped:
            known.pop(number, None)
        latest = max(update.keyframes, default=-1)
        for number in sorted(known):
            if number > latest and latest in before:  # came while the mapper was at work
                self._move(number, *self._carried(known[number].pose, latest, *before[latest]))
        points = self.map.points
        points.reach(int(update.ids.max(initial=-1)) + 1)
        points.position[update.ids] = update.position
        points.spread[update.ids] = update.spread
        points.anchor[update.ids] = update.anchor
        points.spread[update.gone] = np.inf
        self.map.hung(update.ids)
        self.map.rehang(set(update.keyframes), update.ids)
        for number, features in update.features.items():
            if number in known:
                known[number].features = features
        if fixed is not None and fixed.number in known and self._pose is not None:
            self._pose, scale = self._carried(self._pose, fixed.number, *before[fixed.number])
            self._step = nearer(self._step, scale) if self._step is not None else None
        self._references = [each for each in self._references if each.number in known]

    def _calibrated(self, times: float) -> None:
        """The map has found the lens to be so many times longer."""
        self.map.zoom(times)
        self._zoom, self._longer = self._zoom * times, self._longer * times
        lens = self.map.keyframes[max(self.map.keyframes)].picture.lens
        if not lens.guessed and abs(math.log(self._longer)) > WRONG_LENS:
            self._wrong_lens = (
                f"the lens looks {self._longer:.2f} times as long as its camera file says: "
                "`heimdall calibrate` measures it"
            )
            log.warning("%s", self._wrong_lens)

    def _move(self, number: int, pose: Pose, scale: float) -> None:
        """A keyframe moves: what only hangs on it goes with it by ``rehang``, unless a loop has
        changed lengths, too."""
        if scale != 1:
            self.map.move(number, pose, scale)
        self.map.keyframes[number].pose = pose

    def _carried(self, pose: Pose, number: int, before: Pose, scale: float) -> tuple[Pose, float]:
        """A pose, gone with that keyframe, and how many times nearer things are there now."""
        now = self.map.keyframes[number]
        return carried(pose, before, now.pose, now.scale / scale), now.scale / scale

    # --- found again ------------------------------------------------------------------------

    def _recover(self, picture: Picture) -> Fit | None:
        """The pose by keyframes that look like this picture: two in each frame, or by features."""
        keyframes, turn = alike(self.map, picture), self._frames % 3
        if turn == 2:
            before, self._recognised = self._recognised, None
            found = recognised(self.map, keyframes[:COMPARED], picture)
            if found is None:
                return None
            return self._borne(picture, found.fit.pose) or self._from_afar(picture, found, before)
        for each in keyframes[TRIED * turn : TRIED * (turn + 1)]:
            fit = self._borne(picture, each.pose)
            if fit is not None:
                return fit
        return None

    def _borne(self, picture: Picture, pose: Pose) -> Fit | None:
        """The pose near that, if the picture bears it out."""
        fit = self._look(picture, pose)
        if fit is not None and self._lost > COASTED:  # from there, points look otherwise
            fit = self._look(picture, fit.pose)
        if fit is None or not sure(fit, len(self._seen[0]), self._expected, self._lost):
            return None
        self._age = 0  # what is found next bears it out before the map grows by it
        return fit

    def _from_afar(
        self, picture: Picture, found: Recognised, before: Recognised | None
    ) -> Fit | None:
        """A pose by features from where keyframes' points look too different to be followed. It
        becomes a keyframe, or the next frame would be lost again."""
        self._recognised = found if found.clear else None
        nearest = self.map.nearest(found.fit.pose, 1, math.inf)[0]
        if not found.clear or not found.again(before, nearest.depth) or self._mapper.busy:
            return None
        if self._mapped is not self.map:
            self._begin_mapping()
            return None  # the next picture becomes a keyframe
        self._seen, self._expected = (found.ids, found.pixels, found.fit.agree), len(found.ids)
        self._keep(picture, found.fit)
        return found.fit


def _known_lens(known: Map, image: np.ndarray, camera: Camera) -> float:
    """How many times longer than that of a ``camera`` the lens of a map is."""
    lens = known.keyframes[max(known.keyframes)].picture.lens
    return lens.fx / Picture(image, camera).lens.fx
