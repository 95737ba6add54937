"""What goes wrong on a walk is told, in ARKit's words, and no pose is false meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.pose.solve import refine
from heimdall.tracking.slam.lens import longer
from tests.tracking.slam.mishaps import MISHAPS, STILL, false_poses, played, wander
from tests.tracking.slam.scene import CAMERA

# (frames without a pose, and why, by the end of them), (frames that all have one)
TOLD = {
    "white_wall": ((70, 110, {"insufficient features"}), (125, 150)),
    "darkness": ((78, 104, {"insufficient features"}), (125, 150)),
    "capped": ((0, 30, {"insufficient features", "initializing"}), (75, 120)),
    "zoomed": (None, (40, 150)),
    "resized": ((70, 74, {"initializing"}), (130, 160)),
    "cut": ((80, 160, {"relocalizing"}), (165, 280)),
    "alike": ((80, 180, {"relocalizing"}), None),
    "repeated": (None, (90, 180)),
    "frozen": (None, (40, 135)),
    "still": ((0, 45, {"initializing"}), None),
    "turning": ((0, 120, {"initializing"}), None),
    "drifting": ((0, 120, {"initializing"}), None),
    "crowded": ((85, 105, {"relocalizing"}), (135, 170)),
    "away": ((75, 158, {"relocalizing"}), (175, 230)),
}


@pytest.mark.parametrize("name", MISHAPS)
def test_what_goes_wrong_is_told_and_no_pose_is_false(name):
    shown = MISHAPS[name](1)
    found = played(shown)
    assert false_poses(shown, found) == []
    told, tracked = TOLD[name]
    if told is not None:
        first, last, why = told
        assert all(each.pose is None for each in found[first:last])
        assert {each.reason for each in found[last - 4 : last]} <= why
    if tracked is not None:
        assert all(each.pose is not None for each in found[slice(*tracked)])
    assert all(bool(each.reason) == (each.pose is None) for each in found)


def test_a_place_that_looks_alike_in_part_is_not_the_one_after_a_long_loss():
    """Half of the points of a room seemed to be where they should, 7 degrees off."""
    shown = MISHAPS["white_wall"](3)
    assert false_poses(shown, played(shown)) == []


@pytest.mark.parametrize("times", [0.9, 1.0, 1.04])
def test_a_map_says_how_long_the_lens_is(times):
    draw = np.random.default_rng(1)
    points = draw.uniform((-2, -1.5, 2), (2, 1.5, 6), (120, 3))
    pose = wander(1, 20)[-1]
    pixels = CAMERA.zoomed(times).pixels(pose.to_camera(points)) + draw.normal(0, 0.3, (120, 2))
    near = refine(CAMERA, points, pixels, pose).pose  # the best by the wrong lens
    found, deviation = longer(CAMERA, near, points, pixels)
    assert abs(found - times) < max(4 * deviation, 0.3 * abs(times - 1))  # one step towards it
    assert deviation < 0.02


def test_a_wall_from_the_front_does_not_say_how_long_the_lens_is():
    across = np.random.default_rng(1).uniform(-1, 1, (120, 2))
    points = np.column_stack([across, np.full(120, 3.0)])
    pixels = CAMERA.zoomed(1.2).pixels(points)
    assert longer(CAMERA, STILL, points, pixels)[1] > 0.2
