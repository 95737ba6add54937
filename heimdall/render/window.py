"""A surface in a window, by GLFW."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import glfw

from heimdall.render.events import Close, Dropped, InputEvent, Key, Pointer, Resize, Scroll
from heimdall.render.glfw_context import address, open_window
from heimdall.render.surface import Surface
from heimdall.render.xlib import outlive_display
from heimdall.render.xshm import SharedScreen

log = logging.getLogger(__name__)

_NAMES = {
    getattr(glfw, f"KEY_{name.upper()}"): name
    for name in (
        "space escape enter tab backspace insert delete left right up down home end page_up "
        "page_down " + " ".join(f"f{number}" for number in range(1, 13))
    ).split()
}
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


class WindowSurface(Surface):
    """A resizable window: ``finish`` copies the framebuffer to its back buffer, ``present`` swaps
    without waiting for vsync. Software GL's goes through memory shared with the X server."""

    _shared: SharedScreen | None = None  # what shows the frames instead of GL
    _staged = True  # the last frame is there

    def __init__(self, size: tuple[int, int], title: str):
        self._window: Any
        self._window, ctx, self.refused = open_window(size, title)
        glfw.swap_interval(0)
        self._events: list[InputEvent] = []
        self._pointer = (0.0, 0.0)
        self._buttons: frozenset[str] = frozenset()
        self._place: tuple[int, int, int, int] | None = None  # while it fills the screen
        self._screen = ctx.detect_framebuffer(0)
        self.scale = max(glfw.get_window_content_scale(self._window)[0], 1.0)
        self._start(ctx, glfw.get_framebuffer_size(self._window), address)
        self._shared = _shared_screen(self._window) if self.software else None
        self._share(self.size)
        self._listen()
        self._lost = False
        outlive_display(self._on_lost)

    def make_current(self) -> None:
        if not self._lost:
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
        room = self._shared.room()
        if room is not None:
            self.pixels.read_for_x(self.framebuffer, room)

    def present(self) -> None:
        if self._lost:
            return
        if self._shared is None:
            glfw.swap_buffers(self._window)
            return
        self.stage()
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
            glfw.destroy_window(self._window)
            self._window = None
            glfw.terminate()

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
        self._resize((w, h))
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
