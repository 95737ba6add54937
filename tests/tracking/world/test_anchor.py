"""An anchor in the world is one in the picture too: at, scale, roll and carry follow its pose."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from heimdall.capture import Camera, Pose
from heimdall.tracking import Anchor
from heimdall.tracking.world import WorldAnchor
from heimdall.tracking.world.places import on_target

from .standin import seen_from

HERE = on_target(Pose(np.eye(3), np.zeros(3)))


def test_it_is_where_the_camera_sees_its_place(camera):
    world = SimpleNamespace(camera=camera)
    anchor = WorldAnchor(world, HERE)
    assert anchor.at == pytest.approx((319.5, 239.5))
    assert anchor.origin == anchor.at
    world.camera = camera.at(seen_from((0.0, -0.4, 0.3), (0.1, 0, 0)))
    assert anchor.at[0] < 300  # the camera looks to the right of it
    assert isinstance(anchor, Anchor)


def test_it_looks_half_as_large_from_twice_as_far(camera):
    world = SimpleNamespace(camera=camera)
    anchor = WorldAnchor(world, HERE)
    assert anchor.scale == pytest.approx(1)
    world.camera = camera.at(seen_from((0.0, -0.8, 0.6)))
    assert anchor.scale == pytest.approx(0.5)


def test_it_rolls_as_the_picture_does(camera):
    world = SimpleNamespace(camera=camera)
    anchor = WorldAnchor(world, HERE)
    turn = Pose.of(np.array([0, 0, np.radians(25)]), np.zeros(3))
    world.camera = camera.at(turn.after(camera.pose))
    assert anchor.roll == pytest.approx(25)


def test_points_are_carried_with_it(camera):
    world = SimpleNamespace(camera=camera)
    anchor = WorldAnchor(world, HERE)
    corner = np.array([[359.5, 239.5]])
    assert anchor.carry(corner) == pytest.approx(corner, abs=1e-3)
    world.camera = camera.at(seen_from((0.0, -0.8, 0.6)))
    assert anchor.carry(corner) == pytest.approx(np.array([[339.5, 239.5]]), abs=1e-3)


def test_before_anything_is_seen_it_is_nowhere_in_particular():
    anchor = WorldAnchor(SimpleNamespace(camera=None), HERE)
    assert (anchor.at, anchor.scale, anchor.roll) == ((0, 0), 1, 0)
    assert np.isfinite(anchor.carry(np.array([[3.0, 4.0]]))).all()


def test_what_lies_behind_the_camera_is_far_outside_of_the_picture():
    camera = Camera.guess(640, 480).at(seen_from((0.0, -0.4, 0.3), (0.0, -0.9, 0.3)))
    x, y = WorldAnchor(SimpleNamespace(camera=camera), HERE).at
    assert max(abs(x), abs(y)) > 2000
