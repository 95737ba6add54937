"""Targets that cannot be found, or told apart, are refused in words."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.rendered import painted
from heimdall.capture.lens import Camera
from heimdall.errors import ConfigError
from heimdall.tracking.pose.finding import Finder
from heimdall.tracking.pose.targets import (
    Board,
    ImageTarget,
    Marker,
    dictionary,
    prepare,
)

# Cells row by row from the top left, white is 1: of the pictures that AprilRobotics publishes
# (github.com/AprilRobotics/apriltag-imgs), and for 36h10 of its tag36h10.c.
OFFICIAL = {
    "16h5": {0: 0x231B, 29: 0xAF2E},
    "25h9": {0: 0x155CBF1, 34: 0xB991CE},
    "36h10": {0: 0x1CA92A687},
    "36h11": {0: 0xD5D628584, 8: 0x22B1DFEAD, 586: 0xE83BE4B73},
}


def official(family: str, number: int) -> np.ndarray:
    """A tag as it is printed, upright, within its black border; a cell is a pixel."""
    side = {"16h5": 4, "25h9": 5}.get(family, 6)
    cells = format(OFFICIAL[family][number], f"0{side**2}b")
    white = np.array([255 * int(each) for each in cells], np.uint8)
    return np.pad(white.reshape(side, side), 1)


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


TAGS = [(family, number) for family, codes in OFFICIAL.items() for number in codes]


@pytest.fixture(params=[0, 1, 2, 3], ids="turned {}".format)
def any_opencv(request, monkeypatch):
    """An OpenCV that has AprilTags turned by so many quarters more than the one that is here."""
    given = cv2.aruco.getPredefinedDictionary

    def turned(kind):
        known = given(kind)
        side = known.markerSize
        codes = [
            cv2.aruco.Dictionary.getByteListFromBits(
                np.rot90(
                    cv2.aruco.Dictionary.getBitsFromByteList(each[None], side), request.param
                ).copy()
            )
            for each in known.bytesList
        ]
        return cv2.aruco.Dictionary(np.concatenate(codes), side, known.maxCorrectionBits)

    monkeypatch.setattr(cv2.aruco, "getPredefinedDictionary", turned)
    dictionary.cache_clear()
    yield
    dictionary.cache_clear()


@pytest.mark.usefixtures("any_opencv")
@pytest.mark.parametrize(("family", "number"), TAGS)
def test_apriltags_are_drawn_as_they_are_published(family, number):
    known, tag = dictionary(f"DICT_APRILTAG_{family}"), official(family, number)
    assert (cv2.aruco.generateImageMarker(known, number, len(tag)) == tag).all()


@pytest.mark.usefixtures("any_opencv")
@pytest.mark.parametrize(("family", "number"), TAGS)
def test_an_upright_apriltag_has_x_right_and_y_up(family, number):
    name, tag = f"DICT_APRILTAG_{family}", official(family, number)
    picture = np.full((480, 640), 255, np.uint8)
    shown = np.kron(tag, np.ones((30, 30), np.uint8))
    side = len(shown)
    picture[60 : 60 + side, 100 : 100 + side] = shown
    finder = Finder(prepare([Marker(name, number, 0.08)]))
    (found,) = finder.look(picture, Camera.guess(640, 480))
    assert found.poses[0].rotation == pytest.approx(np.diag([1.0, -1.0, -1.0]), abs=0.5)


def test_an_unknown_dictionary_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="DICT_APRILTAG_36h11"):
        dictionary("DICT_APRILTAG_36h12")
