"""A board seen from all sides says what the camera is; too little of it is refused in words."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.tracking.pose.calibration import Calibration, ChessBoard
from heimdall.tracking.pose.paper import board_page, print_board
from heimdall.tracking.pose.solve import planar
from heimdall.tracking.pose.targets import dictionary
from tests.tracking.pose.photographed import BENT, BOARD, around, photographed_board


@pytest.fixture(scope="module")
def photographed():
    return photographed_board()


@pytest.fixture(scope="module")
def sequence(photographed):
    return [photographed.taken(pose) for pose in around(26)]


def looked_at(pictures, board=BOARD):
    calibration = Calibration(board)
    for picture in pictures:
        calibration.look(picture)
    return calibration


def test_the_camera_is_found(sequence):
    found = looked_at(sequence).solve()
    camera = found.camera
    assert camera.size == BENT.size
    assert not camera.guessed
    assert (camera.fx, camera.fy) == pytest.approx((BENT.fx, BENT.fy), rel=0.01)
    assert (camera.cx, camera.cy) == pytest.approx((BENT.cx, BENT.cy), abs=3)
    assert found.reprojection_px < 0.3
    assert found.views >= 20
    # the whole of the lens: where points of the picture's edges are said to be
    edges = np.array([[20, 20], [620, 20], [620, 340], [20, 340], [320, 10], [10, 180.0]])
    assert camera.pixels(BENT.rays(edges)) == pytest.approx(edges, abs=3)


def test_advice_leads_to_enough(sequence):
    calibration = Calibration(BOARD)
    said = [calibration.advice]
    for picture in sequence:
        calibration.look(picture)
        if calibration.advice != said[-1]:
            said.append(calibration.advice)
    assert said[0] == "show the board"
    assert any("tilt" in each for each in said[:3])
    assert said[-1] is None or "nearer and farther" in said[-1]


def test_the_same_view_again_is_not_taken(sequence):
    calibration = looked_at(sequence[:1])
    assert not calibration.look(sequence[0])
    assert calibration.look(cv2.cvtColor(sequence[1], cv2.COLOR_GRAY2BGR))
    assert len(calibration.views) == 2


def test_a_view_that_does_not_fit_is_left_out(sequence):
    calibration = looked_at(sequence)
    x, y = np.meshgrid(np.arange(BENT.width), np.arange(BENT.height))
    wavy = (x + 25 + 3 * np.sin(y / 40)).astype(np.float32)
    assert calibration.look(
        cv2.remap(sequence[-1], wavy, y.astype(np.float32) + 25, cv2.INTER_LINEAR)
    )
    found = calibration.solve()
    assert found.not_fit >= 1
    assert found.camera.fx == pytest.approx(BENT.fx, rel=0.01)


@pytest.mark.parametrize("other", [ChessBoard(9, 6), ChessBoard(5, 7), ChessBoard(9, 7)])
def test_a_board_of_another_size_is_refused(sequence, other):
    calibration = looked_at(sequence[:4], other)
    assert "--squares" in calibration.advice
    with pytest.raises(ConfigError, match=rf"not one of {other.name}.*--squares"):
        calibration.solve()


def test_a_board_that_is_too_large_names_its_marker():
    larger = photographed_board(ChessBoard(9, 6))
    pictures = [larger.taken(pose) for pose in around(2)]
    with pytest.raises(ConfigError, match="marker 26 is there, and this board has 0 to 16"):
        looked_at(pictures).solve()


def test_too_few_views_are_refused(sequence):
    with pytest.raises(ConfigError, match="seen in 3 of 3 frames, in 3 different views; 6"):
        looked_at(sequence[:3]).solve()
    with pytest.raises(ConfigError, match="seen in 0 of 2 frames"):
        looked_at([np.full((360, 640), 99, np.uint8)] * 2).solve()
    with pytest.raises(ConfigError, match="no frames"):
        Calibration(BOARD).solve()


def test_views_from_one_side_only_are_refused(photographed):
    pictures = [photographed.taken(pose) for pose in around(14, tilt=2)]
    with pytest.raises(ConfigError, match="same side"):
        looked_at(pictures).solve()


def test_a_board_in_one_corner_only_is_refused(sequence):
    wide = [
        cv2.copyMakeBorder(each, 0, 720, 0, 1280, cv2.BORDER_CONSTANT, value=130)
        for each in sequence
    ]
    calibration = looked_at(wide)
    with pytest.raises(ConfigError, match="of the picture only"):
        calibration.solve()


def test_frames_of_two_sizes_are_refused(sequence):
    calibration = looked_at(sequence[:1])
    with pytest.raises(ConfigError, match="640x360 and of 320x180"):
        calibration.look(cv2.resize(sequence[0], (320, 180)))


@pytest.mark.parametrize(
    ("columns", "rows", "dictionary", "said"),
    [
        (2, 5, "DICT_4X4_50", "3x3 to 40x40"),
        (12, 10, "DICT_4X4_50", "60 markers, and DICT_4X4_50 only 50"),
        (7, 5, "DICT_3", "DICT_4X4_50"),
    ],
)
def test_boards_that_cannot_be_are_refused(columns, rows, dictionary, said):
    with pytest.raises(ConfigError, match=said):
        ChessBoard(columns, rows, dictionary)


@pytest.mark.parametrize("size", [(7, 5), (6, 9), (40, 3)])
def test_the_printed_board_is_found_again(size):
    board = ChessBoard(size[0], size[1], "DICT_4X4_100")
    page = cv2.resize(board_page(board), None, fx=0.3, fy=0.3, interpolation=cv2.INTER_AREA)
    calibration = looked_at([page], board)
    assert len(calibration.views[0].points) == (size[0] - 1) * (size[1] - 1)


def test_the_board_is_printed(tmp_path):
    print_board(BOARD, tmp_path / "sub" / "board.pdf")
    assert (tmp_path / "sub" / "board.pdf").read_bytes().startswith(b"%PDF")
    print_board(BOARD, tmp_path / "board.png")
    assert cv2.imread(str(tmp_path / "board.png"), 0).shape == (2480, 3508)
    with pytest.raises(ConfigError, match=r"\.pdf or \.png"):
        print_board(BOARD, tmp_path / "board.svg")
    with pytest.raises(ConfigError, match="cannot write"):
        print_board(BOARD, tmp_path / "board.png" / "board.png")


def upside_down(name):
    """A dictionary turned by 180 degrees, as OpenCV 4 and 5.0 have AprilTags."""
    known = dictionary(name)
    side = known.markerSize
    cells = [cv2.aruco.Dictionary.getBitsFromByteList(e[None], side) for e in known.bytesList]
    codes = [cv2.aruco.Dictionary.getByteListFromBits(each[::-1, ::-1].copy()) for each in cells]
    return cv2.aruco.Dictionary(np.concatenate(codes), side, known.maxCorrectionBits)


@pytest.mark.parametrize("printed_by", [dictionary, upside_down])
def test_boards_of_apriltags_count_however_their_tags_are_turned(printed_by, monkeypatch):
    board = ChessBoard(7, 5, "DICT_APRILTAG_36h11")
    with monkeypatch.context() as patch:
        patch.setattr("heimdall.tracking.pose.calibration.dictionary", printed_by)
        photographed = photographed_board(board)
    calibration = looked_at([photographed.taken(pose) for pose in around(12)], board)
    assert len(calibration.views) >= 10
    for view in calibration.views:
        poses = planar(BENT, view.points * (1, -1, 1), view.pixels)
        off = BENT.pixels(poses[0].to_camera(view.points * (1, -1, 1))) - view.pixels
        assert np.abs(off).max() < 2
