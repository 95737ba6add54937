from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from heimdall.errors import ConfigError, ModelError
from heimdall.models import open_pipeline
from heimdall.models.ocr import OCR, SHORTEST, TALL, flat, inked, pieces, turned
from heimdall.models.results import TextRegion

LINES = ("Heimdall watches", "every frame", "at thirty hertz")


def drawn(lines: tuple[str, ...] = LINES) -> np.ndarray:
    picture = np.full((480, 640, 3), 245, np.uint8)
    for index, line in enumerate(lines):
        where = (60, 100 + 120 * index)
        cv2.putText(picture, line, where, cv2.FONT_HERSHEY_DUPLEX, 1.5, (20, 20, 20), 2)
    return picture


def graph(letters: str, classes: int) -> Any:
    """What the reader's file says of itself."""
    outputs = [SimpleNamespace(shape=(1, 40, classes))]
    return SimpleNamespace(name="reader", metadata={"character": letters}, outputs=outputs)


def bound(letters: str = "a\nb", **options: Any) -> OCR:
    pipeline = OCR(**options)
    count = len(letters.split("\n")) + 2  # nothing, and the space
    pipeline.bind([None, None, graph(letters, count)])
    return pipeline


def region(left: float, top: float, right: float, bottom: float) -> TextRegion:
    corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float32)
    return TextRegion(corners, 0.9)


def read(pipeline: OCR, places: list[int], ink: np.ndarray | None = None) -> Any:
    """What is read where each place of a line (8 pixels) likes that letter best."""
    found = np.full((1, len(places), 4), 0.05, np.float32)
    found[0, np.arange(len(places)), places] = 0.8
    line = np.full((TALL, 8 * len(places), 3), 255, np.uint8)
    line[10:30, :] = 0  # inked everywhere: no gaps
    if ink is not None:
        line[:, ~np.repeat(ink, 8)] = 255
    return pipeline.decode(2, {"softmax": found}, (None, False, line))


def test_a_letter_that_lasts_is_one_and_nothing_parts_two() -> None:
    piece = read(bound(), [0, 1, 1, 1, 0, 1, 2, 2, 0])
    assert piece.text == "aab"
    assert piece.scores == pytest.approx((0.8,) * 3)


def test_a_gap_without_ink_is_a_space() -> None:
    ink = np.array([1, 1, 0, 0, 0, 1, 1], bool)
    assert read(bound(), [1, 0, 0, 0, 0, 0, 2], ink).text == "a b"
    assert read(bound(), [1, 0, 0, 0, 0, 0, 2]).text == "ab"


def test_a_space_that_was_read_is_not_doubled() -> None:
    ink = np.array([1, 1, 0, 0, 0, 1, 1], bool)
    assert read(bound(), [1, 0, 0, 3, 0, 0, 2], ink).text == "a b"


def test_scripts_without_spaces_get_none() -> None:
    ink = np.array([1, 1, 0, 0, 0, 1, 1], bool)
    assert read(bound("字\n文"), [1, 0, 0, 0, 0, 0, 2], ink).text == "字文"


def test_a_line_of_no_letters_is_left_out() -> None:
    piece = read(bound(), [0] * 9)
    assert (piece.text, piece.scores) == ("", ())
    image = np.zeros((10, 10, 3), np.uint8)
    assert bound().combine([[[]], [], [piece]], image) == []


def test_an_alphabet_of_another_length_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"reader tells 9 letters apart.*names 4"):
        OCR().bind([None, None, graph("a\nb", 9)])


def test_a_reader_without_alphabet_reads_nothing() -> None:
    with pytest.raises(ModelError, match=r"call bind\(graphs\) first"):
        read(OCR(), [1])


@pytest.mark.parametrize("width", [40, 95, 321])
def test_a_width_that_cannot_be_is_refused(width: int) -> None:
    with pytest.raises(ConfigError, match=f"width {width} of ocr: give a multiple of 8"):
        OCR(width=width)


def slanted(angle: float) -> tuple[np.ndarray, TextRegion]:
    """A line with a red left half, turned clockwise about the picture's middle."""
    image = np.full((300, 300, 3), 255, np.uint8)
    corners = np.array([(50, 130), (250, 130), (250, 170), (50, 170)], np.float32)
    image[130:170, 50:150] = (0, 0, 255)
    turn = cv2.getRotationMatrix2D((149.5, 149.5), -angle, 1)
    there = cv2.warpAffine(image, turn, (300, 300), borderValue=(255, 255, 255))
    return there, TextRegion((corners @ turn[:, :2].T + turn[:, 2]).astype(np.float32), 0.9)


@pytest.mark.parametrize("angle", [0, 20, -35])
def test_a_slanted_line_is_laid_flat(angle: float) -> None:
    line = flat(*slanted(angle))
    assert line.image.shape == (TALL, 240, 3)  # 200 x 40, 48 high
    assert (line.image[4:-4, 4:112, 0] < 60).mean() > 0.98  # red, no blue
    assert (line.image[4:-4, 128:-4] > 200).mean() > 0.98


def test_a_line_that_runs_down_is_read_from_its_side() -> None:
    image = np.full((300, 100, 3), 255, np.uint8)
    image[20:140, 30:60] = (0, 0, 255)  # its upper half
    line = flat(image, region(30, 20, 60, 260))
    assert line.image.shape == (TALL, 384, 3)
    reds = line.image[:, :, 0] < 60
    assert reds[4:-4, 200:380].mean() > 0.95 or reds[4:-4, 4:180].mean() > 0.95


def test_a_line_turned_twice_is_the_same() -> None:
    line = flat(*slanted(20))
    once = turned(line)
    assert (once.image[0, 0] == line.image[-1, -1]).all()
    assert once.corners[0] == pytest.approx(line.corners[2])
    again = turned(once)
    assert (again.image == line.image).all()
    assert (again.corners == line.corners).all()


def printed(*words: tuple[int, int], length: int) -> np.ndarray:
    """A line with ink in these columns."""
    line = np.full((TALL, length, 3), 250, np.uint8)
    for start, end in words:
        line[12:36, start:end] = 20
    return line


def test_columns_with_print_are_inked() -> None:
    ink = inked(printed((10, 30), (60, 90), length=100))
    assert ink[10:30].all()
    assert ink[60:90].all()
    assert ink.sum() == 50
    assert not inked(np.full((TALL, 40, 3), 200, np.uint8)).any()


def test_a_short_line_is_one_piece() -> None:
    assert pieces(printed((5, 200), length=300), 320) == [(0, 300, False)]


def test_a_long_line_is_cut_between_words() -> None:
    line = printed((5, 150), (180, 290), (330, 480), (500, 640), length=650)
    found = pieces(line, 320)
    assert found[0][0] == 0
    assert 290 < found[0][1] < 330
    assert [start for start, _, _ in found[1:]] == [end for _, end, _ in found[:-1]]
    assert found[-1][1] == 650
    assert all(end - start <= 320 for start, end, _ in found)
    assert all(apart for _, _, apart in found[1:])  # words apart, not one that goes on


def test_a_word_longer_than_the_input_is_cut_and_goes_on() -> None:
    found = pieces(printed((0, 700), length=700), 320)
    assert [end - start for start, end, _ in found[:-1]] == [320, 320]
    assert not any(apart for _, _, apart in found)
    assert SHORTEST * 320 <= 320


def test_the_largest_lines_are_read() -> None:
    found = [region(10, 10, 110, 30), region(10, 50, 310, 80), region(400, 10, 600, 40)]
    image = np.full((480, 640, 3), 255, np.uint8)
    tasks = bound(most=2).prepare(1, image, [found], {})
    for task, expected in zip(tasks, (found[1], found[2]), strict=True):
        assert task.context.corners == pytest.approx(expected.corners)


def test_of_a_region_the_lines_in_its_middle_are_read() -> None:
    found = [region(10, 10, 310, 30), region(150, 100, 170, 110), region(140, 130, 200, 150)]
    image = np.full((480, 640, 3), 255, np.uint8)
    tasks = bound(most=2).prepare(1, image, [found], {"region": (60, 5, 260, 205)})
    for task, expected in zip(tasks, (found[1], found[2]), strict=True):
        assert task.context.corners == pytest.approx(expected.corners)


def test_pieces_of_a_line_are_joined_with_what_was_between() -> None:
    pipeline = bound()
    line = flat(np.full((50, 400, 3), 255, np.uint8), region(0, 0, 400, 40))
    first, second = read(pipeline, [1, 0, 1]), read(pipeline, [2])
    parts = [type(first)(line, apart, piece.text, piece.scores)
             for apart, piece in ((False, first), (True, second), (False, second))]  # fmt: skip
    (whole,) = pipeline.combine([[[]], [line], parts], np.zeros((10, 10, 3), np.uint8))
    assert whole.text == "aa bb"
    assert whole.score == pytest.approx(0.8)


def test_a_printed_page_is_read(run) -> None:
    lines = run(open_pipeline("ocr"), drawn())
    assert tuple(line.text for line in lines) == LINES
    assert min(line.score for line in lines) > 0.9


def test_a_page_that_is_upside_down_is_read_from_its_beginning(run) -> None:
    upside_down = np.ascontiguousarray(drawn()[::-1, ::-1])
    lines = run(open_pipeline("ocr"), upside_down)
    assert tuple(line.text for line in lines) == LINES[::-1]
    for line in lines:
        start, end = line.corners[0], line.corners[1]
        assert start[0] > end[0]  # it begins on the right of the picture


def test_a_line_longer_than_the_input_is_read_whole(run) -> None:
    text = "the quick brown fox jumps over the lazy dog and runs"
    picture = np.full((480, 1280, 3), 245, np.uint8)
    cv2.putText(picture, text, (20, 240), cv2.FONT_HERSHEY_DUPLEX, 1.3, (20, 20, 20), 2)
    (line,) = run(open_pipeline("ocr", size=(256, 640)), picture)
    assert line.text.replace(" ", "") == text.replace(" ", "")
    assert line.text.count(" ") >= text.count(" ") - 1  # a space before a j is hardly there


def test_only_what_is_asked_for_is_read(run) -> None:
    (line,) = run(open_pipeline("ocr"), drawn(), region=(0, 170, 640, 260))
    assert line.text == LINES[1]


def test_an_empty_page_says_nothing(run) -> None:
    assert run(open_pipeline("ocr"), np.full((480, 640, 3), 245, np.uint8)) == []
