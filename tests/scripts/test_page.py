"""The script that draws the page and its clip: what it says of them is true."""

from __future__ import annotations

import importlib

import cv2
import numpy as np
import pytest
from PIL import Image

from heimdall.capture.camera_files import read_camera

page = importlib.import_module("scripts.page")


def found(picture):
    """The page's marker: corners (4, 2) from the top left, clockwise."""
    known = cv2.aruco.getPredefinedDictionary(page.DICTIONARY)
    ways = cv2.aruco.DetectorParameters()
    ways.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    corners, numbers, _ = cv2.aruco.ArucoDetector(known, ways).detectMarkers(picture)
    return next(each[0] for each, n in zip(corners, numbers.ravel(), strict=True) if n == 7)


def test_the_printed_square_is_80_mm_wide():
    with Image.open(page.MEDIA / "page.png") as sheet:
        dots = sheet.info["dpi"][0] / 0.0254
        corners = found(np.asarray(sheet.convert("L")))
        assert np.ptp(corners[:, 0]) / dots == pytest.approx(page.WIDTH_M, rel=0.01)
        assert sheet.size == pytest.approx(np.array(page.PAGE_M) * dots, rel=0.01)


def test_the_way_of_the_camera_is_closed():
    first, last = page.pose(0.0), page.pose(1.0)
    assert last.translation == pytest.approx(first.translation)
    assert last.rotation == pytest.approx(first.rotation)


@pytest.mark.parametrize("number", [0, 45, 90, 130])
def test_the_clip_shows_the_marker_where_the_camera_on_its_way_sees_it(number):
    video = cv2.VideoCapture(str(page.MEDIA / "page.mp4"))
    for _ in range(number):
        video.grab()
    half = page.WIDTH_M / 2
    square = [[-half, half, 0], [half, half, 0], [half, -half, 0], [-half, -half, 0]]
    camera = read_camera(page.MEDIA / "page.camera.toml")
    there = page.pose(number / (page.SECONDS * page.FPS)).to_camera(np.array(square))
    assert found(video.read()[1]) == pytest.approx(camera.pixels(there), abs=1.0)
