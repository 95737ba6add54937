"""The map: keyframes, and the points of the world that they have seen.

A point hangs on the keyframe that saw it first, as a ray and an inverse depth (Civera, Davison and
Montiel, 2008): even of one whose depth is not known yet it can be said where it will be seen, and
by how much that is uncertain. So the camera is followed without parallax, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam.found import Planes
from heimdall.tracking.slam.picture import Picture

UNKNOWN = 0.5  # standard deviation of an inverse depth, relative to it, when it is only guessed
KNOWN = 0.08  # below it a point has a place in the world
FAR_STEP, FAR_TURN = 0.5, 0.6  # of the depth, radians: so different is quite another view
MARGIN_PX = 8  # at the edge of a picture, where no point is looked for
POINTS = ("position", "spread", "anchor", "ray", "inverse")  # the arrays of all points
FEW = 8  # points: they do not say how far away things are
GROWN = 1024  # points for which room is made at once


@dataclass(eq=False)
class Keyframe:
    """A frame that is kept: its ``picture`` and ``pose``, and where it saw points: ``ids`` (n,)
    ascending, ``pixels`` (n, 2) of the reduced picture, ``seen`` (n, 2) on the plane z = 1."""

    number: int
    picture: Picture
    pose: Pose
    ids: np.ndarray
    pixels: np.ndarray
    seen: np.ndarray
    depth: float = 1.0  # median of its points
    features: tuple[np.ndarray, np.ndarray] | None = None  # ids (n,), descriptors (n, 32)
    scale: float = 1.0  # by which loops have divided all lengths here, since there was a map

    def zoom(self, times: float) -> None:
        """Its lens is so many times longer than it was taken to be."""
        self.picture = self.picture.zoomed(times)
        self.observe(self.ids, self.pixels)

    def forget(self, ids: np.ndarray) -> bool:
        """It has not seen those. Returns True if it is another one by that."""
        kept = ~np.isin(self.ids, ids)
        if kept.all():
            return False
        self.observe(self.ids[kept], self.pixels[kept])
        return True

    def observe(self, ids: np.ndarray, pixels: np.ndarray) -> None:
        """Replace what it saw."""
        order = np.argsort(ids, kind="stable")
        self.ids, self.pixels = ids[order], pixels[order]
        self.seen = self.picture.lens.rays(self.pixels)[:, :2]

    def places(self, ids: np.ndarray) -> np.ndarray:
        """Where in ``ids`` of this keyframe each of the given ones is; -1 where it is not."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, at, -1)


class Points:
    """Of each point, by its id: ``position`` (n, 3) in the world, ``spread`` (n,) the standard
    deviation of its inverse depth relative to that (infinite: there is no such point), ``anchor``
    (n,) the keyframe on which it hangs, its ``ray`` (n, 2) there, and its ``inverse`` depth."""

    def __init__(self) -> None:
        self.position = np.zeros((0, 3))
        self.spread = np.zeros(0)
        self.anchor = np.zeros(0, np.int64)
        self.ray = np.zeros((0, 2))
        self.inverse = np.zeros(0)

    def __len__(self) -> int:
        return len(self.spread)

    def reach(self, most: int) -> None:
        """Make room for ids below ``most``."""
        more = most - len(self)
        if more <= 0:
            return
        more += GROWN
        self.position = np.concatenate([self.position, np.zeros((more, 3))])
        self.spread = np.concatenate([self.spread, np.full(more, np.inf)])
        self.anchor = np.concatenate([self.anchor, np.full(more, -1)])
        self.ray = np.concatenate([self.ray, np.zeros((more, 2))])
        self.inverse = np.concatenate([self.inverse, np.ones(more)])

    def known(self, ids: np.ndarray) -> np.ndarray:
        """Which of them have a place."""
        return np.asarray(self.spread[ids] < KNOWN)

    def begin(
        self,
        ids: np.ndarray,
        rays: np.ndarray,
        inverse: np.ndarray,
        spread: np.ndarray | float,
        keyframe: Keyframe,
    ) -> None:
        """Points that ``keyframe`` has seen first, along ``rays`` (n, 2)."""
        self.ray[ids], self.inverse[ids], self.spread[ids] = rays, inverse, spread
        self.anchor[ids] = keyframe.number
        self.hang(ids, keyframe.pose)

    def hang(self, ids: np.ndarray, pose: Pose) -> None:
        """Derive positions from inverse depths at ``pose``, that of their anchor."""
        rays = np.column_stack([self.ray[ids], np.ones(len(ids))])
        self.position[ids] = pose.to_world(rays / self.inverse[ids, None])

    def hung(self, ids: np.ndarray, pose: Pose) -> None:
        """Derive inverse depths from positions, which are known better, at ``pose``."""
        there = pose.to_camera(self.position[ids])
        depth = np.maximum(there[:, 2], 1e-6)
        self.ray[ids], self.inverse[ids] = there[:, :2] / depth[:, None], 1 / depth


@dataclass(eq=False)
class Map:
    """All of it. ``number``: how often it was adjusted; ``times``: how many times longer than at
    first its lens has been found to be; ``began``: smaller than of maps that began later."""

    keyframes: dict[int, Keyframe] = field(default_factory=dict)
    points: Points = field(default_factory=Points)
    planes: Planes = field(default_factory=Planes)
    number: int = 0
    times: float = 1.0
    began: int = field(default_factory=itertools.count().__next__)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures of its keyframes. It has some."""
        return next(iter(self.keyframes.values())).picture.size

    def renumber(self) -> int:
        """Number its points from 0 again, without those that are gone: ids are never given twice,
        so that arrays would grow as long as the camera moves. Returns how many points there are."""
        points = self.points
        hangs = np.isin(points.anchor, list(self.keyframes))
        alive = np.flatnonzero(np.isfinite(points.spread) & hangs)
        now = np.full(len(points), -1)
        now[alive] = np.arange(len(alive))
        for name in POINTS:
            setattr(points, name, getattr(points, name)[alive])
        for each in self.keyframes.values():
            left = now[each.ids] >= 0
            each.observe(now[each.ids[left]], each.pixels[left])
            if each.features is not None:
                owners, descriptors = each.features
                left = now[owners] >= 0
                each.features = now[owners[left]], descriptors[left]
        planes = []
        for plane in self.planes.planes:
            there = now[plane.support[plane.support < len(now)]]
            planes.append(replace(plane, support=there[there >= 0]))
        self.planes = replace(self.planes, planes=tuple(planes))
        return len(alive)

    def zoom(self, times: float) -> None:
        """The lens is so many times longer: poses and places are as they were, rays are not."""
        self.times *= times
        for each in self.keyframes.values():
            each.zoom(times)
        self.points.ray /= times

    def add(self, keyframe: Keyframe) -> None:
        """Keep a keyframe."""
        self.keyframes[keyframe.number] = keyframe

    def hung(self, ids: np.ndarray) -> None:
        """Derive inverse depths from positions, which are known better."""
        anchors = self.points.anchor[ids]
        for number in np.unique(anchors).tolist():
            if number in self.keyframes:
                self.points.hung(ids[anchors == number], self.keyframes[number].pose)

    def move(self, number: int, pose: Pose, scale: float = 1.0) -> None:
        """A keyframe is at ``pose``, and what it saw ``scale`` times nearer; the points that hang
        on it go with it."""
        each, points = self.keyframes[number], self.points
        own = np.flatnonzero((points.anchor == number) & np.isfinite(points.spread))
        points.inverse[own] *= scale
        each.pose, each.depth, each.scale = pose, each.depth / scale, each.scale * scale
        points.hang(own, pose)

    @property
    def up(self) -> np.ndarray | None:
        """Where is up (3,), by what sensors said of keyframes; None where they said nothing."""
        downs = [
            each.pose.rotation.T @ np.asarray(each.picture.lens.motion.down)
            for each in self.keyframes.values()
            if each.picture.lens.motion is not None
        ]
        up = -np.sum(downs, axis=0) if downs else np.zeros(3)
        length = float(np.linalg.norm(up))
        return up / length if length > len(downs) / 2 else None  # else they contradict each other

    def rehang(self, numbers: set[int], placed: np.ndarray) -> None:
        """Points that hang on those keyframes, and are not ``placed`` by themselves, go with
        them."""
        left = np.isfinite(self.points.spread)
        left[placed] = False
        own = np.flatnonzero(left)
        anchors = self.points.anchor[own]
        for number in numbers & set(self.keyframes) & set(np.unique(anchors).tolist()):
            self.points.hang(own[anchors == number], self.keyframes[number].pose)

    def observed(
        self, ids: np.ndarray, numbers: Collection[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All looks at points, of those keyframes (None: of all): their numbers (n,), which of
        ``ids`` (n,), where (n, 2)."""
        cameras, which, seen = [], [], []
        for each in self.keyframes.values():
            if numbers is not None and each.number not in numbers:
                continue
            at = each.places(ids)
            there = np.flatnonzero(at >= 0)
            cameras.append(np.full(len(there), each.number))
            which.append(there)
            seen.append(each.seen[at[there]])
        return np.concatenate(cameras), np.concatenate(which), np.concatenate(seen)

    def poses(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rotations (n, 3, 3) and translations (n, 3) of keyframes."""
        poses = [self.keyframes[number].pose for number in numbers.tolist()]
        return np.stack([p.rotation for p in poses]), np.stack([p.translation for p in poses])

    def place(self, numbers: np.ndarray, rotations: np.ndarray, translations: np.ndarray) -> None:
        """Keyframes are there, by an adjustment."""
        for number, turn, move in zip(numbers.tolist(), rotations, translations, strict=True):
            self.keyframes[number].pose = Pose(turn, move)

    def measure(self, numbers: np.ndarray) -> None:
        """How far away things are at keyframes, where enough of their points say it."""
        for number in numbers.tolist():
            each = self.keyframes[number]
            own = each.ids[self.points.known(each.ids)]
            if len(own) > FEW:
                there = each.pose.to_camera(self.points.position[own])
                each.depth = float(np.median(there[:, 2]))

    def placed(self) -> np.ndarray:
        """Ids of all points that have a place."""
        return np.flatnonzero(self.points.spread < KNOWN)

    def looks(self) -> np.ndarray:
        """How many keyframes see each point, (n,)."""
        found = np.zeros(len(self.points), int)
        for each in self.keyframes.values():
            found[each.ids] += 1
        return found

    def visible(
        self, ids: np.ndarray, pose: Pose, picture: Picture, nearest: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of ``ids`` (their places in it) a camera at ``pose`` has in its picture, farther
        away than ``nearest``, and at which pixels (k, 2)."""
        there = pose.to_camera(self.points.position[ids])
        at = np.flatnonzero(there[:, 2] > nearest)
        pixels = picture.lens.pixels(there[at])
        inside = picture.inside(pixels, MARGIN_PX)
        return at[inside], pixels[inside]

    def away(self, pose: Pose) -> np.ndarray:
        """How differently a camera at ``pose`` sees what each keyframe saw, (n,) in their order."""
        known = self.keyframes.values()
        turned = np.stack([each.pose.rotation for each in known])
        moved = np.stack([each.pose.translation for each in known])
        centres = -np.einsum("nji,nj->ni", turned, moved)
        return away(turned, centres, np.array([each.depth for each in known]), pose)

    def nearest(self, pose: Pose, most: int, wide: float = 1.0) -> list[Keyframe]:
        """The keyframes that saw most nearly what a camera at ``pose`` sees, nearest first; those
        that are farther ``away`` than ``wide`` are left out."""
        if not self.keyframes:
            return []
        known, away = list(self.keyframes.values()), self.away(pose)
        return [known[at] for at in np.argsort(away, kind="stable")[:most] if away[at] < wide]


def away(turned: np.ndarray, centres: np.ndarray, depths: np.ndarray, pose: Pose) -> np.ndarray:
    """How differently a camera at ``pose`` sees what others, with rotations (n, 3, 3), places
    (n, 3) and depths (n,), saw: 1 is about as far as points are found again."""
    step = np.linalg.norm(centres - pose.position, axis=1) / depths
    cosine = (np.einsum("nij,ij->n", turned, pose.rotation) - 1) / 2
    return np.asarray(step / FAR_STEP + np.arccos(np.clip(cosine, -1, 1)) / FAR_TURN)


def carried(pose: Pose, before: Pose, now: Pose, scale: float = 1.0) -> Pose:
    """A camera's ``pose`` once a keyframe near it has moved from ``before`` to ``now``, and what it
    saw has come ``scale`` times nearer."""
    return nearer(pose.after(before.inverse), scale).after(now)


def nearer(pose: Pose, scale: float) -> Pose:
    """A pose in a world whose lengths were divided by ``scale``."""
    return Pose(pose.rotation, pose.translation / scale)


@dataclass(frozen=True, eq=False)
class NewKeyframe:
    """A keyframe on its way to the mapper: its pose relative to that of keyframe ``reference``
    (None: the world's), what it saw, and of points that are new in it their inverse depths and
    spreads. ``scale``: that of the reference, ``times``: that of the map, as the tracker has
    them."""

    number: int
    picture: Picture
    reference: int | None
    relative: Pose
    ids: np.ndarray
    pixels: np.ndarray
    fresh: np.ndarray
    inverse: np.ndarray
    spread: np.ndarray
    scale: float = 1.0
    times: float = 1.0


@dataclass(frozen=True, eq=False)
class Update:
    """What the mapper has found out: poses of keyframes and what they saw, places of points, which
    points and keyframes are gone; all planes, if it has looked for them. ``scales``: those of
    keyframes that are another than 1. ``times``: that of the map."""

    keyframes: dict[int, tuple[Pose, np.ndarray, np.ndarray]]
    ids: np.ndarray
    position: np.ndarray
    spread: np.ndarray
    anchor: np.ndarray
    gone: np.ndarray
    dropped: tuple[int, ...] = ()
    features: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    planes: Planes | None = None
    scales: dict[int, float] = field(default_factory=dict)
    times: float = 1.0
