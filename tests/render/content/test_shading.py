"""Which program draws a part, and that as little as needed is worked out for each pixel."""

from dataclasses import replace

import numpy as np
import pytest

from heimdall.render.content.model import POINTS, TRIANGLES, DrawCall, Material
from heimdall.render.content.shading import turning, variant


def ball(rings):
    """A ball of so many rings."""
    v, u = (each.ravel() for each in np.mgrid[0 : rings + 1, 0 : 2 * rings + 1])
    down, turn = v / rings * np.pi, u / rings * np.pi
    points = np.stack([np.sin(down) * np.sin(turn), np.cos(down), np.sin(down) * np.cos(turn)], 1)
    row = 2 * rings + 1
    corner = (v * row + u)[(v < rings) & (u < 2 * rings)]
    triangles = [
        np.stack([corner, corner + row, corner + row + 1], 1),
        np.stack([corner, corner + row + 1, corner + 1], 1),
    ]
    made = DrawCall(
        mode=TRIANGLES,
        material=0,
        positions=points.astype(np.float32),
        normals=points.astype(np.float32),
        uvs=np.zeros((len(points), 4), np.float32),
        colours=np.full((len(points), 4), 255, np.uint8),
        indices=np.concatenate(triangles).ravel().astype(np.uint32),
    )
    return replace(made, turning=turning(made))


def words(part, **material):
    return set(variant(part, Material(**material)).split("+")[1:])


def test_reflections_turn_twice_as_much_as_the_surface():
    between = np.pi / 32
    assert 2 * between < ball(32).turning < 5 * between
    assert ball(8).turning == pytest.approx(4 * ball(32).turning, rel=0.15)


def test_fine_and_rough_surfaces_are_lit_at_their_vertices():
    assert words(ball(32), roughness=0.7) == {"SOFT"}
    assert words(ball(8), roughness=0.7) == set()
    assert words(ball(32), roughness=0.1) == set()
    assert words(ball(32), roughness=0.1, metallic=1.0) == {"METAL"}
    assert words(ball(8), roughness=0.9) == {"SOFT"}  # reflections would not be seen


def test_maps_are_looked_up_where_there_are_some():
    assert words(ball(32), normal_map=0) == {"MAPS", "BUMPS"}
    found = words(ball(32), surface_map=0, occlusion_map=1, emissive_map=2, base_map=3)
    assert found == {"MAPS", "SURFACE", "SHADE", "GLOWING", "PICTURE"}


def test_what_light_does_not_change_needs_no_maps():
    assert words(ball(8), unlit=True, normal_map=0) == {"SOFT"}
    assert words(replace(ball(8), mode=POINTS)) == {"SOFT"}


def test_a_picture_may_come_from_the_app_where_there_are_coordinates():
    part = ball(8)
    assert "PICTURE" in words(replace(part, uvs=part.uvs + 1))
    assert "PICTURE" not in words(part)
