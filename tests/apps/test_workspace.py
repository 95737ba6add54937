"""The workspace app: select by pointing, search by pinching, keep notes."""

from __future__ import annotations

import json
import time

import cv2
import numpy as np
import pytest

from heimdall.models.results import Hand, TextLine, TextRegion
from heimdall.render import Pointer

DESK = 20  # a frame of desk.mp4 and where a line of its page is
LINE = TextRegion(np.array([(165, 310), (470, 310), (470, 330), (165, 330)], np.float32), 0.95)
READ = [
    TextLine(LINE.corners, 0.9, text)
    for text in ("be interrupted A networkof 6o ms that is", "handed over whole delays the frame")
]
OTHER = TextRegion(np.array([(190, 280), (300, 280), (300, 296), (190, 296)], np.float32), 0.9)


@pytest.fixture
def stage(play, tmp_path):
    def prepare(app):
        app.notes = tmp_path / "notes"

    return play("workspace", prepare)


def hand(tip: tuple[float, float], pinched: bool) -> Hand:
    """An upright hand whose index fingertip is at ``tip``: pointing, or pinching."""
    points = np.zeros((21, 3), np.float32)
    points[:, :2] = (0, 60)  # folded fingers
    points[0, :2], points[9, :2], points[8, :2] = (0, 120), (0, 70), (0, 0)
    points[4, :2] = (4, 4) if pinched else (60, 60)
    points[:, :2] += tip
    return Hand(points, 0.9, "right")


def answered(stage, image) -> None:
    """Draw frames until the search thread has answered."""
    until = time.monotonic() + 60
    while not stage.app.found and time.monotonic() < until:
        time.sleep(0.02)
    stage.show(image)


def test_the_finger_selects_the_nearest_text_within_reach(stage, grey):
    stage.show(grey, text=[OTHER, LINE], hand=[hand((300, 335), pinched=False)])
    stage.show(grey)
    assert stage.app.selected.corners == pytest.approx(LINE.corners, abs=1)
    stage.show(grey, hand=[hand((600, 60), pinched=False)])
    stage.show(grey)
    assert stage.app.selected is None


def test_a_hand_that_does_not_point_leaves_the_selection(stage, grey):
    stage.show(grey, text=[LINE], hand=[hand((300, 335), pinched=False)])
    fist = hand((600, 60), pinched=False)
    fist.points[12] = fist.points[8]  # the middle finger is out as well
    stage.show(grey, hand=[fist])
    assert stage.app.selected is not None


def test_a_pinch_opens_the_document_whose_page_this_is(stage, clip):
    desk = clip("desk.mp4", DESK)
    stage.show(desk, text=[OTHER, LINE], hand=[hand((300, 335), pinched=False)])
    before = stage.show(desk)
    stage.show(desk, hand=[hand((300, 325), pinched=True)])
    ((dnn, options),) = stage.requests()
    assert dnn == "read"
    left, top, right, bottom = options["region"]
    assert left <= 165  # all of the line
    assert right >= 470
    assert top < 280 < 330 < bottom  # and the one above
    stage.show(desk, read=READ)
    assert stage.app.message.startswith("be interrupted")
    answered(stage, desk)
    (opened,) = stage.app.opened
    assert opened.document.path.name == "one-gpu.md"
    after = stage.show(desk)
    beside = after[60:260, 500:600].astype(int)
    assert np.abs(beside - before[60:260, 500:600]).mean() > 30
    assert np.median(beside) > 240  # paper


def test_what_cannot_be_read_is_found_by_its_looks(stage, clip):
    desk = clip("desk.mp4", DESK)
    stage.show(desk, text=[LINE], hand=[hand((300, 335), pinched=False)])
    stage.show(desk)
    stage.app.search()
    stage.show(desk, read=[])
    answered(stage, desk)
    assert [opened.document.path.name for opened in stage.app.opened] == ["one-gpu.md"]


def test_what_no_document_shows_opens_nothing_and_says_so(stage, grey):
    stage.show(grey, text=[LINE], hand=[hand((300, 335), pinched=False)])
    stage.show(grey)
    stage.app.search()
    stage.show(grey, read=[TextLine(LINE.corners, 0.9, "a line of another page altogether")])
    answered(stage, grey)
    assert stage.app.opened == []
    assert "no document" in stage.app.message


def test_a_note_tells_what_was_read(stage, clip):
    desk = clip("desk.mp4", DESK)
    stage.show(desk, text=[LINE], hand=[hand((300, 335), pinched=False)])
    stage.show(desk)
    stage.app.search()
    stage.show(desk, read=READ)
    stage.app.keep_note()
    (about,) = stage.app.notes.glob("*.json")
    assert json.loads(about.read_text())["read"] == [line.text for line in READ]


def test_the_right_button_keeps_the_selected_text_as_a_note(stage, clip):
    desk = clip("desk.mp4", DESK)
    stage.show(desk, text=[LINE])
    stage.app.on_pointer(Pointer(300, 320), stage.scene)
    stage.show(desk)
    stage.app.on_pointer(Pointer(300, 320, frozenset({"right"})), stage.scene)
    (about,) = stage.app.notes.glob("*.json")
    note = json.loads(about.read_text())
    picture = cv2.imread(str(about.with_name(note["picture"])))
    assert picture.shape[:2] == (28, 313)  # the line and four pixels around it
    assert np.array(note["corners"]) == pytest.approx(LINE.corners, abs=1)


def test_the_script_selects_and_searches_without_a_hand(stage, clip):
    desk = clip("desk.mp4", DESK)
    stage.show(desk, text=[OTHER, LINE], hand=[])
    script = stage.app.demo_events()
    next(script)
    next(script)
    stage.show(desk)
    assert stage.app.selected is not None
    next(script)
    stage.show(desk, read=READ)
    answered(stage, desk)
    assert [opened.document.path.name for opened in stage.app.opened] == ["one-gpu.md"]
