"""What a device says of where it is: taken as it is, and refused where it makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall import ConfigError, DeviceLight, DevicePlane, DevicePose, Pose

STILL = Pose(np.eye(3), np.zeros(3))
CORNERS = [[0, 0], [1, 0], [0, 1]]


def test_a_rotation_of_short_floats_is_made_exact():
    turned = Pose.of(np.array([0.3, -0.2, 1.0]), np.zeros(3)).rotation
    said = DevicePose(Pose(turned.astype(np.float32), np.ones(3)))
    assert said.pose is not None
    assert np.abs(said.pose.rotation @ said.pose.rotation.T - np.eye(3)).max() < 1e-12
    assert said.pose.rotation == pytest.approx(turned, abs=1e-6)
    assert said.planes == ()


@pytest.mark.parametrize(
    "pose",
    [
        Pose(2 * np.eye(3), np.zeros(3)),
        Pose(np.diag([1.0, 1.0, -1.0]), np.zeros(3)),
        Pose(np.full((3, 3), np.nan), np.zeros(3)),
        Pose(np.eye(4), np.zeros(3)),
        Pose(np.eye(3), np.array([0.0, np.inf, 0.0])),
        Pose(np.eye(3), np.zeros(2)),
        Pose("x", "y"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_pose_is_refused(pose):
    with pytest.raises(ConfigError, match="device's pose"):
        DevicePose(pose)


@pytest.mark.parametrize(
    "wrong",
    [
        {"outline": [[0, 0], [1, 0]]},
        {"outline": [[0, 0, 0]] * 3},
        {"outline": [[0, 0], [1, 0], [np.nan, 1]]},
        {"outline": "abc"},
        {"kind": "round"},
        {"id": "seven"},
    ],
)
def test_what_is_no_plane_is_refused(wrong):
    with pytest.raises(ConfigError, match="device's plane"):
        DevicePlane(**{"id": 1, "pose": STILL, "outline": CORNERS, **wrong})


def test_more_planes_than_a_room_has_are_refused():
    with pytest.raises(ConfigError, match="at most 64"):
        DevicePose(STILL, [DevicePlane(number, STILL, CORNERS) for number in range(65)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"towards": [0, 0, 0]},
        {"towards": [0, 1]},
        {"main": [1, -1, 1]},
        {"around": [np.nan, 1, 1]},
        {"main": "red"},
    ],
)
def test_what_is_no_light_is_refused(wrong):
    with pytest.raises(ConfigError, match="device's light"):
        DeviceLight(**{"towards": [0, 1, 0], "main": [1, 1, 1], "around": [1, 1, 1], **wrong})
