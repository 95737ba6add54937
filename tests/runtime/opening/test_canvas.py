"""What a frame takes is measured, remembered for later starts, or seen as frames are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.app import App
from heimdall.capture import Frame
from heimdall.errors import DeviceError
from heimdall.render import Overlay, Scene, open_surface
from heimdall.runtime.opening import canvas as module
from heimdall.runtime.opening.canvas import FRAMES, Canvas
from heimdall.tracking import World

FRAME = Frame(np.zeros((90, 160, 3), np.uint8), 0, 0)
MS = 1_000_000


class Mine(App):
    """An app that draws nothing."""


class Other(App):
    """Another one."""


@pytest.fixture
def surface():
    try:
        surface = open_surface((160, 90), headless=True)
    except DeviceError as error:
        pytest.skip(str(error))
    with surface:
        yield surface


@pytest.fixture
def canvas(surface, monkeypatch, tmp_path):
    """``canvas(app)``: with a cache of its own, where measuring says 7 ms."""
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    monkeypatch.setattr(module, "measure_render", lambda draw, runs=9: 7 * MS)
    return lambda app=Mine: Canvas(surface, Scene(surface), Overlay(surface), app())


def test_a_guess_is_not_remembered_and_what_was_seen_is(canvas):
    first = canvas()
    first.measure(FRAME, soon=True, guess=True)
    assert (first.lone_render_ns, first.guessed) == (7 * MS, True)
    assert not first.seen([3 * MS] * (FRAMES - 1))
    assert first.seen([90 * MS] * FRAMES + [3 * MS] * FRAMES)
    assert (first.lone_render_ns, first.guessed) == (3 * MS, False)
    second = canvas()
    second.measure(FRAME, soon=True, guess=True)
    assert (second.lone_render_ns, second.guessed) == (3 * MS, False)


def test_what_was_measured_is_remembered_for_this_app_alone(canvas):
    canvas().measure(FRAME, soon=True, guess=False)
    other = canvas(Other)
    other.measure(FRAME, soon=True, guess=True)
    assert other.guessed
    again = canvas()
    again.measure(FRAME, soon=True, guess=True)
    assert not again.guessed


def test_the_scene_knows_the_world_whether_it_was_measured_or_not(canvas):
    class Placed(Mine):
        world = World()

    for _ in range(2):
        made = canvas(Placed)
        made.measure(FRAME, soon=True, guess=False)
        assert made.scene.world is made.app.world is not None


def test_what_must_be_exact_is_measured_again(canvas, monkeypatch):
    canvas().measure(FRAME, soon=True, guess=False)
    monkeypatch.setattr(module, "measure_render", lambda draw, runs=9: 5 * MS)
    exact = canvas()
    exact.measure(FRAME, soon=False, guess=False)
    assert exact.lone_render_ns == 5 * MS


def test_a_file_that_is_damaged_is_measured_again(canvas, tmp_path):
    canvas().measure(FRAME, soon=True, guess=False)
    (path,) = (tmp_path / "renders").iterdir()
    path.write_text("-4")
    again = canvas()
    again.measure(FRAME, soon=True, guess=False)
    assert again.lone_render_ns == 7 * MS


@pytest.mark.parametrize(
    ("picture", "drawn"),
    [
        ((640, 480), (120, 90)),
        ((480, 640), (90, 120)),
        ((1920, 1080), (160, 90)),
        ((1080, 1920), (90, 160)),
        ((3, 1), (160, 54)),
        ((1, 4000), (2, 160)),
    ],
)
def test_one_that_follows_takes_the_shape_of_the_picture(canvas, surface, picture, drawn):
    followed = canvas()
    frame = Frame(np.zeros((picture[1], picture[0], 3), np.uint8), 0, 0)
    followed.fit(frame)
    assert surface.size == (160, 90)  # it does not follow
    followed.follows = True
    for _ in range(2):
        followed.fit(frame)
        assert surface.size == drawn
        surface.framebuffer.clear(1, 0, 0)
        assert surface.read().shape == (drawn[1], drawn[0], 3)
    followed.fit(FRAME)
    assert surface.size == (160, 90)
