"""Furniture made of rounded boxes, in metres: the geometry of scripts/furniture.py.

Model space: x right, y up, z to the front; the base centre is the origin and the floor is
y = 0. Each part is a box with a rounding radius, whose exact distance is known, so the distance
to the whole piece is a minimum over the parts. From it come the shade in the folds (ambient
occlusion, stored per vertex: free when drawn) and the hidden triangles that are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Mesh:
    """Triangles with smooth normals."""

    positions: np.ndarray  # (n, 3) float32, metres
    normals: np.ndarray  # (n, 3) float32, unit
    uvs: np.ndarray  # (n, 2) float32, metres on the cloth
    openness: np.ndarray  # (n,) float32, 1 in the open to 0 in a fold
    triangles: np.ndarray  # (m, 3) uint32, counter-clockwise from outside


@dataclass(frozen=True)
class Part:
    """A rounded box: centre, size, rounding radius; ``puff`` swells the middle of its faces."""

    centre: tuple[float, float, float]
    size: tuple[float, float, float]
    radius: float
    puff: float = 0.0
    wood: bool = False
    tilt: float = 0.0  # degrees its top leans back
    cells: tuple[int, int, int] = (2, 2, 2)  # across the flat of a side, along x, y and z
    bends: int = 1  # cells from a flat to the middle of an edge; 0: sharp edges

    def rotation(self) -> np.ndarray:
        angle = np.radians(self.tilt)
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[1, 0, 0], [0, c, s], [0, -s, c]])

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance in metres of points (n, 3) to the box, negative inside."""
        local = (points - np.array(self.centre)) @ self.rotation()
        beyond = np.abs(local) - (np.array(self.size) / 2 - self.radius)
        outside = np.linalg.norm(np.maximum(beyond, 0), axis=1)
        return outside + np.minimum(beyond.max(axis=1), 0) - self.radius


def build(parts: list[Part]) -> Mesh:
    """The visible triangles of all parts as one mesh."""
    pieces = [_visible(index, parts) for index in range(len(parts))]
    sizes = [len(piece[0]) for piece in pieces]
    starts = np.cumsum([0, *sizes[:-1]])
    positions, normals, uvs = (
        np.concatenate([piece[column] for piece in pieces]) for column in range(3)
    )
    triangles = np.concatenate(
        [piece[3] + start for piece, start in zip(pieces, starts, strict=True)]
    )
    return Mesh(
        positions.astype(np.float32),
        normals.astype(np.float32),
        uvs.astype(np.float32),
        _openness(positions, normals, parts).astype(np.float32),
        triangles.astype(np.uint32),
    )


def _visible(index: int, parts: list[Part]) -> tuple[np.ndarray, ...]:
    """One part's positions, normals, uvs and triangles, without those inside another part.

    Parts are convex: a triangle is inside one if its three corners are.
    """
    positions, normals, uvs, triangles = _rounded_box(parts[index])
    for other in parts[:index] + parts[index + 1 :]:
        inside = other.distance(positions) < -0.004
        triangles = triangles[~inside[triangles].all(axis=1)]
    on_floor = positions[:, 1] < 0.004
    triangles = triangles[~on_floor[triangles].all(axis=1)]
    used, triangles = np.unique(triangles, return_inverse=True)
    return positions[used], normals[used], uvs[used], triangles.reshape(-1, 3)


def _rounded_box(part: Part) -> tuple[np.ndarray, ...]:
    """A grid on each face of the box, bent around its edges."""
    half = np.array(part.size) / 2
    faces = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            faces.append(_face(part, half, axis, sign))
    counts = np.cumsum([0] + [len(face[0]) for face in faces[:-1]])
    positions, normals, uvs = (np.concatenate([face[i] for face in faces]) for i in range(3))
    triangles = np.concatenate([face[3] + start for face, start in zip(faces, counts, strict=True)])
    turn = part.rotation().T
    return positions @ turn + np.array(part.centre), normals @ turn, uvs, triangles


def _face(part: Part, half: np.ndarray, axis: int, sign: float) -> tuple[np.ndarray, ...]:
    # (axis, across, up) is a right-handed triple, so u x v points along +axis.
    across, up = (axis + 1) % 3, (axis + 2) % 3
    inner = half - part.radius
    u = _ticks(inner[across], part.radius, part.cells[across], part.bends)
    v = _ticks(inner[up], part.radius, part.cells[up], part.bends)
    grid_u, grid_v = np.meshgrid(u, v, indexing="ij")
    points = np.zeros((grid_u.size, 3))
    points[:, axis] = sign * half[axis]
    points[:, across], points[:, up] = grid_u.ravel(), grid_v.ravel()
    core = np.clip(points, -inner, inner)
    normals = _unit(points - core) if part.bends else np.eye(3)[np.full(len(points), axis)] * sign
    rounded = core + normals * part.radius
    swell, slope_u, slope_v = _puff(part.puff, core[:, across], core[:, up], inner[[across, up]])
    rounded[:, axis] += sign * swell
    normals[:, across] -= slope_u
    normals[:, up] -= slope_v
    normals = _unit(normals)
    return rounded, normals, _cloth(rounded, axis, sign), _grid(len(u), len(v), sign > 0)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _ticks(inner: float, radius: float, cells: int, bends: int) -> np.ndarray:
    """Grid lines across one side of a face: evenly over the flat, then around each edge."""
    edge = inner + radius * np.tan(np.radians(45.0) * np.arange(1, bends + 1) / bends)
    return np.concatenate([-edge[::-1], np.linspace(-inner, inner, cells + 1), edge])


def _puff(puff: float, u: np.ndarray, v: np.ndarray, inner: np.ndarray) -> tuple[np.ndarray, ...]:
    """A cushion's swelling puff * cos^2 * cos^2, none at the edges, and its slopes."""
    a, b = np.pi / 2 / inner
    rise_u, rise_v = np.cos(u * a) ** 2, np.cos(v * b) ** 2
    slope_u = -puff * a * np.sin(2 * u * a) * rise_v
    slope_v = -puff * b * np.sin(2 * v * b) * rise_u
    return puff * rise_u * rise_v, slope_u, slope_v


def _cloth(points: np.ndarray, axis: int, sign: float) -> np.ndarray:
    """Cloth coordinates in metres, upright on every side, from the face's centre."""
    x, y, z = points.T
    if axis == 0:
        return np.stack([-sign * z, y], axis=1)
    if axis == 1:
        return np.stack([x, -z], axis=1)
    return np.stack([sign * x, y], axis=1)


def _grid(rows: int, columns: int, outward: bool) -> np.ndarray:
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = (
        corner.ravel()
        for corner in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:])
    )
    first, second = (a, b, c), (a, c, d)
    if not outward:
        first, second = (a, c, b), (a, d, c)
    return np.concatenate([np.stack(first, axis=1), np.stack(second, axis=1)])


def _openness(positions: np.ndarray, normals: np.ndarray, parts: list[Part]) -> np.ndarray:
    """How open the view along the normal is: steps outwards compare the distance gone with the
    distance to the nearest part or the floor."""
    blocked = np.zeros(len(positions))
    for step, weight in ((0.03, 5.0), (0.07, 2.5), (0.14, 1.4), (0.28, 0.7)):
        probe = positions + normals * step
        nearest = np.min([part.distance(probe) for part in parts], axis=0)
        nearest = np.minimum(nearest, probe[:, 1])
        blocked += weight * np.maximum(step - np.maximum(nearest, 0), 0)
    return np.clip(1 - 1.35 * blocked, 0.12, 1)
