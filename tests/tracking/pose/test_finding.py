"""Targets are found anywhere in a picture, a slice of the work in each frame."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.tracking.pose.finding import Finder
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.pose.targets import Board, prepare
from tests.tracking.pose.photographed import (
    DICTIONARY,
    MARKER,
    PICTURE,
    STRAIGHT,
    desk,
    looking,
    swaying,
)


def looks(finder, frames, camera=STRAIGHT):
    """What each frame brought."""
    return [finder.look(each, camera) for each in frames]


def test_a_marker_is_found_at_once_with_its_pose():
    pose = swaying(0)
    found = Finder(prepare([MARKER])).look(desk().taken(pose), STRAIGHT)
    assert [each.target for each in found] == [0]
    turn, metres = apart(found[0].poses[0], pose)
    assert np.degrees(turn) < 3
    assert metres < 0.02


def test_a_small_marker_of_a_large_picture_is_found_in_a_part_of_it():
    small = cv2.resize(desk().taken(looking((0, 0), 0.9, 20, 30)), None, fx=0.25, fy=0.25)
    frame = np.full((720, 1280), 130, np.uint8)
    frame[500:590, 900:1060] = small
    found = looks(Finder(prepare([MARKER])), [frame] * 20, STRAIGHT.scaled(1280, 720))
    assert any(found)


def test_a_picture_is_found_where_it_is_by_now():
    """A look through a frame takes several: meanwhile the camera has moved."""
    finder = Finder(prepare([PICTURE]))
    poses = [swaying(3 * number) for number in range(8)]
    for pose in poses:
        found = finder.look(desk("picture").taken(pose), STRAIGHT)
        if found:
            break
        assert finder.busy
    assert [each.target for each in found] == [0]
    assert pose is not poses[0]
    turn, metres = min(apart(each, pose) for each in found[0].poses)
    assert np.degrees(turn) < 4
    assert metres < 0.03


def test_a_board_is_found_by_some_of_its_markers():
    board = Board(DICTIONARY, 2, 2, 0.05, 0.02, first=6)
    (found,) = Finder(prepare([board])).look(desk().taken(swaying(0)), STRAIGHT)
    assert found.target == 0


@pytest.mark.parametrize("target", [MARKER, PICTURE])
def test_nothing_is_found_where_nothing_is(target):
    frame = desk("nothing").taken(swaying(0))
    assert not any(looks(Finder(prepare([target])), [frame] * 12))
    assert not any(looks(Finder(prepare([target])), [np.zeros_like(frame)] * 6))


def test_a_look_that_is_old_is_forgotten():
    finder = Finder(prepare([PICTURE]))
    finder.look(desk("picture").taken(swaying(0)), STRAIGHT)
    finder.forget()
    assert not finder.busy
