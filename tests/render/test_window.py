"""What only a window has: input, resizing, what is on the screen."""

import time

import glfw
import numpy as np
import pytest
from PIL import ImageGrab, features

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


def on_screen(window, expected):
    """The window's part of the screen, RGB (180, 320, 3), once its corner is as expected: the
    server is not waited for."""
    if not features.check("xcb"):
        pytest.skip("Pillow cannot see the screen here")
    left, top = glfw.get_window_pos(handle())
    for _ in range(200):
        screen = ImageGrab.grab((left, top, left + 320, top + 180), xdisplay="").convert("RGB")
        shown = np.asarray(screen).astype(int)
        if (np.abs(shown[0, 0] - expected) <= 1).all():
            break
        time.sleep(0.02)
    return shown


@pytest.fixture(params=["shared memory", "GL"])
def presenting(request, window, monkeypatch):
    """A window, however it shows its frames."""
    if request.param == "GL":
        window.close()
        monkeypatch.setattr("heimdall.render.window.SharedScreen", refused)
        window = open_surface((320, 180), title="test")
    elif not window.shares:
        pytest.skip("no X server to share memory with")
    with window:
        window.poll()
        yield window


def refused(number):
    raise OSError("no memory to share")


def test_what_present_shows_is_the_framebuffer(presenting):
    for red in (0.2, 0.6, 1.0, 0.0, 0.8):  # more than pictures are under way
        presenting.framebuffer.clear(red, 0.4, 0.6)
        presenting.framebuffer.clear(0.0, 1.0, 0.0, viewport=(0, 0, 160, 90))  # GL's lower left
        presenting.finish()
        presenting.stage()
        presenting.present()
        shown = on_screen(presenting, (round(255 * red), 102, 153))
        assert (np.abs(shown[:90] - (round(255 * red), 102, 153)) <= 1).all()
        assert (shown[90:, :160] == (0, 255, 0)).all()
        assert (np.abs(shown[90:, 160:] - (round(255 * red), 102, 153)) <= 1).all()


def test_a_window_whose_pictures_the_server_refuses_goes_on_by_gl(window, caplog):
    if not window.shares:
        pytest.skip("no X server to share memory with")
    for red in (0.2, 0.4, 0.6, 0.8, 1.0):
        if window._shared is not None:
            window._shared._depth = 1  # not the window's
        window.framebuffer.clear(red, 0.4, 0.6)
        window.finish()
        window.stage()
        window.present()
        time.sleep(0.02)
    assert not window.shares
    assert "the X server refuses a picture" in caplog.text
    assert (np.abs(on_screen(window, (255, 102, 153)) - (255, 102, 153)) <= 1).all()


def test_segments_are_given_back_where_not_all_can_be_had(window, monkeypatch):
    if not window.shares:
        pytest.skip("no X server to share memory with")
    made: list[object] = []
    released: list[object] = []

    class Segment:
        def __init__(self, *_):
            if len(made) == 2:
                raise OSError("no shared memory")
            made.append(self)

        def release(self):
            released.append(self)

    monkeypatch.setattr("heimdall.render.xshm._Segment", Segment)
    happens("framebuffer_size", 200, 100)
    assert not window.shares
    assert released == made


def test_frames_that_are_not_read_in_time_are_left_out(presenting):
    for number in range(200):
        presenting.framebuffer.clear(number / 255, 0.4, 0.6)
        presenting.finish()
        presenting.present()
    time.sleep(0.1)
    presenting.framebuffer.clear(1.0, 0.4, 0.6)
    presenting.finish()
    presenting.present()
    assert on_screen(presenting, (255, 102, 153))[90, 160, 0] == 255


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
