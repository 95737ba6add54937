"""The emoji app: who wears which head, and what is behind the people."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.models.results import Detection, Mask, Picture

PERSON = np.zeros((48, 64), np.float32)
PERSON[:, 20:44] = 1
RED = np.full((24, 32, 3), (200, 30, 30), np.uint8)


def face(x: float, y: float, size: float = 40.0) -> Detection:
    marks = np.array([(-0.3, -0.15), (0.3, -0.15), (0, 0.1), (-0.2, 0.4), (0.2, 0.4)])
    box = (x - size / 2, y - size * 0.6, x + size / 2, y + size * 0.6)
    return Detection("face", 0.9, box, marks * size + (x, y))


def worn(app) -> dict[int, str]:
    """Head by column of the face."""
    return {round((r.face.box[0] + r.face.box[2]) / 2): r.character for r in app.roles}


def test_every_face_gets_a_head_of_its_own_and_keeps_it(play, grey):
    stage = play("emoji")
    stage.app.cast([face(100, 200), face(300, 200), face(500, 200)])
    before = worn(stage.app)
    assert len(set(before.values())) == 3
    stage.app.cast([face(505, 205), face(108, 200), face(300, 190)])  # listed in another order
    assert worn(stage.app) == {108: before[100], 300: before[300], 505: before[500]}


def test_a_face_that_was_hidden_for_a_moment_gets_its_head_back(play):
    app = play("emoji").app
    app.cast([face(100, 200), face(300, 200)])
    before = worn(app)
    for _ in range(5):
        app.cast([face(300, 200)])
    app.cast([face(300, 200), face(104, 200)])
    assert worn(app)[104] == before[100]


def test_a_head_is_drawn_where_the_face_is_and_covers_it(play, grey):
    picture = play("emoji").show(grey, face=[face(320, 240, 120)])
    assert (np.abs(picture[200:300, 280:360].astype(int) - 128).max(axis=2) > 10).mean() > 0.9
    assert (picture[:60] == 128).all()


def test_the_painting_is_behind_people_only(play, grey):
    stage = play("emoji")
    stage.show(grey, segment=Mask(PERSON))
    picture = stage.show(grey, style=Picture(RED))
    assert (np.abs(picture[:, :150].astype(int) - (200, 30, 30)) < 5).all()
    assert (np.abs(picture[:, 260:380].astype(int) - 128) < 5).all()


def test_the_first_mask_asks_for_a_painting_and_events_for_others(play, grey):
    stage = play("emoji")
    assert stage.requests() == []
    stage.show(grey, segment=Mask(PERSON))
    ((dnn, options),) = stage.requests()
    assert dnn == "style"
    stage.show(grey, segment=Mask(PERSON))
    assert stage.requests() == []
    script = stage.app.demo_events()
    next(script)
    next(script)
    ((_, again),) = stage.requests()
    assert again["style"] != options["style"]


def test_the_painted_room_has_nobody_in_it(play, grey):
    stage = play("emoji")
    image = grey.copy()
    image[:, 200:440] = (0, 0, 255)
    stage.show(image, segment=Mask(PERSON))
    ((_, options),) = stage.requests()
    assert options["picture"].shape == (240, 320, 3)
    assert options["picture"].max() == pytest.approx(128, abs=12)  # no red is left
