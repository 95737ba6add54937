"""Similarities of space, Sim(3): a turn, a move and a scale, many at once; and graphs of them.

One camera does not see how large things are, so that its map drifts in scale, too. Around a loop
that is put right by a graph of similarities (Strasdat, Montiel and Davison, "Scale drift-aware
large scale monocular SLAM", 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.capture.pose import Pose
from heimdall.tracking.slam.adjust import crossed, exponential

SETTLED = 1e-4  # a step that changes no more than that is the last
# of an integral from 0 to 1: exact to 12 digits for turns up to half a one
_AT, _SHARE = (each / 2 for each in np.polynomial.legendre.leggauss(10))
_AT = _AT + 0.5


@dataclass(frozen=True, eq=False)
class Similarities:
    """``scale`` (n,), ``rotation`` (n, 3, 3), ``translation`` (n, 3): a point goes to
    ``scale * rotation @ point + translation``. Their logarithms (n, 7) are a move (3), a turn (3)
    and the scale's logarithm."""

    scale: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray

    @classmethod
    def of(cls, poses: Sequence[Pose], scale: float = 1.0) -> Similarities:
        """Poses, and ``scale`` times what they lead to."""
        turned = np.stack([each.rotation for each in poses])
        moved = np.stack([each.translation for each in poses])
        return cls(np.full(len(poses), scale), turned, scale * moved)

    @classmethod
    def exp(cls, vectors: np.ndarray) -> Similarities:
        """Of logarithms (n, 7)."""
        moves, turns, logs = vectors[:, :3], vectors[:, 3:6], vectors[:, 6]
        moved = np.einsum("nij,nj->ni", _spread(turns, logs), moves)
        return cls(np.exp(logs), exponential(turns), moved)

    def log(self) -> np.ndarray:
        """Logarithms (n, 7), of turns below half a one."""
        turns, logs = _axes(self.rotation), np.log(self.scale)
        moves = np.linalg.solve(_spread(turns, logs), self.translation[:, :, None])[:, :, 0]
        return np.concatenate([moves, turns, logs[:, None]], axis=1)

    def __getitem__(self, at: np.ndarray | slice) -> Similarities:
        return Similarities(self.scale[at], self.rotation[at], self.translation[at])

    def after(self, first: Similarities) -> Similarities:
        """``first``, then this."""
        return Similarities(
            self.scale * first.scale, self.rotation @ first.rotation, self.to(first.translation)
        )

    def to(self, points: np.ndarray) -> np.ndarray:
        """Where points (n, 3) go, one of each."""
        turned = np.einsum("nij,nj->ni", self.rotation, points)
        return np.asarray(self.scale[:, None] * turned + self.translation)

    @property
    def inverse(self) -> Similarities:
        """The way back."""
        back = self.rotation.transpose(0, 2, 1)
        moved = -np.einsum("nij,nj->ni", back, self.translation) / self.scale[:, None]
        return Similarities(1 / self.scale, back, moved)

    @property
    def adjoint(self) -> np.ndarray:
        """(n, 7, 7): what a small one before this is after it."""
        found = np.zeros((len(self.scale), 7, 7))
        found[:, :3, :3] = self.scale[:, None, None] * self.rotation
        found[:, :3, 3:6] = crossed(self.translation) @ self.rotation
        found[:, :3, 6] = -self.translation
        found[:, 3:6, 3:6] = self.rotation
        found[:, 6, 6] = 1
        return found

    def pose(self, at: int) -> Pose:
        """The camera of that number, in the unit of the world that it looks at."""
        return Pose(self.rotation[at], self.translation[at] / self.scale[at])


def relaxed(
    nodes: Similarities,
    one: np.ndarray,
    other: np.ndarray,
    measured: Similarities,
    weights: np.ndarray,
    fixed: np.ndarray,
    steps: int = 3,
) -> Similarities:
    """The ``nodes``, moved so that ``nodes[one] after nodes[other]`` backwards are nearly as
    ``measured`` (m): the least sum of squared logarithms, each entry times ``weights`` (m, 7).
    Nodes that are ``fixed`` (n,) stay. Raises numpy.linalg.LinAlgError for a graph that hangs on
    none of those."""
    count, free = len(nodes.scale), np.flatnonzero(~np.asarray(fixed, bool))
    adjoint = measured.adjoint
    for _ in range(steps):
        off = measured.after(nodes[other]).after(nodes[one].inverse).log()
        bent = _bracket(off) / 2  # the first two terms of the derivative of a logarithm
        by_one = -(np.eye(7) + bent)
        by_other = (np.eye(7) - bent) @ adjoint
        matrix, pull = np.zeros((count, count, 7, 7)), np.zeros((count, 7))
        sides = ((one, by_one), (other, by_other))
        for row, left in sides:
            weighed = (left * weights[:, :, None]).transpose(0, 2, 1)
            np.add.at(pull, row, -np.einsum("nij,nj->ni", weighed, off))
            for column, right in sides:
                np.add.at(matrix, (row, column), weighed @ right)
        dense = matrix[np.ix_(free, free)].transpose(0, 2, 1, 3).reshape(7 * len(free), -1)
        change = np.zeros((count, 7))
        change[free] = np.linalg.solve(dense, pull[free].ravel()).reshape(-1, 7)
        nodes = Similarities.exp(change).after(nodes)
        if np.abs(change).max() < SETTLED:
            break
    return nodes


def _bracket(vectors: np.ndarray) -> np.ndarray:
    """(n, 7, 7): the adjoint's derivative."""
    found = np.zeros((len(vectors), 7, 7))
    turn = crossed(vectors[:, 3:6])
    found[:, :3, :3] = turn + vectors[:, 6, None, None] * np.eye(3)
    found[:, :3, 3:6] = crossed(vectors[:, :3])
    found[:, :3, 6] = -vectors[:, :3]
    found[:, 3:6, 3:6] = turn
    return found


def _axes(rotations: np.ndarray) -> np.ndarray:
    """The way back, below half a turn."""
    cosine = (np.trace(rotations, axis1=1, axis2=2) - 1) / 2
    twice = rotations - rotations.transpose(0, 2, 1)
    axis = np.stack([twice[:, 2, 1], twice[:, 0, 2], twice[:, 1, 0]], axis=1) / 2
    sine = np.linalg.norm(axis, axis=1)
    angle = np.arctan2(sine, cosine)
    return np.asarray(axis / np.sinc(angle / np.pi)[:, None])


def _spread(turns: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """(n, 3, 3): by what a move is turned and scaled while both go on."""
    parts = [
        share * np.exp(at * logs)[:, None, None] * exponential(at * turns)
        for at, share in zip(_AT, _SHARE, strict=True)
    ]
    return np.asarray(sum(parts))
