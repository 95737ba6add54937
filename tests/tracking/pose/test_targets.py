"""Targets that cannot be found, or told apart, are refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rendered import painted
from heimdall.errors import ConfigError
from heimdall.tracking.pose.targets import Board, ImageTarget, Marker, prepare


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        ([], "nothing to find"),
        ([ImageTarget(np.full((200, 300, 3), 128, np.uint8), 0.2)], "too little to be found by"),
        ([ImageTarget(painted(1), 0.2), ImageTarget(painted(1), 0.3)], "look alike"),
        ([ImageTarget(np.zeros((9, 9)), 0.2)], "BGR or grey uint8"),
        ([Marker("DICT_4X4_50", 3, 0.1), Board("DICT_4X4_50", 2, 2, 0.1, 0.02)], "given twice"),
    ],
)
def test_what_could_not_be_found_is_refused(targets, said):
    with pytest.raises(ConfigError, match=said):
        prepare(targets)


def test_two_pictures_that_differ_are_told_apart():
    assert len(prepare([ImageTarget(painted(1), 0.2), ImageTarget(painted(2), 0.2)])) == 2


def test_a_board_has_its_markers_around_its_middle():
    (board,) = prepare([Board("DICT_APRILTAG_36h11", 3, 2, 0.04, 0.01, first=5)])
    corners = np.concatenate(list(board.fiducials.values()))
    assert sorted(number for _, number in board.fiducials) == list(range(5, 11))
    assert corners.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-3)
    assert np.ptp(corners, axis=0) == pytest.approx((0.14, 0.09, 0), abs=1e-3)
