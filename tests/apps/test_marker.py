"""The marker app: a rabbit stands on the printed page wherever the camera goes, others where one
taps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import namedtuple

import cv2
import numpy as np
import pytest

from heimdall import Key, Pointer

Hand = namedtuple("Hand", "points pinch")


@pytest.fixture
def stage(play, clip):
    """The app after some frames from ``first`` on of its clip, the last of which is ``image``."""

    def at(first: int):
        stage = play("marker")
        stage.app.frames = 20  # no rabbit hops now
        for number in range(first, first + 8):
            stage.image = clip(stage.app.clip, number)
            stage.picture = stage.show(stage.image)
        return stage

    return at


def marker_in(image):
    """The corners (4, 2) of the marker in a picture."""
    known = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    corners, _, _ = cv2.aruco.ArucoDetector(known).detectMarkers(image)
    return corners[0].reshape(4, 2)


def drawn(stage):
    """Where the picture shows a rabbit, not its shadow: (h, w) bool."""
    rgb = cv2.cvtColor(stage.image, cv2.COLOR_BGR2RGB).astype(int)
    shown = stage.picture.astype(int)
    return (np.abs(shown - rgb).max(axis=2) > 40) & (shown[..., 0] - shown[..., 2] > 50)


@pytest.mark.parametrize("first", [5, 60, 110, 200, 250])
def test_the_rabbit_stands_on_the_marker(stage, first):
    stage = stage(first)
    corners = marker_in(stage.image)
    side = np.sqrt(cv2.contourArea(corners))
    rows, columns = np.nonzero(drawn(stage))
    feet = np.array([np.median(columns[rows > rows.max() - 0.1 * side]), rows.max()])
    inside = cv2.pointPolygonTest(corners.reshape(-1, 1, 2), tuple(map(float, feet)), True)
    assert inside > -0.12 * side
    assert 0.6 * side < np.ptp(columns) < 2.2 * side  # it is 8 to 10 cm wide, the marker 8
    head = rows.min()
    assert corners[:, 1].min() - 1.5 * side < head < corners[:, 1].mean()


def test_a_tap_places_another_one_there_and_x_takes_it_away(stage):
    stage = stage(5)
    before = drawn(stage)
    stage.app.on_pointer(Pointer(520, 380, frozenset({"left"})), stage.scene)
    stage.app.on_pointer(Pointer(521, 380, frozenset({"left"})), stage.scene)  # still held
    (other,) = stage.app.others
    assert other.at == pytest.approx((520, 380), abs=0.5)
    stage.picture = stage.show(stage.image)
    more = drawn(stage) & ~before
    rows, columns = np.nonzero(more)
    assert abs(columns.mean() - 520) < 40
    assert 330 < rows.mean() < 385
    stage.app.on_key(Key("x", True))
    assert stage.app.others == []


def test_a_pinch_places_one_when_it_closes(stage):
    stage = stage(5)
    points = np.zeros((21, 3))
    points[[4, 8], :2] = (500, 360), (510, 370)
    for pinch in (0.6, 0.1, 0.1, 0.6):
        stage.app.on_result("hand", [Hand(points, pinch)], stage.frame)
    (other,) = stage.app.others
    assert other.at == pytest.approx((505, 365), abs=0.5)


def test_nothing_is_placed_and_the_overlay_says_so_while_the_page_is_unseen(play, grey):
    stage = play("marker")
    picture = stage.show(grey)
    stage.app.on_pointer(Pointer(320, 240, frozenset({"left"})), stage.scene)
    assert stage.app.others == []
    assert (np.abs(picture.astype(int) - 128).max(axis=2) > 60).any()


@pytest.mark.slow
def test_a_run_follows_the_page(tmp_path):
    command = [sys.executable, "-m", "heimdall", "run", "marker", "--headless", "--json"]
    command += ["--frames", "120", "--size", "640x480"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["app"] == "marker"
    assert summary["errors"] == []
    assert summary["world"]["tracked"] > 0.3
    assert summary["world"]["pose_ms"]["p50"] > 0
