"""What a trajectory is worth, against the true one.

A single camera knows neither where the world's origin is nor how large the world is, so its poses
are first aligned by the similarity that leaves the least squares of position errors (Umeyama,
"Least-squares estimation of transformation parameters between two point patterns", PAMI 1991).
What is left is the absolute trajectory error (Sturm et al., IROS 2012), and by how much cameras are
turned.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from heimdall.capture.pose import Pose

FALSE_SHARE, FALSE_DEGREES = 0.05, 5.0  # of the scene's depth; beyond either, a pose is false
SAME_DEGREES, SAME_SHARE = 10.0, 0.1  # a plane farther off is another plane
LEAST = 10  # poses, or there is nothing to align


@dataclass(frozen=True, eq=False)
class Similarity:
    """From a tracker's world to the true one: ``scale * rotation @ place + translation``."""

    scale: float
    rotation: np.ndarray
    translation: np.ndarray

    def places(self, own: np.ndarray) -> np.ndarray:
        """Places (..., 3) in the true world."""
        return np.asarray(self.scale * own @ self.rotation.T + self.translation)

    def pose(self, own: Pose) -> Pose:
        """The same camera, seen from the true world."""
        rotation = own.rotation @ self.rotation.T
        return Pose(rotation, -rotation @ self.places(own.position))


def aligned(own: np.ndarray, true: np.ndarray) -> Similarity:
    """The similarity from ``own`` places (n, 3) to ``true`` ones (n, 3), by Umeyama's equations 34
    to 43. Raises ValueError if the own ones are all the same, for then they have no scale.

    Of places on one line the rotation about it is arbitrary.
    """
    a, b = own - own.mean(axis=0), true - true.mean(axis=0)
    spread = float((a**2).sum(axis=1).mean())
    if not spread > 1e-20 * float((own**2).sum(axis=1).mean()):  # rounding errors alone
        raise ValueError("places that are all the same have no scale")
    u, sizes, v = np.linalg.svd(b.T @ a / len(a))
    flip = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ v))])
    rotation = (u * flip) @ v
    scale = float(sizes @ flip) / spread
    return Similarity(scale, rotation, true.mean(axis=0) - scale * rotation @ own.mean(axis=0))


@dataclass(frozen=True, eq=False)
class Quality:
    """``first``: the first frame with a pose; ``tracked``: the share of frames with one from there
    on, gaps left out; ``path``: how far the camera went, in the truth's unit; ``ate``, ``worst``:
    the root mean square and the largest error of places, as shares of the path; ``turn`` and
    ``worst_turn``: the median and the largest rotation error, degrees; ``drift``: the scale in the
    first third over that in the last, or the other way round, so that 1 is none; ``false``: the
    share of poses that are false; ``back``: frames from each gap's end until there was a pose, None
    where there was none any more; ``errors``: of each frame with a pose and truth, its place's
    distance in the truth's unit and its turn in degrees."""

    first: int
    tracked: float
    path: float
    ate: float
    worst: float
    turn: float
    worst_turn: float
    drift: float
    false: float
    back: tuple[int | None, ...]
    alignment: Similarity
    errors: dict[int, tuple[float, float]]


def judged(
    found: Mapping[int, Pose],
    truth: Mapping[int, Pose],
    depths: Mapping[int, float] | None = None,
    *,
    frames: int | None = None,
    gaps: Sequence[range] = (),
    own_depth: float = math.inf,
) -> Quality | None:
    """What poses ``found`` are worth, by frame number; None if too few have a truth, or no camera
    has moved.

    ``truth`` may know some of the ``frames`` only (by default there are as many as it knows).
    ``depths``: how far away the scene is in a frame, in the truth's unit; where that is not known,
    ``own_depth`` is taken, in the tracker's. ``gaps``: frames in which nothing is to be seen.
    """
    numbers = sorted(set(found) & set(truth))
    if len(numbers) < LEAST:
        return None
    places = np.array([truth[n].position for n in sorted(truth)])
    path = float(np.linalg.norm(np.diff(places, axis=0), axis=1).sum())
    if not path > 1e-9 * float(np.abs(places).max()):
        return None
    own = np.array([found[n].position for n in numbers])
    true = np.array([truth[n].position for n in numbers])
    try:
        alignment = aligned(own, true)
        drift = _drift(own, true)
    except ValueError:
        return None
    off = np.linalg.norm(alignment.places(own) - true, axis=1)
    turns = np.array(
        [degrees_between(alignment.pose(found[n]).rotation, truth[n].rotation) for n in numbers]
    )
    depth = np.array([(depths or {}).get(n, own_depth * alignment.scale) for n in numbers])
    wrong = (off > FALSE_SHARE * depth) | (turns > FALSE_DEGREES)
    last = max(truth) + 1 if frames is None else frames
    return Quality(
        first=min(found),
        tracked=share_tracked(found, last, gaps),
        path=path,
        ate=float(np.sqrt((off**2).mean())) / path,
        worst=float(off.max()) / path,
        turn=float(np.median(turns)),
        worst_turn=float(turns.max()),
        drift=drift,
        false=float(wrong.mean()),
        back=tuple(back_after(found, gap.stop) for gap in gaps),
        alignment=alignment,
        errors={n: (float(a), float(b)) for n, a, b in zip(numbers, off, turns, strict=True)},
    )


def _drift(own: np.ndarray, true: np.ndarray) -> float:
    third = max(len(own) // 3, 3)
    begin, end = aligned(own[:third], true[:third]), aligned(own[-third:], true[-third:])
    if not min(begin.scale, end.scale) > 0:
        return math.inf
    return max(begin.scale / end.scale, end.scale / begin.scale)


def share_tracked(found: Collection[int], frames: int, gaps: Sequence[range] = ()) -> float:
    """The share of frames that have a pose, from the first such one on, gaps left out; 0 if none
    has."""
    if not found:
        return 0.0
    asked = [n for n in range(min(found), frames) if not any(n in gap for gap in gaps)]
    return sum(n in found for n in asked) / max(len(asked), 1)


def back_after(found: Collection[int], end: int) -> int | None:
    """How many frames from frame ``end`` on have no pose until one has; None: none has."""
    return min((n - end for n in found if n >= end), default=None)


def degrees_between(one: np.ndarray, other: np.ndarray) -> float:
    """The angle between two rotations (3, 3); exact for small ones, too."""
    apart = one @ other.T
    sine = float(np.linalg.norm(apart - apart.T)) / math.sqrt(8)
    return math.degrees(math.atan2(sine, (float(np.trace(apart)) - 1) / 2))


class Flat(NamedTuple):
    """A plane: a point in its middle (3,), its unit normal (3,), and how far it reaches from there
    at most."""

    name: str
    point: np.ndarray
    normal: np.ndarray
    reach: float = math.inf


class PlaneOff(NamedTuple):
    """By how much a found plane is off: ``degrees`` between the normals, and its ``offset`` as a
    share of its distance from the cameras."""

    degrees: float
    offset: float


def planes_judged(
    found: Sequence[Flat], true: Sequence[Flat], alignment: Similarity, eyes: np.ndarray
) -> tuple[dict[str, PlaneOff], list[str]]:
    """Of each true plane that was found, the best that was found of it; and the names of those that
    were found where none is. ``eyes`` (n, 3): the cameras' true places."""
    best: dict[str, PlaneOff] = {}
    wrong = []
    for each in found:
        point = alignment.places(each.point)
        normal = alignment.rotation @ each.normal
        away = float(np.median(np.linalg.norm(eyes - point, axis=1)))
        known = False
        for plane in true:
            cosine = min(abs(float(normal @ plane.normal)), 1.0)
            off = PlaneOff(
                math.degrees(math.acos(cosine)),
                abs(float((point - plane.point) @ plane.normal)) / away,
            )
            aside = float(np.linalg.norm(point - plane.point)) > plane.reach + SAME_SHARE * away
            if off.degrees > SAME_DEGREES or off.offset > SAME_SHARE or aside:
                continue
            known = True
            if plane.name not in best or _badness(off) < _badness(best[plane.name]):
                best[plane.name] = off
        if not known:
            wrong.append(each.name)
    return best, wrong


def _badness(off: PlaneOff) -> float:
    return math.radians(off.degrees) + off.offset
