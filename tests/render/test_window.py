"""What only a window has: input, resizing, what is on the screen."""

import time

import glfw
import numpy as np
import pytest

from heimdall.errors import DeviceError
from heimdall.render import Close, Dropped, Key, Pointer, Resize, Scroll, open_surface
from heimdall.render.window import WindowSurface


@pytest.fixture
def window(display, kind):
    try:
        opened = open_surface((320, 180), title="test")
    except DeviceError as error:
        pytest.skip(str(error))
    with opened:
        assert isinstance(opened, WindowSurface)
        opened.poll()  # what opening it caused
        yield opened


def handle():
    """GLFW's own, of the window that is open."""
    return glfw.get_current_context()


def happens(kind, *arguments):
    """GLFW tells of something the user did: it calls the function it was given for that."""
    set_callback = getattr(glfw, f"set_{kind}_callback")
    told = set_callback(handle(), None)
    set_callback(handle(), told)
    told(handle(), *arguments)


def test_keys_have_names_and_modifiers(window):
    happens("key", glfw.KEY_SPACE, 0, glfw.PRESS, glfw.MOD_SHIFT)
    happens("key", glfw.KEY_SPACE, 0, glfw.REPEAT, 0)
    happens("key", glfw.KEY_ESCAPE, 0, glfw.RELEASE, 0)
    assert window.poll() == [Key("space", True, frozenset({"shift"})), Key("escape", False)]


def test_the_pointer_is_in_framebuffer_pixels(window):
    happens("cursor_pos", 160, 90)
    happens("mouse_button", glfw.MOUSE_BUTTON_LEFT, glfw.PRESS, 0)
    happens("mouse_button", glfw.MOUSE_BUTTON_LEFT, glfw.RELEASE, 0)
    points_w, points_h = glfw.get_window_size(handle())
    x, y = 160 * window.size[0] / points_w, 90 * window.size[1] / points_h
    held = frozenset({"left"})
    assert window.poll() == [Pointer(x, y), Pointer(x, y, held), Pointer(x, y)]


def test_the_wheel_and_the_windows_cross_are_told(window):
    happens("scroll", 0.0, -1.0)
    happens("window_close")
    assert window.poll() == [Scroll(0, -1), Close()]


def test_of_several_dropped_files_the_first_counts(window, tmp_path):
    window.poll()
    # GLFW's wrapper hands out a function of C's arguments here, so the list is made as C would
    paths = [str(tmp_path / name).encode() for name in ("a.mp4", "b.mp4")]
    happens("drop", len(paths), paths)
    assert window.poll() == [Dropped(str(tmp_path / "a.mp4"))]


def settled_size(window, expected):
    """The size once the window system has done what it was asked for."""
    for _ in range(200):
        if window.size == expected:
            break
        time.sleep(0.02)
        window.poll()
    return window.size


def test_the_framebuffer_follows_the_window(window):
    happens("framebuffer_size", 200, 100)
    assert window.size == (200, 100)
    assert Resize(200, 100) in window.poll()
    window.framebuffer.clear(1, 0, 0)
    assert window.read().shape == (100, 200, 3)


def test_a_minimised_window_keeps_its_size(window):
    happens("framebuffer_size", 0, 0)
    assert window.size == (320, 180)
    assert window.poll() == []


def test_what_present_shows_is_the_framebuffer(window):
    window.framebuffer.clear(0.2, 0.4, 0.6)
    window.finish()
    screen = window.ctx.detect_framebuffer(0)
    shown = np.frombuffer(screen.read(components=4), np.uint8).reshape(-1, 4)[:, :3]
    assert len(shown) == 320 * 180
    assert (np.abs(shown.astype(int) - (51, 102, 153)) <= 1).all()
    window.present()


def test_full_screen_and_back(window):
    before = window.size
    window.toggle_full_screen()
    mode = glfw.get_video_mode(glfw.get_primary_monitor()).size
    assert settled_size(window, (mode.width, mode.height)) == (mode.width, mode.height)
    window.toggle_full_screen()
    assert settled_size(window, before) == before


def test_a_window_without_focus_holds_no_button(window):
    happens("cursor_pos", 10, 10)
    happens("mouse_button", glfw.MOUSE_BUTTON_LEFT, glfw.PRESS, 0)
    happens("window_focus", 0)
    happens("window_focus", 1)
    assert [event.buttons for event in window.poll()] == [set(), {"left"}, set()]


def test_the_title_can_change_at_any_time(window):
    assert glfw.get_window_title(handle()) == "test"
    for title in ("30 fps · paused", ""):
        window.set_title(title)
        assert (glfw.get_window_title(handle()) or "") == title
