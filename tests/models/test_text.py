from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.models import open_pipeline
from heimdall.models.text import PPOCR, clockwise

LINES = ("Heimdall watches", "every frame", "at thirty hertz")


@pytest.fixture(scope="module")
def page() -> np.ndarray:
    picture = np.full((480, 640, 3), 245, np.uint8)
    for index, line in enumerate(LINES):
        where = (60, 100 + 120 * index)
        cv2.putText(picture, line, where, cv2.FONT_HERSHEY_SIMPLEX, 1.5, (20, 20, 20), 3)
    return picture


def _covers_ink(page: np.ndarray, corners: np.ndarray, rows: slice) -> bool:
    ink = np.argwhere(page[rows, :, 0] < 128)[:, ::-1] + (0, rows.start)
    low, high = corners.min(axis=0), corners.max(axis=0)
    return bool((ink >= low - 2).all() and (ink <= high + 2).all())


def test_every_line_of_a_page_is_one_region_around_its_ink(run, page) -> None:
    regions = run(open_pipeline("ppocr"), page)
    assert len(regions) == len(LINES)
    for index, region in enumerate(regions):
        rows = slice(40 + 120 * index, 130 + 120 * index)
        assert region.score > 0.8
        assert _covers_ink(page, region.corners, rows)


def test_a_turned_line_gives_a_turned_region(run, page) -> None:
    turn = cv2.getRotationMatrix2D((320, 240), 20, 1)
    tilted = cv2.warpAffine(page, turn, (640, 480), borderValue=(245, 245, 245))
    regions = run(open_pipeline("ppocr"), tilted)
    assert len(regions) == len(LINES)
    for region in regions:
        along = region.corners[1] - region.corners[0]
        assert np.degrees(np.arctan2(-along[1], along[0])) == pytest.approx(20, abs=4)


def test_a_hand_made_blob_is_grown_by_its_margin() -> None:
    pipeline = PPOCR(size=(128, 128))
    ink = np.zeros((1, 1, 128, 128), np.float32)
    ink[0, 0, 20:31, 30:71] = 0.9  # 40 x 10 between pixel centres
    context = pipeline.prepare(0, np.zeros((256, 256, 3), np.uint8), [], {})[0].context
    (region,) = pipeline.decode(0, {"sigmoid_0.tmp_0": ink}, context)
    margin = 40 * 10 * 1.6 / 100
    expected = [(30 - margin, 20 - margin), (70 + margin, 20 - margin)]
    assert region.corners[:2] == pytest.approx(2 * np.array(expected), abs=0.1)
    assert region.score == pytest.approx(0.9)


def test_a_region_is_looked_at_closer_and_led_back_to_the_frame() -> None:
    pipeline = PPOCR(size=(128, 128))
    ink = np.zeros((1, 1, 128, 128), np.float32)
    ink[0, 0, 20:31, 30:71] = 0.9
    image = np.zeros((256, 256, 3), np.uint8)
    (task,) = pipeline.prepare(0, image, [], {"region": (100, 50, 164, 114)})  # 64 pixels in 128
    (region,) = pipeline.decode(0, {"sigmoid_0.tmp_0": ink}, task.context)
    margin = 40 * 10 * 1.6 / 100
    expected = np.array([(30 - margin, 20 - margin), (70 + margin, 20 - margin)]) / 2 + (100, 50)
    assert region.corners[:2] == pytest.approx(expected, abs=0.1)


def test_a_line_that_fills_its_region_is_still_a_line(run, page) -> None:
    (region,) = run(open_pipeline("ppocr"), page, region=(40, 180, 420, 260))
    assert _covers_ink(page, region.corners, slice(160, 250))


def test_specks_are_no_text() -> None:
    pipeline = PPOCR(size=(64, 128))
    ink = np.zeros((1, 1, 64, 128), np.float32)
    ink[0, 0, ::8, ::8] = 0.9
    context = pipeline.prepare(0, np.zeros((128, 256, 3), np.uint8), [], {})[0].context
    assert pipeline.decode(0, {"sigmoid_0.tmp_0": ink}, context) == []


def test_a_dark_object_that_fills_the_picture_is_no_text() -> None:
    pipeline = PPOCR(size=(64, 128))
    ink = np.zeros((1, 1, 64, 128), np.float32)
    ink[0, 0, 10:50, 30:100] = 0.99
    context = pipeline.prepare(0, np.zeros((128, 256, 3), np.uint8), [], {})[0].context
    assert pipeline.decode(0, {"sigmoid_0.tmp_0": ink}, context) == []


def test_corners_start_at_the_top_left_and_go_clockwise() -> None:
    square = np.array([(10, 0), (0, 5), (0, 0), (10, 5)], np.float32)
    assert clockwise(square).tolist() == [[0, 0], [10, 0], [10, 5], [0, 5]]


def test_an_empty_page_holds_no_text(run) -> None:
    assert run(open_pipeline("ppocr"), np.full((480, 640, 3), 245, np.uint8)) == []
