"""The couch as geometry."""

import numpy as np
import pytest

from heimdall.errors import AppError
from heimdall.render import mesh


@pytest.fixture(scope="module")
def couch():
    return mesh.load("couch")


def test_it_stands_on_the_floor_and_has_a_couchs_size(couch):
    low, high = couch.positions.min(axis=0), couch.positions.max(axis=0)
    assert low[1] == pytest.approx(0, abs=0.01)
    assert high[0] - low[0] == pytest.approx(2.1, abs=0.1)
    assert 0.7 < couch.height < 1.0
    assert 0.8 < high[2] - low[2] < 1.1
    assert couch.width == pytest.approx(high[0] - low[0], abs=0.01)


def test_normals_are_unit_and_triangles_face_outwards(couch):
    assert np.allclose(np.linalg.norm(couch.normals, axis=1), 1, atol=1e-5)
    corners = couch.positions[couch.triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert ((faces * couch.normals[couch.triangles].mean(axis=1)).sum(axis=1) > -1e-9).all()


def test_folds_are_darker_than_the_open(couch):
    assert couch.openness.min() < 0.3
    assert couch.openness.max() > 0.9
    assert ((couch.openness >= 0) & (couch.openness <= 1)).all()


def test_it_is_light_enough_for_a_software_gpu(couch):
    assert len(couch.triangles) < 3000
    assert 0 < couch.cloth_triangles < len(couch.triangles)


def test_an_unknown_piece_lists_the_known(couch):
    with pytest.raises(AppError, match="couch"):
        mesh.load("piano")


def test_the_weave_is_seamless_rgb():
    cloth = mesh.weave(96)
    assert cloth.shape == (96, 96, 3)
    assert cloth.dtype == np.uint8
    assert cloth.std() > 5


def test_the_distance_to_a_rounded_box():
    part = mesh.Part((0, 0, 0), (2, 2, 2), 0.5)
    points = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [1, 1, 1]])
    corner = np.sqrt(3) * 0.5 - 0.5
    assert part.distance(points) == pytest.approx([-1, 0, 1, corner])
