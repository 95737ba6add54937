"""Rooms as a map has them: points on known planes, the farther the vaguer, and some that are wrong.

The room's axes: x right, y up, z towards the camera; metres. ``turned`` leads to a map's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from heimdall.capture import Pose

EYE = np.array([0.0, 1.5, 2.2])
NOISE = 0.0025  # relative standard deviation of depth, for each metre of it
WALL_Z = -1.5


@dataclass(eq=False)
class Piece:
    """``count`` points of a parallelogram from ``corner`` along ``u`` and ``v``."""

    name: str
    corner: tuple[float, float, float]
    u: tuple[float, float, float]
    v: tuple[float, float, float]
    count: int

    @property
    def normal(self) -> np.ndarray:
        """To the camera's side."""
        normal = np.cross(self.u, self.v)
        normal = normal / np.linalg.norm(normal)
        towards = EYE - np.asarray(self.corner)
        return np.asarray(normal * np.sign(normal @ towards))


FLOOR = Piece("floor", (-1.8, 0, -1.5), (3.6, 0, 0), (0, 0, 2.6), 500)
TABLE = Piece("table", (-0.7, 0.75, -0.6), (1.4, 0, 0), (0, 0, 0.9), 300)
BACK = Piece("back", (-1.8, 0, WALL_Z), (3.6, 0, 0), (0, 2.4, 0), 500)
LEFT = Piece("left", (-1.8, 0, -1.5), (0, 0, 2.6), (0, 2.4, 0), 300)
ROOM = (FLOOR, TABLE, BACK, LEFT)


CUBES = (  # their fronts, 30 to 60 cm before the wall at the back
    Piece("cube 1", (-1.4, 1.2, -1.1), (0.3, 0, 0), (0, 0.3, 0), 60),
    Piece("cube 2", (-0.3, 1.3, -1.2), (0.4, 0, 0), (0, 0.4, 0), 80),
    Piece("cube 3", (0.8, 1.6, -0.9), (0.4, 0, 0), (0, 0.4, 0), 80),
)


@dataclass(eq=False)
class Seen:
    """What a map has of a room; ``of`` (n,): the number of the piece, -1: of none."""

    points: np.ndarray
    ids: np.ndarray
    spread: np.ndarray
    seen_from: np.ndarray
    of: np.ndarray
    pieces: list[Piece] = field(default_factory=list)

    def given(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As ``PlaneFinder.look`` takes it."""
        return self.points, self.ids, self.spread, self.seen_from

    def first(self, share: float) -> Seen:
        """As it was earlier: only some of the points."""
        return self.part(np.random.default_rng(1).random(len(self.ids)) < share)

    def part(self, chosen: np.ndarray) -> Seen:
        """Only some of the points (n,)."""
        points, ids, spread, eyes, of = (each[chosen] for each in (*self.given(), self.of))
        return Seen(points, ids, spread, eyes, of, self.pieces)

    def moved(self, pose: Pose, scale: float) -> Seen:
        """In axes that ``pose`` leads to, in another unit."""
        points, eyes = (scale * pose.to_camera(each) for each in (self.points, self.seen_from))
        return Seen(points, self.ids, self.spread, eyes, self.of, self.pieces)

    def shaken(self, seed: int, relative: float = 0.002) -> Seen:
        """After an adjustment: each point has moved by a share of its distance."""
        draw = np.random.default_rng(seed)
        depth = np.linalg.norm(self.points - self.seen_from, axis=1, keepdims=True)
        moved = self.points + relative * depth * draw.normal(size=self.points.shape)
        return Seen(moved, self.ids, self.spread, self.seen_from, self.of, self.pieces)


def seen(
    pieces: list[Piece] | tuple[Piece, ...],
    seed: int,
    *,
    wrong: float = 0.1,
    clutter: int = 150,
    noise: float = NOISE,
) -> Seen:
    """A map of the pieces: ``wrong``, a share of points, anywhere before or behind where they are;
    ``clutter`` points lie between."""
    draw = np.random.default_rng(seed)
    true, of = [], []
    for number, each in enumerate(pieces):
        share = draw.random((each.count, 2))
        true.append(np.asarray(each.corner) + share @ np.array([each.u, each.v], float))
        of += [number] * each.count
    true.append(draw.uniform((-1.7, 0.05, -1.4), (1.7, 2.3, 1.0), (clutter, 3)))
    of += [-1] * clutter
    points, piece = np.concatenate(true), np.array(of)
    eyes = EYE + draw.normal(0, (0.4, 0.15, 0.2), points.shape)
    rays = points - eyes
    depth = np.linalg.norm(rays, axis=1, keepdims=True)
    spread = noise * depth[:, 0]
    far = 1 + spread * draw.normal(size=len(points))
    astray = draw.random(len(points)) < wrong
    far[astray] = draw.uniform(0.5, 1.4, int(astray.sum()))
    piece[astray] = -1
    found = eyes + rays * far[:, None] + 0.001 * depth * draw.normal(size=points.shape)
    ids = draw.permutation(10 * len(points))[: len(points)]
    return Seen(found, ids, spread, eyes, piece, list(pieces))
