"""A room's map tied to its targets: how long the map's unit is, and where the targets lie in it.

Wherever a target and the room are both seen, one camera has two poses. Their turns say how the axes
lie. A target says well in which direction its middle is and how far away, less well how it is
turned, so that the lengths of both come from that middle alone. Before the camera has moved far,
the map's points on the target's plane say the length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.slam.model import away, nearer
from heimdall.tracking.world.layout import Layout
from heimdall.tracking.world.setting import TARGET, Setting

LEAST, MOST = 5, 64  # pairs of poses
APART = 0.03  # between views that are kept, as ``away`` has it
FEW = 8  # so many are kept, wherever they are: one look is not exact
SURE = 0.05  # standard deviation of the logarithm of the scale, with which it is told
OFF = 0.004  # of its distance: so far a target's middle may be off at best
TURN = math.radians(1.0)  # turns that differ by more than that count less and less
REACH = 1.3  # times the target's size: points there lie on its plane
LEAST_POINTS, LOOKS = 5, 5  # on the plane, in so many pairs
PLANE_SD = 0.02  # of points at best: they err together
STEP_TURN, STEP = math.radians(0.2), 0.005  # smaller steps, of the distance, are not told
ROUNDS = 6


@dataclass(frozen=True, eq=False)
class Pair:
    """One camera, twice: ``relative`` to a ``keyframe`` of the map, and from the ``world`` of the
    targets to it."""

    keyframe: int
    relative: Pose
    world: Pose


class Tie:
    """``corners`` (k, 3) of the first target, metres. Give it each frame; it says how the map lies
    in the targets' world."""

    def __init__(self, corners: np.ndarray) -> None:
        self._corners = corners * REACH
        self.forget()

    def forget(self) -> None:
        """Nothing was seen."""
        self._layout: Layout | None = None
        self._pairs: list[Pair] = []
        self.setting: Setting | None = None

    def take(self, layout: Layout, pose: Pose | None, seen: Pose | None) -> Setting | None:
        """The next frame, its ``pose`` in the map (None: unknown) and by a target that is ``seen``
        in it (None: none is). Returns from the map to the targets' world, None while that is not
        known. It changes in steps that show."""
        before = self._layout
        if before is not None and before.map is not layout.map:
            self.forget()
        elif before is not None and before.times != layout.times:
            self._pairs = []  # by another lens
        elif before is not None and before is not layout:
            self._pairs = [_rehung(each, before, layout) for each in self._pairs]
            self._pairs = [each for each in self._pairs if each.keyframe in layout.keyframes]
        same, self._layout = layout is before, layout
        added = pose is not None and seen is not None and self._add(layout, pose, seen)
        if (added or not same) and len(self._pairs) >= LEAST:
            self._solve(layout)
        return self.setting

    def _add(self, layout: Layout, pose: Pose, seen: Pose) -> bool:
        number = layout.nearest(pose)
        if number is None:
            return False
        keyframe, depth = layout.keyframes[number]
        if len(self._pairs) >= FEW:
            known = _in_map(self._pairs, layout)
            turned = np.stack([each.rotation for each in known])
            centres = np.stack([each.position for each in known])
            if away(turned, centres, np.full(len(known), depth), pose).min() < APART:
                return False
        self._pairs = self._pairs[-(MOST - 1) :]
        self._pairs.append(Pair(number, pose.after(keyframe.inverse), seen))
        return True

    def _solve(self, layout: Layout) -> None:
        """Find the setting; it stays the one that there is where the difference does not show."""
        poses = _in_map(self._pairs, layout)
        scales = [
            self._by_plane(layout, poses),
            _by_movement(poses, [each.world for each in self._pairs]),
        ]
        found = _combined([each for each in scales if each is not None])
        if found is None:
            return
        metres, deviation = found
        if deviation > SURE:
            return
        now = _setting(metres, poses, [each.world for each in self._pairs])
        if self.setting is None or _shows(self.setting, now, poses[-1]):
            self.setting = now

    def _by_plane(self, layout: Layout, poses: list[Pose]) -> tuple[float, float] | None:
        """Metres of the map's unit, by points that it has on the target: their depths in it, and
        those of the plane along the same rays; and the standard deviation of its logarithm."""
        looks = []
        for pose, pair in list(zip(poses, self._pairs, strict=True))[-LOOKS:]:
            there, corners = pose.to_camera(layout.points), pair.world.to_camera(self._corners)
            if corners[:, 2].min() <= 0:
                continue
            there = there[there[:, 2] > 0]
            rays = there / there[:, 2:]
            rays, depths = _within(rays, there[:, 2], corners[:, :2] / corners[:, 2:])
            normal = pair.world.rotation[:, 2]
            facing = rays @ normal
            far = float(normal @ pair.world.translation) / np.where(facing, facing, np.inf)
            ratios = (far / depths)[far > 0]
            if len(ratios) >= LEAST_POINTS:
                looks.append(np.log(ratios))
        if not looks:
            return None
        middles = np.array([np.median(each) for each in looks])
        spread = [
            1.4826 * np.median(np.abs(each - middle)) / math.sqrt(len(each))
            for each, middle in zip(looks, middles, strict=True)
        ]
        return math.exp(float(np.median(middles))), max(PLANE_SD, float(np.median(spread)))


def _within(
    rays: np.ndarray, depths: np.ndarray, corners: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the rays (n, 3) that go through a convex outline (k, 2) on the plane z = 1."""
    sides = np.roll(corners, -1, axis=0) - corners
    off = rays[:, None, :2] - corners
    turns = sides[:, 0] * off[..., 1] - sides[:, 1] * off[..., 0]
    inside = (turns > 0).all(axis=1) | (turns < 0).all(axis=1)
    return rays[inside], depths[inside]


def _by_movement(poses: list[Pose], worlds: list[Pose]) -> tuple[float, float] | None:
    """Metres of the map's unit, by how the target's middle moves before the camera while that moves
    in the map; and the standard deviation of its logarithm."""
    centres, seen, far = _to_middle(poses, worlds)
    weights = 1 / far**2
    for _ in range(ROUNDS):
        moved = centres - np.average(centres, axis=0, weights=weights)
        nearer = seen - np.average(seen, axis=0, weights=weights)
        square = float(weights @ (moved**2).sum(axis=1))
        if square < 1e-12:
            return None
        metres = -float(weights @ (moved * nearer).sum(axis=1)) / square
        off = np.linalg.norm(nearer + metres * moved, axis=1) / far
        noise = max(OFF, float(np.median(off)))
        weights = 1 / far**2 / (1 + (off / (2 * noise)) ** 2)
    if metres <= 0:
        return None
    return metres, noise / math.sqrt(square) / metres


def _combined(found: list[tuple[float, float]]) -> tuple[float, float] | None:
    """Scales, and standard deviations of their logarithms, by inverse variance."""
    if not found:
        return None
    weights = np.array([1 / deviation**2 for _, deviation in found])
    logs = np.log([metres for metres, _ in found])
    return math.exp(float(np.average(logs, weights=weights))), float(weights.sum() ** -0.5)


def _setting(metres: float, poses: list[Pose], worlds: list[Pose]) -> Setting:
    centres, seen, far = _to_middle(poses, worlds)
    middles = centres + seen / metres
    weights = 1 / far**2
    for _ in range(ROUNDS):
        middle = np.average(middles, axis=0, weights=weights)
        off = metres * np.linalg.norm(middles - middle, axis=1) / far
        noise = max(OFF, float(np.median(off)))
        weights = 1 / far**2 / (1 + (off / (2 * noise)) ** 2)
    turn = _turn(poses, worlds)
    return Setting(metres, turn, -metres * turn @ middle, source=TARGET)


def _turn(poses: list[Pose], worlds: list[Pose]) -> np.ndarray:
    """From the map's axes to the world's, as most pairs have it: a target's mirrored pose says
    quite another one."""
    turns = np.stack([w.rotation.T @ p.rotation for p, w in zip(poses, worlds, strict=True)])
    cosines = (np.einsum("nij,mij->nm", turns, turns) - 1) / 2
    angles = np.arccos(np.clip(cosines, -1, 1))
    off = angles[int(np.argmin(np.median(angles, axis=1)))]
    for _ in range(ROUNDS):
        weights = 1 / (1 + (off / TURN) ** 2) ** 2
        u, _, v = np.linalg.svd(np.einsum("n,nij->ij", weights, turns))
        mean = u @ np.diag([1, 1, np.linalg.det(u @ v)]) @ v
        off = np.arccos(np.clip((np.einsum("nij,ij->n", turns, mean) - 1) / 2, -1, 1))
    return np.asarray(mean)


def _to_middle(poses: list[Pose], worlds: list[Pose]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each pair: where the camera is in the map (n, 3); from there to the targets' origin, in
    the map's axes and metres (n, 3); and how far that is (n,)."""
    centres = np.stack([each.position for each in poses])
    middles = np.stack([each.translation for each in worlds])
    seen = np.einsum("nji,nj->ni", np.stack([each.rotation for each in poses]), middles)
    return centres, seen, np.linalg.norm(seen, axis=1)


def _shows(before: Setting, now: Setting, pose: Pose) -> bool:
    """Whether a camera there has another pose by that."""
    one, other = before.camera(pose), now.camera(pose)
    turn, move = apart(one, other)
    return turn > STEP_TURN or move > STEP * float(np.linalg.norm(other.translation))


def _in_map(pairs: list[Pair], layout: Layout) -> list[Pose]:
    return [each.relative.after(layout.keyframes[each.keyframe][0]) for each in pairs]


def _rehung(pair: Pair, before: Layout, now: Layout) -> Pair:
    """As long as lengths are now; on another keyframe, if its own is gone."""
    number: int | None = pair.keyframe
    relative = pair.relative
    if number not in before.keyframes:
        return pair
    if number not in now.keyframes:
        pose = relative.after(before.keyframes[number][0])
        number = before.nearest(pose, now)
        if number is None:
            return pair
        relative = pose.after(before.keyframes[number][0].inverse)
    relative = nearer(relative, before.nearer(number, now))
    return replace(pair, keyframe=number, relative=relative)
