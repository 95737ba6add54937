"""Nodes that hang on one another, and animations that move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

PATHS = ("translation", "rotation", "scale", "weights")


@dataclass(frozen=True)
class Track:
    """What moves one property of some nodes, at times (k,) in seconds: values (k, nodes, width),
    or (3 k, nodes, width) for CUBICSPLINE: tangent in, value, tangent out of each."""

    path: str
    nodes: np.ndarray
    times: np.ndarray
    values: np.ndarray
    interpolation: str

    def at(self, time_s: float) -> np.ndarray:
        """The values then, (nodes, width); before the first and after the last time, those."""
        times = self.times
        time_s = float(np.clip(time_s, times[0], times[-1]))
        after = int(
            np.clip(np.searchsorted(times, time_s, side="right"), 1, max(len(times) - 1, 1))
        )
        before = after - 1
        spline = self.interpolation == "CUBICSPLINE"
        if len(times) == 1:
            return np.asarray(self.values[1 if spline else 0])
        span = float(times[after] - times[before])
        share = (time_s - float(times[before])) / span if span > 0 else 1.0
        if self.interpolation == "STEP":
            return np.asarray(self.values[after if share >= 1 else before])
        if spline:
            found = self._spline(before, after, share, span)
            return _unit(found) if self.path == "rotation" else found
        a, b = self.values[before], self.values[after]
        return _slerp(a, b, share) if self.path == "rotation" else a + (b - a) * share

    def _spline(self, before: int, after: int, s: float, span: float) -> np.ndarray:
        """Cubic Hermite, as glTF's appendix C has it."""
        start, out = self.values[3 * before + 1], self.values[3 * before + 2]
        into, end = self.values[3 * after], self.values[3 * after + 1]
        s2, s3 = s * s, s * s * s
        return np.asarray(
            (2 * s3 - 3 * s2 + 1) * start
            + span * (s3 - 2 * s2 + s) * out
            + (3 * s2 - 2 * s3) * end
            + span * (s3 - s2) * into
        )


@dataclass(frozen=True)
class Animation:
    """Tracks that belong together, and how long they take."""

    name: str
    tracks: tuple[Track, ...]
    seconds: float


@dataclass(frozen=True)
class Stance:
    """A skeleton at a moment: each node's matrix to the model's space, (n, 4, 4), and the weights
    of those nodes whose shapes are moved."""

    matrices: np.ndarray
    weights: dict[int, np.ndarray]


@dataclass(frozen=True)
class Skeleton:
    """Nodes in an order in which parents come first. A node with a fixed matrix has it in
    ``fixed``, the others a translation, rotation (x, y, z, w) and scale."""

    parents: np.ndarray  # (n,) int, -1: none
    translations: np.ndarray  # (n, 3)
    rotations: np.ndarray  # (n, 4)
    scales: np.ndarray  # (n, 3)
    fixed: dict[int, np.ndarray]
    weights: dict[int, np.ndarray]

    def stance(self, animation: Animation | None = None, time_s: float = 0.0) -> Stance:
        """Where the nodes are; without an animation at rest."""
        return self.rest if animation is None else self._moved(animation, time_s)

    @cached_property
    def rest(self) -> Stance:
        """Where they are before anything moves them."""
        return self._moved(None, 0.0)

    def _moved(self, animation: Animation | None, time_s: float) -> Stance:
        moved = {
            "translation": self.translations,
            "rotation": self.rotations,
            "scale": self.scales,
        }
        weights = dict(self.weights)
        for track in animation.tracks if animation else ():
            values = track.at(time_s)
            if track.path == "weights":
                weights.update(zip(track.nodes.tolist(), values, strict=True))
                continue
            if moved[track.path] is getattr(self, track.path + "s"):
                moved[track.path] = moved[track.path].copy()
            moved[track.path][track.nodes] = values
        own = _matrices(moved["translation"], moved["rotation"], moved["scale"])
        for node, matrix in self.fixed.items():
            own[node] = matrix
        return Stance(self._placed(own), weights)

    def _placed(self, own: np.ndarray) -> np.ndarray:
        """Each node's matrix after its parents'; a generation at once."""
        placed = own
        for nodes in self._generations()[1:]:
            placed[nodes] = placed[self.parents[nodes]] @ own[nodes]
        return placed

    def _generations(self) -> list[np.ndarray]:
        depth = np.zeros(len(self.parents), np.int64)
        for node, parent in enumerate(self.parents):
            depth[node] = depth[parent] + 1 if parent >= 0 else 0
        return [np.flatnonzero(depth == each) for each in range(int(depth.max(initial=0)) + 1)]


def _matrices(moves: np.ndarray, turns: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """(n, 4, 4) from translations, quaternions and scales."""
    x, y, z, w = turns.T
    found = np.zeros((len(moves), 4, 4))
    found[:, 0, 0], found[:, 0, 1] = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w)
    found[:, 0, 2], found[:, 1, 0] = 2 * (x * z + y * w), 2 * (x * y + z * w)
    found[:, 1, 1], found[:, 1, 2] = 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
    found[:, 2, 0], found[:, 2, 1] = 2 * (x * z - y * w), 2 * (y * z + x * w)
    found[:, 2, 2] = 1 - 2 * (x * x + y * y)
    found[:, :3, :3] *= scales[:, None, :]
    found[:, :3, 3] = moves
    found[:, 3, 3] = 1
    return found


def _slerp(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    """Between quaternions (n, 4), the shorter way."""
    cosine = np.sum(a * b, axis=1, keepdims=True)
    b = np.where(cosine < 0, -b, b)
    angle = np.arccos(np.clip(np.abs(cosine), 0, 1))
    sine = np.sin(angle)
    close = sine < 1e-4
    safe = np.where(close, 1, sine)
    left = np.where(close, 1 - share, np.sin((1 - share) * angle) / safe)
    right = np.where(close, share, np.sin(share * angle) / safe)
    return _unit(left * a + right * b)


def _unit(turns: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(turns, axis=1, keepdims=True)
    return np.asarray(turns / np.where(length > 0, length, 1))


def gathered(tracks: Sequence[Track]) -> tuple[Track, ...]:
    """These tracks, those with equal times in one: a body's joints are moved at once."""
    groups: dict[tuple[object, ...], list[Track]] = {}
    for track in tracks:
        key = (track.path, track.interpolation, track.times.tobytes(), track.values.shape[2])
        groups.setdefault(key, []).append(track)
    return tuple(
        Track(
            each[0].path,
            np.concatenate([track.nodes for track in each]),
            each[0].times,
            np.concatenate([track.values for track in each], axis=1),
            each[0].interpolation,
        )
        for each in groups.values()
    )
