"""A frame gets the pose that was found in it, or the one that it will have."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.tracking.pose import Tracking
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.world.course import AHEAD_NS, Course

FRAME_NS = 33_000_000


def turning(number: int, state: str = "tracked") -> Tracking:
    """A camera that turns by 2 degrees and moves by 4 mm a frame."""
    pose = Pose.of(np.array([0, np.radians(2.0 * number), 0]), np.array([0.004 * number, 0, 0.5]))
    return Tracking(number, state, pose)


def course(count: int, lost: tuple[int, ...] = ()) -> Course:
    made = Course()
    for number in range(count):
        made.add(number * FRAME_NS, turning(number, "lost" if number in lost else "tracked"))
    return made


def test_a_frame_that_was_looked_at_has_its_own_pose():
    place = course(9).at(5 * FRAME_NS)
    assert place.tracked
    assert place.ahead_ns == 0
    assert place.pose.translation == pytest.approx(turning(5).pose.translation)


@pytest.mark.parametrize("ahead", [1, 2])
def test_a_newer_one_goes_on_as_the_last_went(ahead):
    place = course(9).at((8 + ahead) * FRAME_NS)
    turn, move = apart(place.pose, turning(8 + ahead).pose)
    assert place.tracked
    assert place.ahead_ns == ahead * FRAME_NS
    assert np.degrees(turn) < 0.01
    assert move < 1e-5


def test_farther_than_anybody_can_tell_nothing_goes_on():
    far, end = (course(9).at(8 * FRAME_NS + ahead) for ahead in (AHEAD_NS, 10 * AHEAD_NS))
    assert far.ahead_ns == end.ahead_ns == AHEAD_NS
    assert end.pose.translation == pytest.approx(far.pose.translation)


def test_a_pose_just_found_again_says_nothing_about_speed():
    place = course(9, lost=(7,)).at(9 * FRAME_NS)
    assert place.tracked
    assert place.pose.translation == pytest.approx(turning(8).pose.translation)


def test_while_lost_the_last_pose_stays():
    place = course(9, lost=(8,)).at(10 * FRAME_NS)
    assert not place.tracked
    assert place.ahead_ns == 0
    assert place.pose.translation == pytest.approx(turning(8).pose.translation)


def test_before_the_first_frame_there_is_none():
    assert Course().at(5).pose is None
    assert not course(9).at(-1).tracked
