"""The mapper finds planes in its map, and the tracker has them."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.tracker import RoomTracker
from tests.tracking.slam.scene import CAMERA, look, walk

DOWN = np.radians(25.0)
TILTED = Pose.of(np.array([DOWN, 0, 0]), np.zeros(3))  # looks down so far
RAISED = Pose(np.eye(3), np.array([0, 0.5, 0]))  # and is so much higher


@pytest.fixture(scope="module")
def found():
    tracker = RoomTracker(Mapper())
    for number, pose in enumerate(walk(100)):
        there = TILTED.after(pose.after(RAISED))
        tracker.advance(look(there, seed=number), CAMERA, number, number / 30)
    yield tracker.map.planes
    tracker.close()


def test_floor_and_wall_of_a_drawn_room_are_planes_of_its_map(found):
    up = TILTED.rotation @ (0, -1, 0)
    assert np.degrees(np.arccos(min(1.0, found.up @ up))) < 1
    floor = max((each for each in found.planes if each.kind == "horizontal"), key=lambda p: p.count)
    assert np.degrees(np.arccos(min(1.0, floor.normal @ up))) < 1
    wall = TILTED.rotation @ (0, 0, -1)
    upright = [each for each in found.planes if each.kind == "vertical"]
    assert min(np.degrees(np.arccos(min(1.0, each.normal @ wall))) for each in upright) < 2


def test_their_names_differ(found):
    names = [each.id for each in found.planes]
    assert len(set(names)) == len(names) >= 3
