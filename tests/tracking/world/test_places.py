"""Rays meet planes where geometry says, and what stands there is upright."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.errors import ConfigError
from heimdall.tracking.world.places import Plane, nearest, on_target, standing

TABLE = Plane(on_target(Pose(np.eye(3), np.zeros(3))), name="table")
EYE = np.array([0.0, -0.4, 0.3])


def lifted(height, size=None, name=""):
    return Plane(on_target(Pose(np.eye(3), np.array([0.0, 0.0, height]))), size, name)


def test_what_stands_on_a_target_has_y_out_of_it_and_its_front_to_who_reads_it():
    pose = on_target(Pose(np.eye(3), np.zeros(3)))
    assert pose.rotation @ (0, 1, 0) == pytest.approx((0, 0, 1))
    assert pose.rotation @ (0, 0, 1) == pytest.approx((0, -1, 0))
    assert np.linalg.det(pose.rotation) == pytest.approx(1)


@pytest.mark.parametrize("aim", [(0.1, 0.05, 0), (-0.3, 2.0, 0), (0, 0, 0)])
def test_a_ray_meets_a_plane_where_it_was_aimed_at(aim):
    hit = nearest([TABLE], EYE, np.subtract(aim, EYE))
    assert hit.point == pytest.approx(aim, abs=1e-9)
    assert hit.distance == pytest.approx(np.linalg.norm(np.subtract(aim, EYE)))
    assert hit.plane is TABLE
    up, front = hit.pose.rotation[:, 1], hit.pose.rotation[:, 2]
    assert up == pytest.approx((0, 0, 1))
    assert front @ (EYE - hit.point) > 0  # its front to the camera


@pytest.mark.parametrize("ray", [(0, 1, 0), (0, 1, 0.2), (0, 0, 1)])
def test_a_ray_that_goes_along_or_up_meets_nothing(ray):
    assert nearest([TABLE], EYE, np.array(ray, float)) is None


def test_a_plane_is_not_met_from_below():
    assert nearest([TABLE], np.array([0, 0, -0.3]), np.array([0, 0.1, 1.0])) is None


def test_the_nearest_counts_and_a_bounded_plane_ends():
    shelf = lifted(0.1, (0.2, 0.1), "shelf")
    down = np.array([0.0, 0.0, -1.0])
    over = [np.array([x, y, 1.0]) for x, y in ((0.09, 0.04), (0.11, 0.0), (0.0, 0.06))]
    assert [nearest([TABLE, shelf], at, down).plane.name for at in over] == [
        "shelf", "table", "table",
    ]  # fmt: skip


def test_of_planes_in_one_place_the_first_counts():
    marker = lifted(0.0, (0.1, 0.1), "marker")
    down = np.array([0.0, 0.0, -1.0])
    assert nearest([marker, TABLE], np.array([0.0, 0.0, 1.0]), down).plane is marker


def test_what_stands_right_below_the_camera_is_upright_too():
    pose = standing(np.zeros(3), np.array([0.0, 0, 1]), np.array([0.0, 0, 2]))
    assert pose.rotation.T @ pose.rotation == pytest.approx(np.eye(3), abs=1e-12)
    assert pose.rotation[:, 1] == pytest.approx((0, 0, 1))


@pytest.mark.parametrize("size", [(0.0, 1.0), (-1.0, 1.0), (float("nan"), 1.0)])
def test_a_plane_without_a_size_is_refused(size):
    with pytest.raises(ConfigError, match="plane 'shelf'"):
        lifted(0.1, size, "shelf")
