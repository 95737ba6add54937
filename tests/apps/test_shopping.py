"""How furniture is chosen, placed and dressed, without networks: a test hands in the results."""

from __future__ import annotations

import numpy as np
import pytest

from apps.content.furniture import CATALOGUE, FABRICS, FLOOR_M
from apps.content.orders import BY_KEY, BY_WORD, COLOURS, ORDERS
from heimdall.capture.camera_files import known_camera
from heimdall.graph.graph import load_graph
from heimdall.models.classify import class_names
from heimdall.models.keywords import Keywords
from heimdall.models.results import Detection, Hand, Label
from heimdall.render import Key, Pointer, Scroll
from heimdall.render.content import reading
from heimdall.system import paths


def pinch(x: float, y: float, closed: bool = True) -> Hand:
    points = np.zeros((21, 3), np.float32)
    points[:, :2] = (x, y)
    points[0, :2] = (x, y + 100)
    points[9, :2] = (x, y + 20)
    points[4, :2] = (x + (4 if closed else 80), y)
    return Hand(points, 0.9, "right")


def couch_at(stage) -> np.ndarray:
    """Where the first piece stands in the picture."""
    return stage.app.room.at(stage.app.room.pieces[0])


def press(stage, keys: str) -> None:
    for name in keys:
        stage.app.on_key(Key(name, True))
        stage.app.on_key(Key(name, False))


def test_a_pinch_on_the_couch_drags_it_until_the_fingers_open(play, grey):
    stage = play("shopping")
    x, y = couch_at(stage)
    stage.show(grey, hand=[pinch(x, y - 60)])
    assert couch_at(stage) == pytest.approx((x, y))  # no jump
    stage.show(grey, hand=[pinch(x - 90, y - 130)])
    stage.show(grey, hand=[pinch(400, 300, closed=False)])
    assert couch_at(stage) == pytest.approx((x - 90, y - 70))


def test_a_pinch_elsewhere_moves_nothing(play, grey):
    stage = play("shopping")
    before = couch_at(stage)
    stage.show(grey, hand=[pinch(600, 30)])
    assert couch_at(stage) == pytest.approx(before)


def test_two_pinches_turn_and_scale_it(play, grey):
    stage = play("shopping")
    x, y = couch_at(stage)
    scale, yaw = stage.app.room.scale, stage.app.room.chosen.yaw
    stage.show(grey, hand=[pinch(x - 50, y - 50), pinch(x + 50, y - 50)])
    stage.show(grey, hand=[pinch(x - 75, y - 60), pinch(x + 75, y - 60)])
    assert stage.app.room.scale == pytest.approx(1.5 * scale)
    assert stage.app.room.chosen.yaw == pytest.approx(yaw)
    stage.show(grey, hand=[pinch(x - 75, y - 60), pinch(x - 75 + 130, y - 60 - 75)])
    assert stage.app.room.chosen.yaw == pytest.approx(yaw + 30, abs=1)


def test_the_mouse_moves_turns_and_scales_it(play, grey):
    stage = play("shopping")
    stage.show(grey)
    app, scale, yaw = stage.app, stage.app.room.scale, stage.app.room.chosen.yaw
    app.on_pointer(Pointer(300, 200, frozenset({"left"})), stage.scene)
    assert couch_at(stage) == pytest.approx((300, 200))
    app.on_pointer(Pointer(364, 200, frozenset({"right"})), stage.scene)
    assert (app.room.chosen.yaw, app.room.scale) == pytest.approx((yaw + 18, scale))
    app.on_scroll(Scroll(0, 2))
    assert app.room.scale == pytest.approx(scale * 1.06**2)
    for _ in range(100):
        app.on_key(Key("up", True))
    assert app.room.scale == 0.9


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
    assert couch_at(stage)[1] == pytest.approx(480 * (0.5 + 0.65 * 0.5), abs=4)
    stage.app.room.put(np.array((100.0, 100.0)))
    stage.show(grey, detect=[table])
    assert couch_at(stage) == pytest.approx((100, 100))


@pytest.mark.parametrize("article", CATALOGUE, ids=lambda article: article.file)
def test_a_card_says_how_large_the_model_is(article):
    model = reading.read(paths.ASSETS / "content" / article.file)
    assert article.size == pytest.approx(model.size, abs=0.001)
    assert ("fabric" in [each.name for each in model.materials]) == article.upholstered
    assert len(article.cards()) == (4 if article.upholstered else 1)


def test_n_brings_every_piece_beside_the_couch_and_x_takes_them_away(play, grey):
    stage = play("shopping")
    before = stage.show(grey).astype(int)
    room = stage.app.room
    for count, article in enumerate(CATALOGUE[1:], 2):
        press(stage, "n")
        shown = stage.show(grey).astype(int)
        assert (len(room.pieces), room.chosen.article.file) == (count, article.file)
        x, y = room.at(room.chosen)
        assert 0 < x < 640
        assert 240 < y < 480
        assert (np.abs(shown - before).max(axis=2) > 20).mean() > 0.002
        before = shown
    press(stage, "n")  # round to the couch, which stands there
    assert (len(room.pieces), room.chosen) == (5, room.pieces[0])
    press(stage, "nxxxxx")
    assert len(room.pieces) == 1


def test_words_do_what_keys_do(play, grey):
    stage = play("shopping")
    stage.show(grey)
    room = stage.app.room
    scale, yaw = room.scale, room.chosen.yaw

    def say(word):
        stage.show(grey, words=[Label(word, 0.9)])

    say("bigger")
    say("left")
    assert (room.scale, room.chosen.yaw) == pytest.approx((1.1 * scale, yaw - 15))
    stage.requests()
    say("red")
    ((dnn, options),) = stage.requests()
    assert (dnn, options["style"]) == ("style", FABRICS[COLOURS.index("red")][1])
    say("next")
    assert len(room.pieces) == 2
    stage.show(grey, words=[])
    say("away")
    assert len(room.pieces) == 1


def test_every_order_has_its_key_and_words_that_the_network_knows():
    known = class_names(load_graph(Keywords.networks[0].path))
    assert set(BY_WORD) <= set(known)
    assert len(BY_KEY) == len(ORDERS)


def test_pieces_are_as_large_beside_one_another_as_they_are(play, grey):
    stage = play("shopping")
    stage.show(grey)
    press(stage, "n")
    couch, chair = stage.app.room.pieces
    assert stage.app.room.metre(couch) == stage.app.room.metre(chair)
    stage.app.on_scroll(Scroll(0, 3))
    assert stage.app.room.metre(couch) == stage.app.room.metre(chair)


def test_a_press_or_a_pinch_chooses_the_piece_that_it_is_on(play, grey):
    stage = play("shopping")
    stage.show(grey)
    press(stage, "n")
    couch, chair = stage.app.room.pieces
    x, y = stage.app.room.at(couch)
    stage.app.on_pointer(Pointer(x, y - 20, frozenset({"left"})), stage.scene)
    assert stage.app.room.chosen is couch
    x, y = stage.app.room.at(chair)
    stage.show(grey, hand=[pinch(x, y - 20)])
    assert stage.app.room.chosen is chair
    stage.show(grey, hand=[pinch(x - 30, y)])
    assert stage.app.room.at(chair) == pytest.approx((x - 30, y + 20), abs=1)


@pytest.fixture
def on_page(play, clip):
    """The app when it has seen the printed page on a table."""
    stage = play("shopping")
    stage.lens = known_camera(str(paths.ASSETS / "media" / "page.mp4"))
    for number in range(5, 13):
        stage.image = clip("page.mp4", number)
        stage.picture = stage.show(stage.image)
    assert stage.app.world.tracked
    return stage


def test_on_the_page_a_couch_stands_in_the_world_as_a_model_that_t_gives_its_true_size(on_page):
    room = on_page.app.room
    couch = room.chosen
    pose = couch.stood.pose
    above = pose.inverse.to_camera(on_page.app.world.pose.position)[1]
    assert above < FLOOR_M  # a table: it is a model
    assert room.factor() == pytest.approx(0.1)
    assert pose.translation[2] == pytest.approx(0, abs=1e-6)  # on the plane of the page
    # As wide in the picture as 21 cm are there.
    camera = on_page.app.world.camera
    ends = pose.translation + pose.rotation[:, :1].T * [[-0.5], [0.5]] * couch.article.size[0] / 10
    a, b = camera.pixels(camera.pose.to_camera(ends))
    assert np.linalg.norm(b - a) == pytest.approx(
        couch.article.size[0] * room.metre(couch), rel=0.1
    )
    small = room.metre(couch)
    press(on_page, "t")
    assert room.metre(couch) == pytest.approx(10 * small)
    on_page.app.on_scroll(Scroll(0, 5))  # true size is true size
    assert room.metre(couch) == pytest.approx(10 * small)
    press(on_page, "t")
    on_page.app.on_scroll(Scroll(0, 1))
    assert room.metre(couch) == pytest.approx(1.06 * small)


def test_pieces_in_the_world_stand_beside_the_couch_and_move_apart_as_they_grow(on_page):
    room = on_page.app.room
    press(on_page, "nnnn")
    couch, *others = room.pieces
    middle = couch.stood.pose.translation

    def away():
        return [np.linalg.norm(each.stood.pose.translation - middle) for each in others]

    metres = [np.hypot(*each.article.beside) for each in others]
    assert away() == pytest.approx(np.divide(metres, 10))
    assert all(each.stood.pose.translation[2] == pytest.approx(0, abs=1e-6) for each in others)
    press(on_page, "t")
    assert away() == pytest.approx(metres)
    press(on_page, "t")
    on_page.app.on_scroll(Scroll(0, 2))
    assert away() == pytest.approx(np.multiply(metres, 0.1 * 1.06**2))


def test_on_a_floor_it_has_its_true_size(play, clip, monkeypatch):
    stage = play("shopping")
    lower = type(stage.app.room).stand.__globals__  # than the camera of that table is
    monkeypatch.setitem(lower, "FLOOR_M", 0.2)
    stage.lens = known_camera(str(paths.ASSETS / "media" / "page.mp4"))
    for number in range(5, 9):
        stage.show(clip("page.mp4", number))
    assert stage.app.room.factor() == 1


def test_it_stays_on_its_place_when_the_camera_moves(on_page, clip):
    room = on_page.app.room
    on_page.app.room.put(np.array((300.0, 300.0)))
    place, before = room.chosen.stood.pose.translation, room.at(room.chosen)
    assert before == pytest.approx((300, 300), abs=0.5)
    for number in range(13, 40):
        on_page.show(clip("page.mp4", number))
    assert on_page.app.world.tracked
    assert room.chosen.stood.pose.translation == pytest.approx(place)
    assert np.linalg.norm(room.at(room.chosen) - before) > 5


def test_when_the_page_is_lost_it_stands_in_the_picture_and_comes_back(on_page, clip, grey):
    room = on_page.app.room
    place, before = room.chosen.stood, room.at(room.chosen)
    for _ in range(9):  # longer than it takes to fade
        on_page.show(grey)
    assert not room.in_world(room.chosen)
    assert room.at(room.chosen) == pytest.approx(before, abs=12)
    assert room.metre(room.chosen) == pytest.approx(0.42 * 640 / CATALOGUE[0].size[0])
    for number in range(5, 13):
        on_page.show(clip("page.mp4", number))
    assert room.in_world(room.chosen)
    assert room.chosen.stood is place
