"""A surface in a window, by GLFW."""

from __future__ import annotations

import ctypes
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import glfw
import moderngl

from heimdall.errors import DeviceError
from heimdall.render.binding import bound
from heimdall.render.events import (
    KEYS,
    Close,
    Dropped,
    InputEvent,
    Key,
    Pointer,
    Resize,
    Scroll,
)
from heimdall.render.surface import Surface
from heimdall.render.versions import Version, none_left, wanted
from heimdall.render.xshm import SharedScreen
from heimdall.vocabulary.driver_priority import DriverPriority

log = logging.getLogger(__name__)

_NAMES = {getattr(glfw, f"KEY_{name.upper()}"): name for name in KEYS}
_BUTTONS = {
    glfw.MOUSE_BUTTON_LEFT: "left",
    glfw.MOUSE_BUTTON_RIGHT: "right",
    glfw.MOUSE_BUTTON_MIDDLE: "middle",
}
_MODS = {
    glfw.MOD_SHIFT: "shift",
    glfw.MOD_CONTROL: "control",
    glfw.MOD_ALT: "alt",
    glfw.MOD_SUPER: "super",
}
# How contexts are made. GLX, the native way of X, lacks ES with some drivers that have it in EGL.
_WAYS = {"native": glfw.NATIVE_CONTEXT_API, "EGL": glfw.EGL_CONTEXT_API}
_OnError = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_OnExit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_kept: list[Any] = []  # for Xlib, which may call them as long as the process lives


class WindowSurface(Surface):
    """A resizable window: ``finish`` copies the framebuffer to its back buffer, ``present`` swaps
    without waiting for vsync. Software GL's goes through memory shared with the X server."""

    _shared: SharedScreen | None = None  # what shows the frames instead of GL
    _staged = True  # the last frame is there
    driver_priority = DriverPriority(why="a window's context is GLFW's, which asks for none")

    def __init__(self, size: tuple[int, int], title: str):
        self._window: Any
        self._window, ctx, self.refused = _open_window(size, title)
        glfw.swap_interval(0)
        self._events: list[InputEvent] = []
        self._pointer = (0.0, 0.0)
        self._buttons: frozenset[str] = frozenset()
        self._place: tuple[int, int, int, int] | None = None  # while it fills the screen
        self._screen = ctx.detect_framebuffer(0)
        self.scale = max(glfw.get_window_content_scale(self._window)[0], 1.0)
        self._start(ctx, glfw.get_framebuffer_size(self._window), _address)
        self._shared = _shared_screen(self._window) if self.software else None
        self._share(self.size)
        self._listen()
        self._lost = False
        _outlive_display(self._on_lost)

    def make_current(self) -> None:
        if not (self._lost or self.hangs):
            glfw.make_context_current(self._window)

    def finish(self) -> None:
        if self._shared is None and not self._lost:
            self.ctx.copy_framebuffer(self._screen, self.framebuffer)
            self.framebuffer.use()
        self.wait()
        self._staged = False

    @property
    def shares(self) -> bool:
        """Whether frames go to an X server through shared memory."""
        return self._shared is not None

    def stage(self) -> None:
        if self._shared is None or self._staged or self._lost:
            return
        self._staged = True
        try:
            room = self._shared.room()
        except OSError as error:
            log.warning("the window's frames are copied by GL from now on: %s", error)
            self._share_no_more()
            self.finish()
            return
        if room is not None:
            self.pixels.read_for_x(self.framebuffer, room)

    def present(self) -> None:
        if self._lost:
            return
        self.stage()
        if self._shared is None:
            glfw.swap_buffers(self._window)
        else:
            self._shared.show()

    def _share(self, size: tuple[int, int]) -> None:
        """Have shared memory for pictures of this size, where it is used."""
        if self._shared is None:
            return
        self._staged = True
        try:
            self._shared.resize(size)
        except OSError as error:
            log.info("frames are copied by GL: %s", error)
            self._share_no_more()

    def _share_no_more(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def poll(self) -> list[InputEvent]:
        if not self._lost:
            glfw.poll_events()
        if self._lost:
            return [Close("the display has gone away")]
        events, self._events = self._events, []
        return events

    def set_title(self, title: str) -> None:
        if not self._lost:
            glfw.set_window_title(self._window, title)

    def toggle_full_screen(self) -> None:
        if self._lost:
            return
        if self._place is not None:
            no_monitor: Any = None
            glfw.set_window_monitor(self._window, no_monitor, *self._place, glfw.DONT_CARE)
            self._place = None
            return
        place = (*glfw.get_window_pos(self._window), *glfw.get_window_size(self._window))
        monitor = _monitor_under(place)
        if monitor is None:
            return
        self._place = place
        mode = glfw.get_video_mode(monitor)
        size, rate = mode.size, mode.refresh_rate
        glfw.set_window_monitor(self._window, monitor, 0, 0, size.width, size.height, rate)

    def close(self) -> None:
        if self._window is not None:
            if self._shared is not None:
                self._shared.close()
            if not self.hangs:
                glfw.destroy_window(self._window)
                glfw.terminate()
            self._window = None

    def _listen(self) -> None:
        glfw.set_key_callback(self._window, self._on_key)
        glfw.set_cursor_pos_callback(self._window, self._on_move)
        glfw.set_mouse_button_callback(self._window, self._on_button)
        glfw.set_scroll_callback(
            self._window, lambda _, dx, dy: self._events.append(Scroll(dx, dy))
        )
        glfw.set_framebuffer_size_callback(self._window, self._on_resize)
        glfw.set_window_close_callback(self._window, lambda _: self._events.append(Close()))
        glfw.set_window_focus_callback(self._window, self._on_focus)
        glfw.set_window_content_scale_callback(self._window, self._on_scale)
        glfw.set_drop_callback(self._window, self._on_drop)  # type: ignore[arg-type]

    def _on_key(self, _: object, key: int, scancode: int, action: int, mods: int) -> None:
        name = _NAMES.get(key) or glfw.get_key_name(key, scancode)
        if name and action != glfw.REPEAT:
            held = frozenset(word for bit, word in _MODS.items() if mods & bit)
            self._events.append(Key(name.lower(), action == glfw.PRESS, held))

    def _on_move(self, window: Any, x: float, y: float) -> None:
        # GLFW counts window points; the framebuffer has more pixels on dense displays.
        points_w, points_h = glfw.get_window_size(window)
        w, h = self.size
        self._pointer = (x * w / max(points_w, 1), y * h / max(points_h, 1))
        self._events.append(Pointer(*self._pointer, self._buttons))

    def _on_button(self, _: object, button: int, action: int, mods: int) -> None:
        name = _BUTTONS.get(button)
        if name is None:
            return
        pressed = action == glfw.PRESS
        self._buttons = self._buttons | {name} if pressed else self._buttons - {name}
        self._events.append(Pointer(*self._pointer, self._buttons))

    def _on_drop(self, _: object, paths: Any) -> None:
        self._events.extend(Dropped(path) for path in paths[:1])

    def _on_focus(self, _: object, focused: int) -> None:
        """Without the focus no event tells when a button is released."""
        if not focused and self._buttons:
            self._buttons = frozenset()
            self._events.append(Pointer(*self._pointer))

    def _on_scale(self, _: object, x: float, y: float) -> None:
        """The window has moved to a display of another density."""
        self.scale = max(x, 1.0)

    def _on_lost(self) -> None:
        """The display has gone. What is drawn can still be read, and recorded."""
        self._lost = True

    def _on_resize(self, _: object, w: int, h: int) -> None:
        if w < 1 or h < 1 or (w, h) == self.size:  # minimised: keep the last size
            return
        self.resize((w, h))
        self._share((w, h))
        self._screen = self.ctx.detect_framebuffer(0)
        self._events.append(Resize(w, h))


def _shared_screen(window: Any) -> SharedScreen | None:
    """Where the window is an X server's on this machine."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GLFW's, of a window that is not X11's
            return SharedScreen(glfw.get_x11_window(window) or 0)
    except (AttributeError, OSError) as error:
        log.info("frames are copied by GL: %s", error)
        return None


def _monitor_under(place: tuple[int, int, int, int]) -> Any:
    """The monitor that shows the middle of a window (left, top, width, height)."""
    x, y = place[0] + place[2] // 2, place[1] + place[3] // 2
    for monitor in glfw.get_monitors():
        left, top = glfw.get_monitor_pos(monitor)
        size = glfw.get_video_mode(monitor).size
        if left <= x < left + size.width and top <= y < top + size.height:
            return monitor
    return glfw.get_primary_monitor()


def _open_window(size: tuple[int, int], title: str) -> tuple[Any, moderngl.Context, list[str]]:
    """GLFW's window, its context, current, and what was refused before. Raises DeviceError
    without a display, or where no version of GL can be had; GLFW is ended then."""
    versions = wanted()
    _start_glfw()
    refused: list[str] = []
    for version, way in itertools.product(versions, _WAYS):
        window = None
        try:
            window = _create(size, title, version, _WAYS[way])
            glfw.make_context_current(window)
            return window, bound(_address, version), refused
        except Exception as error:  # moderngl raises bare ones, too
            refused.append(f"{version.name}, {way} context: {error}")
            if window is not None:
                glfw.destroy_window(window)
    glfw.terminate()
    raise none_left(refused)


def _address(name: str) -> int | None:
    """Where the current context has a GL function."""
    return ctypes.cast(glfw.get_proc_address(name), ctypes.c_void_p).value


def _start_glfw() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if glfw.init():
            return
        reason = glfw.get_error()[1]
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        raise DeviceError("no display (DISPLAY is not set): use headless=True")
    raise DeviceError(f"no display: GLFW could not start ({_text(reason)}): use headless=True")


def _create(size: tuple[int, int], title: str, version: Version, way: int) -> Any:
    glfw.default_window_hints()
    for hint, value in (
        (glfw.CLIENT_API, glfw.OPENGL_ES_API if version.es else glfw.OPENGL_API),
        (glfw.CONTEXT_CREATION_API, way),
        (glfw.CONTEXT_VERSION_MAJOR, version.major),
        (glfw.CONTEXT_VERSION_MINOR, version.minor),
        (glfw.DEPTH_BITS, 0),  # depth belongs to the framebuffer that is drawn to
    ):
        glfw.window_hint(hint, value)
    if not version.es:
        glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
        glfw.window_hint(glfw.OPENGL_FORWARD_COMPAT, True)  # macOS gives a core profile only so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        window = glfw.create_window(*size, title, None, None)
        reason = glfw.get_error()[1]
    if not window:
        raise DeviceError(_text(reason))
    return window


def _text(reason: bytes | str | None) -> str:
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason or "?")


def _outlive_display(tell: Callable[[], None]) -> None:
    """Have ``tell`` called when GLFW's X server is gone, in the midst of whatever call finds that;
    calls for that display do nothing from then on, and the process goes on. Not where there is no
    X, or an Xlib before 1.7, which knows no other end than the process's."""
    try:
        display = glfw.get_x11_display()
        xlib = ctypes.CDLL("libX11.so.6")
        set_exit, set_error = xlib.XSetIOErrorExitHandler, xlib.XSetIOErrorHandler
    except (OSError, AttributeError):  # GLFW has no X, this system has none, or an old one
        return
    if not display:
        return
    set_error.restype, set_error.argtypes = ctypes.c_void_p, [_OnError]
    set_exit.restype, set_exit.argtypes = None, [ctypes.c_void_p, _OnExit, ctypes.c_void_p]

    def on_error(broken: int) -> int:
        """Xlib's own ends the process, whatever is to be done instead of that."""
        return 0 if broken == display else before(broken)

    error, end = _OnError(on_error), _OnExit(lambda *_: tell())
    before = _OnError(set_error(error))
    set_exit(display, end, None)
    _kept.extend((error, end, before))
