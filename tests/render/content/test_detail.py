"""Coarser levels: fewer triangles, of vertices that were there, and of the same shape."""

import itertools

import numpy as np

from heimdall.render.content.detail import levels
from heimdall.render.content.model import LINES, TRIANGLES, DrawCall


def spiked(rings=48, **more):
    """A ball of radius 1 with a thin spike to 1.5 at one place of its equator."""
    v, u = (each.ravel() for each in np.mgrid[0 : rings + 1, 0 : 2 * rings + 1])
    down, turn = v / rings * np.pi, u / rings * np.pi
    points = np.stack([np.sin(down) * np.sin(turn), np.cos(down), np.sin(down) * np.cos(turn)], 1)
    points[(v == rings // 2) & (u == rings // 2)] *= 1.5
    row = 2 * rings + 1
    corner = (v * row + u)[(v < rings) & (u < 2 * rings)]
    triangles = [
        np.stack([corner, corner + row, corner + row + 1], 1),
        np.stack([corner, corner + row + 1, corner + 1], 1),
    ]
    given = {
        "mode": TRIANGLES,
        "material": 0,
        "positions": points.astype(np.float32),
        "normals": points.astype(np.float32),
        "uvs": np.zeros((len(points), 4), np.float32),
        "colours": np.zeros((len(points), 4), np.uint8),
        "indices": np.concatenate(triangles).ravel().astype(np.uint32),
    }
    return DrawCall(**{**given, **more})


def test_each_level_has_fewer_triangles_than_the_one_before():
    part = spiked()
    counts = [part.triangles, *(len(each.indices) // 3 for each in levels(part))]
    assert len(counts) >= 3
    for fine, coarse in itertools.pairwise(counts):
        assert coarse < 0.6 * fine


def test_triangles_of_a_level_are_of_the_vertices_that_it_keeps():
    part = spiked()
    for level in levels(part):
        assert len(np.unique(level.vertices)) == len(level.vertices)
        assert int(level.vertices.max()) < len(part.positions)
        assert int(level.indices.max()) < len(level.vertices)
        corners = level.indices.reshape(-1, 3)
        assert (corners != np.roll(corners, 1, axis=1)).all()


def box(cells=24):
    """A box from -1 to 1, each side a grid."""
    steps = np.linspace(-1, 1, cells + 1)
    u, v = (each.ravel() for each in np.meshgrid(steps, steps, indexing="ij"))
    index = np.arange(len(u)).reshape(cells + 1, cells + 1)
    a, b, c, d = (each.ravel() for each in (index[:-1, :-1], index[1:, :-1], index[1:, 1:],
                                            index[:-1, 1:]))  # fmt: skip
    quads = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    points: list[np.ndarray] = []
    triangles: list[np.ndarray] = []
    for axis in range(3):
        for sign in (-1, 1):
            triangles.append((quads if sign > 0 else quads[:, ::-1]) + len(u) * len(points))
            side = np.zeros((len(u), 3))
            side[:, axis], side[:, (axis + 1) % 3], side[:, (axis + 2) % 3] = sign, u, v
            points.append(side)
    count = 6 * len(u)
    return spiked(
        positions=np.concatenate(points).astype(np.float32),
        normals=np.zeros((count, 3), np.float32),
        uvs=np.zeros((count, 4), np.float32),
        colours=np.zeros((count, 4), np.uint8),
        indices=np.concatenate(triangles).ravel().astype(np.uint32),
    )


def test_corners_stay():
    part = box()
    found = levels(part)
    assert len(found) >= 2
    for level in found:
        kept = part.positions[level.vertices[level.indices]]
        corners = {tuple(each) for each in kept.tolist() if np.abs(each).min() > 0.99}
        assert len(corners) == 8


def test_small_parts_and_lines_have_no_levels():
    assert levels(spiked(rings=12)) == ()
    assert levels(spiked(mode=LINES)) == ()
