"""Furniture of rounded boxes as geometry, by the couch."""

import importlib

import numpy as np
import pytest

furniture = importlib.import_module("scripts.furniture")
rounded = importlib.import_module("scripts.rounded")


@pytest.fixture(scope="module")
def couch():
    return rounded.build(furniture.couch_parts())


def test_normals_are_unit_and_triangles_face_outwards(couch):
    assert np.allclose(np.linalg.norm(couch.normals, axis=1), 1, atol=1e-5)
    corners = couch.positions[couch.triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((faces * couch.normals[couch.triangles].mean(axis=1)).sum(axis=1) > -1e-9).all()


def test_folds_are_darker_than_the_open(couch):
    assert couch.openness.min() < 0.3
    assert couch.openness.max() > 0.9
    assert ((couch.openness >= 0) & (couch.openness <= 1)).all()


def test_what_cannot_be_seen_is_left_out(couch):
    alone = rounded.build(furniture.couch_parts()[:1])
    assert len(couch.triangles) < 15 * len(alone.triangles)


def test_the_distance_to_a_rounded_box():
    part = rounded.Part((0, 0, 0), (2, 2, 2), 0.5)
    points = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 1, 1]])
    corner = np.sqrt(3) * 0.5 - 0.5
    assert part.distance(points) == pytest.approx([-1, 0, 1, corner])
