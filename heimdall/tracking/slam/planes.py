"""Planes of a room: found in the points of its map, followed while it is adjusted, and grown.

Planes are level or upright. Which way is up follows from the largest one that lies below the
camera, unless it is known. What is found is what competes best for its points: many of them that
hang together, seen from one side, and few beside them. Greedy RANSAC (Fischler and Bolles, 1981)
lays planes across a wall and what stands before it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heimdall.tracking.slam import flat
from heimdall.tracking.slam.flat import Cloud, Flat
from heimdall.tracking.slam.found import (
    ADDED,
    HORIZONTAL,
    MERGED,
    REMOVED,
    UNKNOWN,
    UPDATED,
    VERTICAL,
    FoundPlane,
    PlaneEvent,
    Planes,
    box,
    changed,
)
from heimdall.tracking.slam.given import check, direction

LEAST_POINTS = 25
KEPT_POINTS = 15  # a plane that has been found may lose some
KEPT = 0.7  # of the evidence that a new one needs
DOUBTS = 2  # looks in a row in which it may be none: an adjustment is under way
MOST_SPREAD = 0.05  # relative standard deviation of depth: vaguer points say nothing
LEANING = math.radians(5.0)  # from level or upright
LEANING_KEPT = math.radians(8.0)
BELOW = 0.42  # cosine of a plane's normal and the pictures' upper edge: it lies below the camera
DENSER, DENSER_THAN_EACH = 2.0, 1.6  # times as many points as on both sides of it, and on each
SURE = 4.5  # standard deviations by which it is denser
PEAKED = 0.62  # of its points are in the middle half, of an even cloud's a half
TURN_SD = math.radians(1.0)  # of a normal that is known
UNEVEN = 2.0  # standard deviations that parts of a plane may be off
TOLD_APART = 3.0  # standard deviations between parallel planes
GUESSES = 100
TRIED, REFINED = 4, 2  # of the best guesses
SAMPLED = 400  # points that judge guesses
NEW = 2  # planes found in one look
MERGED_ANGLE = math.radians(6.0)
ELECTED = 1.5  # times the evidence that another plane needs to become the ground


@dataclass(eq=False)
class _Known:
    """A plane as it is worked on: ``own`` (n,) says which points are on it."""

    id: int
    plane: Flat
    own: np.ndarray
    before: FoundPlane | None = None


class PlaneFinder:
    """Give it the map every now and then. ``known``: what another finder has found.

    Deterministic: the same calls find the same planes.
    """

    def __init__(self, known: Planes | None = None) -> None:
        self.planes = known.planes if known is not None else ()
        self.up = known.up if known is not None else None
        self._next = max((each.id for each in self.planes), default=-1) + 1
        self._told = {each.id: each for each in self.planes}
        self._doubts: dict[int, int] = {}  # looks in which a plane was none
        self._looks = 0
        self._grounded = False  # there is a level plane, or up is given: others go by that

    def look(
        self,
        points: np.ndarray,
        ids: np.ndarray,
        spread: np.ndarray,
        seen_from: np.ndarray,
        up: np.ndarray | None = None,
        overhead: np.ndarray | None = None,
    ) -> Planes:
        """The planes in ``points`` (n, 3) of the map, called ``ids`` (n,), whose depths have the
        relative standard deviations ``spread`` (n,) as seen from ``seen_from`` (n, 3).

        ``up`` (3,): where that is known. ``overhead`` (3,): where the pictures' upper
        edge points on average, by which "below" is told where it is not; None: -y. Raises
        ValueError for arrays that do not fit together, or are not finite, and
        for an ``up`` of no length.
        """
        check(points, ids, spread, seen_from)
        up = direction("up", up) if up is not None else None
        if overhead is not None:  # none of pictures that were turned every way
            overhead = direction("overhead", overhead) if np.any(overhead) else None
        self._looks += 1
        used = spread < MOST_SPREAD
        ids = ids[used]
        cloud = Cloud(points[used], spread[used], seen_from[used])
        self.up = up if up is not None else self.up
        events: list[PlaneEvent] = []
        known = self._follow(cloud, ids, events)
        self._grounded = up is not None or any(
            self._kind(each.plane) == HORIZONTAL for each in known
        )
        self._elect(known, up, overhead)
        self._merge(cloud, known, events)
        known += self._search(cloud, known, up, overhead)
        self._elect(known, up, overhead)
        self.planes = tuple(self._described(each, cloud, ids) for each in known)
        self._tell(events)
        return Planes(self.planes, self.up, tuple(events))

    # --- those that are known ---------------------------------------------------------------

    def _follow(self, cloud: Cloud, ids: np.ndarray, events: list[PlaneEvent]) -> list[_Known]:
        """Planes where their points are now, with the points that have come to lie on them."""
        known: list[_Known] = []
        owner = np.full(len(cloud), -1)
        for each in self.planes:
            owner[np.isin(ids, each.support)] = each.id
        for each in self.planes:
            chosen = np.flatnonzero((owner == each.id) | (owner == -1))
            rest, support = cloud.part(chosen), owner[chosen] == each.id
            place = each.pose.translation
            start = Flat(each.normal, float(each.normal @ place), place)
            found = _grown(rest, start, support, times=1)
            holds = found is not None and self._still(rest, *found, each.kind)
            doubts = 0 if holds else self._doubts.get(each.id, 0) + 1
            if doubts > DOUBTS or support.sum() < KEPT_POINTS:
                events.append(PlaneEvent(REMOVED, each.id))
                owner[owner == each.id] = -1
                continue
            self._doubts[each.id] = doubts
            plane, on = found if found is not None and holds else (start, support)
            own = np.zeros(len(cloud), bool)
            own[chosen[on]] = True
            owner[owner == each.id] = -1
            owner[own] = each.id
            known.append(_Known(each.id, plane, own, each))
        return known

    def _still(self, rest: Cloud, plane: Flat, own: np.ndarray, kind: str) -> bool:
        """True if a plane that was found is one after an adjustment, too."""
        return (
            own.sum() >= KEPT_POINTS
            and self._upright(plane, kind, LEANING_KEPT)
            and flat.uneven(rest.part(own), plane) < UNEVEN / KEPT
            and _denser(rest, plane, own, KEPT)
        )

    def _upright(self, plane: Flat, kind: str, leaning: float) -> bool:
        """True if a plane may have that direction."""
        if self.up is None or kind == UNKNOWN:
            return True
        return self._kind(plane, leaning) != UNKNOWN

    def _kind(self, plane: Flat, leaning: float = LEANING_KEPT) -> str:
        if self.up is None:
            return UNKNOWN
        lift = abs(float(plane.normal @ self.up))
        if lift > math.cos(leaning):
            return HORIZONTAL
        return VERTICAL if lift < math.sin(leaning) else UNKNOWN

    def _elect(
        self, known: list[_Known], up: np.ndarray | None, overhead: np.ndarray | None
    ) -> None:
        """Where the vertical is not given: that of the plane below with most points, until another
        has far more."""
        if up is not None or not known:
            return
        edge = np.array([0.0, -1, 0]) if overhead is None else overhead
        votes = []
        for each in known:
            lift = float(each.plane.normal @ edge)
            ground = self.up is not None and each.plane.normal @ self.up > math.cos(LEANING_KEPT)
            votes.append(each.own.sum() * lift * (ELECTED if ground else 1) * (lift > BELOW))
        best = int(np.argmax(votes))
        if votes[best] > 0:
            self.up = known[best].plane.normal

    def _merge(self, cloud: Cloud, known: list[_Known], events: list[PlaneEvent]) -> None:
        """Planes that have grown together become the older one."""
        at = 0
        while at < len(known):
            older = known[at]
            for other in known[at + 1 :]:
                both = older.own | other.own
                if _same(cloud, older, other) and (one := _united(cloud, older, both)):
                    older.plane, older.own = one
                    known.remove(other)
                    events.append(PlaneEvent(MERGED, other.id, older.id))
                    break
            else:
                at += 1

    # --- new ones ---------------------------------------------------------------------------

    def _search(
        self,
        cloud: Cloud,
        known: list[_Known],
        up: np.ndarray | None,
        overhead: np.ndarray | None,
    ) -> list[_Known]:
        """Planes in what is on none yet."""
        draw = np.random.default_rng(self._looks)
        free = np.ones(len(cloud), bool)
        for each in known:
            free &= ~each.own
        found: list[_Known] = []
        while len(found) < NEW and free.sum() >= LEAST_POINTS:
            best = self._best(cloud, [*known, *found], free, draw)
            if best is None:
                break
            plane, own = best
            free &= ~own
            found.append(_Known(self._next, plane, own))
            self._next += 1
            if not self._grounded:
                self._elect([*known, *found], up, overhead)
                self._grounded = self._kind(plane) == HORIZONTAL
        return found

    def _best(
        self, cloud: Cloud, known: list[_Known], free: np.ndarray, draw: np.random.Generator
    ) -> tuple[Flat, np.ndarray] | None:
        """The plane that has most of the free points, as far as they hang together."""
        chosen = np.flatnonzero(free)
        rest = cloud.part(chosen)
        up = self.up if self._grounded else None
        normals, offsets = flat.guesses(rest, up, GUESSES, draw)
        some = rest.part(draw.choice(len(rest), min(len(rest), SAMPLED), replace=False))
        rivals = []
        for normal, offset in flat.best(some, normals, offsets, TRIED):
            found = _grown(rest, Flat(normal, offset, normal * offset), None, times=1)
            if found is not None and found[1].sum() >= KEPT_POINTS:
                rivals.append((_worth(rest, *found), *found))
        rivals.sort(key=lambda each: -each[0])
        best, most = None, 0.0
        for worth, start, support in rivals[:REFINED]:
            if best is not None and worth < most / 2:
                break
            found = _grown(rest, start, support)
            if found is None or not self._sound(rest, *found, known, cloud):
                continue
            if (worth := _worth(rest, *found)) > most:
                best, most = found, worth
        if best is None:
            return None
        own = np.zeros(len(cloud), bool)
        own[chosen[best[1]]] = True
        return best[0], own

    def _sound(
        self, rest: Cloud, plane: Flat, own: np.ndarray, known: list[_Known], cloud: Cloud
    ) -> bool:
        """True if that is a plane, and another one than those that are known."""
        if own.sum() < LEAST_POINTS or plane.turn_sd > TURN_SD:
            return False
        if self._grounded and not self._upright(plane, "", LEANING):
            return False
        mine = rest.part(own)
        if flat.uneven(mine, plane) > UNEVEN or not _denser(rest, plane, own):
            return False
        return not any(_too_near(mine, plane, each, cloud) for each in known)

    # --- what is told -----------------------------------------------------------------------

    def _described(self, known: _Known, cloud: Cloud, ids: np.ndarray) -> FoundPlane:
        kind = self._kind(known.plane)
        if known.before is not None and kind == UNKNOWN:
            kind = known.before.kind
        mine = cloud.part(known.own)
        upright = self.up if kind == VERTICAL else None
        pose, size, outline = box(mine, known.plane, known.before, upright)
        support, deviation = ids[known.own], known.plane.offset_sd
        return FoundPlane(known.id, pose, size, kind, support, deviation, outline)

    def _tell(self, events: list[PlaneEvent]) -> None:
        """Add what is new, or has changed so much that it shows."""
        told, now = self._told, {each.id: each for each in self.planes}
        for number, each in now.items():
            if number not in told:
                events.append(PlaneEvent(ADDED, number))
            elif changed(told[number], each):
                events.append(PlaneEvent(UPDATED, number))
            else:
                now[number] = told[number]
        self._told = now


# --- parts of it -----------------------------------------------------------------------------


def _grown(
    cloud: Cloud, start: Flat, support: np.ndarray | None, times: int = 3
) -> tuple[Flat, np.ndarray] | None:
    """The plane near ``start``, fitted to ``support`` (n,) (None: to what is near), and the points
    (n,) that are on it and hang together with most of those."""
    plane, own = start, support
    if own is not None:
        fitted = flat.fit(cloud.part(own), plane) if own.sum() >= 3 else None
        if fitted is None:
            return None
        plane = fitted
    for _ in range(times):
        own = _hanging(cloud, plane, cloud.near(plane), own)
        fitted = flat.fit(cloud.part(own), plane) if own.sum() >= KEPT_POINTS else None
        if fitted is None:
            return None
        plane = fitted
    return plane, _hanging(cloud, plane, cloud.near(plane), own)


def _worth(cloud: Cloud, plane: Flat, own: np.ndarray) -> float:
    """By what planes compete: how many points they have, and how compact those lie."""
    mine = cloud.part(own)
    return float(mine.weight.sum()) * flat.patch(mine, plane).compact(1)


def _hanging(cloud: Cloud, plane: Flat, near: np.ndarray, support: np.ndarray | None) -> np.ndarray:
    """Of the points near a plane those that hang together, (n,): the piece that has most of its
    support, or most points."""
    chosen = np.flatnonzero(near)
    if not len(chosen):
        return near
    mine = cloud.part(chosen)
    labels = flat.patch(mine, plane).labels
    votes = mine.weight if support is None else mine.weight * (support[chosen] + 1e-3)
    piece = 1 + int(np.argmax(np.bincount(labels, votes, 2)[1:]))
    own = np.zeros(len(cloud), bool)
    own[chosen[labels == piece]] = True
    return own


def _denser(cloud: Cloud, plane: Flat, own: np.ndarray, share: float = 1.0) -> bool:
    """True if there are many more points on the plane than right before and behind it: a cloud is
    no plane. ``share``: of the evidence is enough."""
    away, sd, front = cloud.off(plane)
    thick = np.minimum(flat.NEAR * sd, flat.MOST_OFF * cloud.depth)
    chosen = np.flatnonzero(front & (np.abs(away) < 3 * thick))
    where = flat.places(cloud.points[chosen], plane)
    around = flat.within(where, flat.places(cloud.points[own], plane))
    where = (away / thick)[chosen][around]
    before, behind = int((where > 1).sum()), int((where < -1).sum())
    inside = len(where) - before - behind
    beside = max(before, behind)  # each has as much room
    if inside < share * max(DENSER * (before + behind) / 2, DENSER_THAN_EACH * beside):
        return False
    if inside - beside < share * SURE * math.sqrt(inside + beside):
        return False
    return bool((np.abs(where) < 0.5).sum() > share * PEAKED * inside)


def _same(cloud: Cloud, one: _Known, other: _Known) -> bool:
    """True if two planes are one, as far as can be told: of one direction, in one place."""
    cosine = float(one.plane.normal @ other.plane.normal)
    if cosine < math.cos(MERGED_ANGLE):
        return False
    for plane, own in ((one.plane, other.own), (other.plane, one.own)):
        away, sd, _ = cloud.part(own).off(plane)
        if abs(float(np.median(away / sd))) > 1.5:
            return False
    return True


def _united(cloud: Cloud, older: _Known, both: np.ndarray) -> tuple[Flat, np.ndarray] | None:
    """Both planes as one, if they touch: most points of each stay on it."""
    labels = flat.patch(cloud.part(both), older.plane).labels
    if np.bincount(labels).max() < 0.9 * len(labels):
        return None
    chosen = np.flatnonzero(both)
    one = _grown(cloud.part(chosen), older.plane, np.ones(len(chosen), bool))
    if one is None or one[1].sum() < 0.8 * len(chosen):
        return None
    own = np.zeros(len(cloud), bool)
    own[chosen[one[1]]] = True
    return one[0], own


def _too_near(mine: Cloud, plane: Flat, known: _Known, cloud: Cloud) -> bool:
    """True if a plane is parallel to one that is known and not told apart from it: what noise has
    left of that."""
    if float(plane.normal @ known.plane.normal) < math.cos(2 * MERGED_ANGLE):
        return False
    away, sd, _ = mine.off(known.plane)
    if abs(float(np.median(away / sd))) > TOLD_APART:
        return False
    covered = flat.patch(cloud.part(known.own), known.plane)
    return float((covered.at(flat.places(mine.points, known.plane)) > 0).mean()) > 0.3
