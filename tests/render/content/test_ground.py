"""Shadows: where they are dark, and that the polygon around them misses nothing of it."""

import cv2
import numpy as np

from heimdall.render.content.ground import cast
from heimdall.render.content.model import TRIANGLES, DrawCall


def shadow(corners):
    """Of triangles (m, 3, 3)."""
    points = np.asarray(corners, np.float32).reshape(-1, 3)
    part = DrawCall(
        mode=TRIANGLES,
        material=0,
        positions=points,
        normals=np.zeros_like(points),
        uvs=np.zeros((len(points), 4), np.float32),
        colours=np.zeros((len(points), 4), np.uint8),
        indices=np.arange(len(points), dtype=np.uint32),
    )
    return cast([(points, part)], points.min(axis=0), points.max(axis=0))


def plates(*heights):
    """Horizontal squares of 1 m."""
    flat = np.array([(0, 0), (1, 0), (1, 1), (0, 0), (1, 1), (0, 1)], float) - 0.5
    return [
        np.insert(flat, 1, height, axis=1).reshape(2, 3, 3)[number]
        for height in heights
        for number in (0, 1)
    ]


def test_what_is_low_casts_a_sharp_shadow_and_what_is_high_a_soft_one():
    found = shadow(plates(0.0, 1.0))
    low, high = found.picture[..., 0], found.picture[..., 2]
    assert low[48, 48] > 240
    edge = (low[48] > 20) & (low[48] < 235)
    soft = (high[48] > 20) & (high[48] < 235)
    assert 0 < edge.sum() < soft.sum() / 2


def test_the_polygon_around_a_band_holds_all_that_is_dark():
    rng = np.random.default_rng(5)
    for _ in range(5):
        found = shadow(rng.uniform(-1, 1, (40, 3, 3)))
        for band, outline in enumerate(found.outlines):
            inside = np.zeros((96, 96), np.uint8)
            corners = np.rint(outline * 96 * 16 - 8).astype(np.int32)
            cv2.fillConvexPoly(inside, corners, 1, shift=4)
            assert not (found.picture[..., band][inside == 0] > 0).any()
            assert len(outline) <= 12
            assert len(outline) >= 3 * found.picture[..., band].any()


def test_nothing_at_all_casts_no_shadow():
    found = shadow(plates(0.0))
    assert len(found.outlines[0])
    assert not len(found.outlines[2])
