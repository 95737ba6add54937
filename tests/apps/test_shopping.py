"""How the couch is moved and dressed, without networks: a test hands in the results."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.models.results import Detection, Hand
from heimdall.render import Key, Pointer, Scroll


def pinch(x: float, y: float, closed: bool = True) -> Hand:
    points = np.zeros((21, 3), np.float32)
    points[:, :2] = (x, y)
    points[0, :2] = (x, y + 100)
    points[9, :2] = (x, y + 20)
    points[4, :2] = (x + (4 if closed else 80), y)
    return Hand(points, 0.9, "right")


def test_a_pinch_on_the_couch_drags_it_until_the_fingers_open(play, grey):
    stage = play("shopping")
    x, y = stage.app.at()
    stage.show(grey, hand=[pinch(x, y - 60)])
    assert stage.app.at() == pytest.approx((x, y))  # no jump
    stage.show(grey, hand=[pinch(x - 90, y - 130)])
    stage.show(grey, hand=[pinch(400, 300, closed=False)])
    assert stage.app.at() == pytest.approx((x - 90, y - 70))


def test_a_pinch_elsewhere_moves_nothing(play, grey):
    stage = play("shopping")
    before = stage.app.at()
    stage.show(grey, hand=[pinch(600, 30)])
    assert stage.app.at() == pytest.approx(before)


def test_two_pinches_turn_and_scale_it(play, grey):
    stage = play("shopping")
    x, y = stage.app.at()
    scale, yaw = stage.app.scale, stage.app.yaw
    stage.show(grey, hand=[pinch(x - 50, y - 50), pinch(x + 50, y - 50)])
    stage.show(grey, hand=[pinch(x - 75, y - 60), pinch(x + 75, y - 60)])
    assert stage.app.scale == pytest.approx(1.5 * scale)
    assert stage.app.yaw == pytest.approx(yaw)
    stage.show(grey, hand=[pinch(x - 75, y - 60), pinch(x - 75 + 130, y - 60 - 75)])
    assert stage.app.yaw == pytest.approx(yaw + 30, abs=1)


def test_the_mouse_moves_turns_and_scales_it(play, grey):
    stage = play("shopping")
    stage.show(grey)
    app, scale, yaw = stage.app, stage.app.scale, stage.app.yaw
    app.on_pointer(Pointer(300, 200, frozenset({"left"})), stage.scene)
    assert app.at() == pytest.approx((300, 200))
    app.on_pointer(Pointer(364, 200, frozenset({"right"})), stage.scene)
    assert (app.yaw, app.scale) == pytest.approx((yaw + 18, scale))
    app.on_scroll(Scroll(0, 2))
    assert app.scale == pytest.approx(scale * 1.06**2)
    for _ in range(100):
        app.on_key(Key("up", True))
    assert app.scale == 0.9


def test_keys_choose_a_fabric_and_the_card_names_the_one_on_the_couch(play, grey):
    stage = play("shopping")
    stage.requests()
    stage.app.on_key(Key("3", True))
    stage.app.on_key(Key("9", True))
    ((dnn, options),) = stage.requests()
    assert (dnn, options["style"]) == ("style", 12)
    assert (stage.app.wanted, stage.app.shown) == (2, 0)  # the paint is not dry yet


def test_the_couch_comes_to_stand_on_the_table_that_fills_the_view(play, grey):
    stage = play("shopping")
    table = Detection("dining table", 0.5, (0, 240, 640, 480))
    for _ in range(20):
        stage.show(grey, detect=[table])
    assert stage.app.at()[1] == pytest.approx(480 * (0.5 + 0.65 * 0.5), abs=4)
    stage.app.put(np.array((100.0, 100.0)))
    stage.show(grey, detect=[table])
    assert stage.app.at() == pytest.approx((100, 100))
