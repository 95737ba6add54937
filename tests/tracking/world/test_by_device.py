"""A world whose device tracks itself, as ARKit and ARCore do."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import DevicePlane, DevicePose, Pose
from heimdall.tracking import World

from .standin import FIRST, SECOND, Run, pixel

# World, z up, to the device's axes, y up.
TO_DEVICE = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
LEVEL = Pose(np.eye(3), np.array([0.1, 0.0, -0.2]))  # at (0.1, 0.2, 0) of the world
AROUND = np.array([[-0.5, -0.4], [-0.5, 0.4], [0.5, 0.4], [0.5, -0.4]])


def by_device(camera: Pose) -> Pose:
    """World to camera, as the device to camera."""
    return Pose(camera.rotation @ TO_DEVICE.T, camera.translation)


class Device(Run):
    """Frames of a device that knows where it is."""

    def __init__(self, **declared) -> None:
        super().__init__(**declared)
        self.planes: list[DevicePlane] = []

    def at(self, where: Pose | None) -> World:
        pose = by_device(where) if where is not None else None
        self.device = DevicePose(pose, self.planes)
        return self.look()


@pytest.fixture
def device():
    made = Device()
    yield made
    made.world.end()


def test_the_device_says_the_pose_in_metres(device):
    for where in (FIRST, SECOND):
        world = device.at(where)
        assert (world.state, world.reason) == ("tracked", "")
        assert world.pose.rotation == pytest.approx(where.rotation)
        assert world.pose.translation == pytest.approx(where.translation)
    assert (world.scale_source, world.scale_known) == ("device", True)
    assert device.tracker.where == []  # no picture was looked at


def test_a_device_that_is_lost_says_so_and_comes_back(device):
    device.at(FIRST)
    world = device.at(None)
    assert (world.state, world.reason) == ("lost", "insufficient features")
    assert device.at(SECOND).tracked
    assert world.pose.translation == pytest.approx(SECOND.translation)


def test_a_device_that_never_knew_has_no_pose(device):
    world = device.at(None)
    assert (world.state, world.pose, world.found) == ("lost", None, [])


def test_its_planes_are_the_worlds(device):
    device.planes = [DevicePlane(3, LEVEL, np.add(AROUND, (0.1, 0)), "horizontal")]
    world = device.at(FIRST)
    (plane,) = world.changed
    assert world.found == [plane]
    assert (plane.kind, plane.guessed, plane.size) == ("horizontal", False, pytest.approx((1, 0.8)))
    assert plane.pose.translation == pytest.approx((0.2, 0.2, 0))
    assert plane.pose.rotation[:, 1] == pytest.approx((0, 0, 1))  # its normal
    assert device.at(FIRST).changed == []
    hit = world.hit(*pixel((0.3, 0.1, 0.0)))
    assert hit.plane is plane
    assert not hit.instant
    assert hit.point == pytest.approx((0.3, 0.1, 0.0), abs=1e-6)
    device.planes = [DevicePlane(3, LEVEL, 2 * AROUND, "horizontal")]
    (grown,) = device.at(FIRST).changed
    assert (grown.name, grown.size) == (plane.name, pytest.approx((2, 1.6)))
    device.planes = []
    assert device.at(FIRST).found == []


def test_anchors_stay_where_they_are(device):
    device.planes = [DevicePlane(3, LEVEL, AROUND, "horizontal")]
    world = device.at(FIRST)
    anchor = world.anchor(world.hit(*pixel((0.1, 0.1, 0.0))))
    for where in (SECOND, FIRST):
        device.at(where)
        assert anchor.pose.translation == pytest.approx((0.1, 0.1, 0.0), abs=1e-6)
    device.planes = []
    device.at(SECOND)
    assert anchor.pose.translation == pytest.approx((0.1, 0.1, 0.0), abs=1e-6)


def test_without_planes_a_ray_still_meets_something(device):
    hit = device.at(FIRST).hit(320, 240)
    assert hit is not None
    assert hit.instant


def test_its_map_is_not_kept(tmp_path):
    made = Device(map=tmp_path / "room.npz")
    made.at(FIRST)
    made.world.end()
    assert not list(tmp_path.iterdir())
