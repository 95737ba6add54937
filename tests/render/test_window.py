"""What only a window has: input, resizing, what is on the screen."""

import time

import glfw
import numpy as np
import pytest

from heimdall.errors import DeviceError
from heimdall.render import Close, Key, Pointer, Resize, Scroll, open_surface
from heimdall.render.window import WindowSurface


@pytest.fixture
def window(display):
    try:
        opened = open_surface((320, 180), title="test")
    except DeviceError as error:
        pytest.skip(str(error))
    with opened:
        opened.poll()
        assert isinstance(opened, WindowSurface)
        opened._events.clear()
        yield opened


def test_keys_have_names_and_modifiers(window):
    window._on_key(None, glfw.KEY_SPACE, 0, glfw.PRESS, glfw.MOD_SHIFT)
    window._on_key(None, glfw.KEY_SPACE, 0, glfw.REPEAT, 0)
    window._on_key(None, glfw.KEY_ESCAPE, 0, glfw.RELEASE, 0)
    assert window.poll() == [Key("space", True, frozenset({"shift"})), Key("escape", False)]


def test_the_pointer_is_in_framebuffer_pixels(window):
    window._on_move(window._window, 160, 90)
    window._on_button(None, glfw.MOUSE_BUTTON_LEFT, glfw.PRESS, 0)
    window._on_button(None, glfw.MOUSE_BUTTON_LEFT, glfw.RELEASE, 0)
    points_w, points_h = glfw.get_window_size(window._window)
    x, y = 160 * window.size[0] / points_w, 90 * window.size[1] / points_h
    held = frozenset({"left"})
    assert window.poll() == [Pointer(x, y), Pointer(x, y, held), Pointer(x, y)]


def test_the_framebuffer_follows_the_window(window):
    window._on_resize(None, 200, 100)
    assert window.size == (200, 100)
    assert Resize(200, 100) in window.poll()
    window.framebuffer.clear(1, 0, 0)
    assert window.read().shape == (100, 200, 3)


def test_a_minimised_window_keeps_its_size(window):
    window._on_resize(None, 0, 0)
    assert window.size == (320, 180)
    assert window.poll() == []


def test_events_are_values():
    assert Scroll(0, 1) == Scroll(0, 1)
    assert Close() == Close()


def test_what_present_shows_is_the_framebuffer(window):
    window.framebuffer.clear(0.2, 0.4, 0.6)
    window.finish()
    shown = np.frombuffer(window._screen.read(components=3), np.uint8).reshape(-1, 3)
    assert (np.abs(shown.astype(int) - (51, 102, 153)) <= 1).all()
    window.present()


def settled_size(window, expected):
    """The size once the window system has done what it was asked for."""
    for _ in range(200):
        window.poll()
        if window.size == expected:
            break
        time.sleep(0.02)
    return window.size


def test_full_screen_and_back(window):
    before = window.size
    window.toggle_full_screen()
    mode = glfw.get_video_mode(glfw.get_primary_monitor()).size
    assert settled_size(window, (mode.width, mode.height)) == (mode.width, mode.height)
    window.toggle_full_screen()
    assert settled_size(window, before) == before


def test_a_window_without_focus_holds_no_button(window):
    window._on_move(window._window, 10, 10)
    window._on_button(None, glfw.MOUSE_BUTTON_LEFT, glfw.PRESS, 0)
    window._on_focus(None, 0)
    window._on_focus(None, 1)
    assert [event.buttons for event in window.poll()] == [set(), {"left"}, set()]


def test_the_title_can_change_at_any_time(window):
    window.set_title("30 fps · paused")
    window.set_title("")
