"""Coarser levels: fewer triangles, of vertices that were there, and of the same shape."""

import itertools

import numpy as np
import pytest

from heimdall.render.content.detail import levels
from heimdall.render.content.model import LINES, TRIANGLES, Part


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
    return Part(**{**given, **more})


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


def test_what_sticks_out_stays():
    part = spiked()
    for level in levels(part):
        kept = part.positions[level.vertices[level.indices]]
        assert np.linalg.norm(kept, axis=1).max() == pytest.approx(1.5, abs=1e-3)
        assert np.linalg.norm(kept, axis=1).min() == pytest.approx(1.0, abs=1e-3)


def test_small_parts_and_lines_have_no_levels():
    assert levels(spiked(rings=12)) == ()
    assert levels(spiked(mode=LINES)) == ()
