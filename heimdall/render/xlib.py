"""An X server that goes away: Xlib would end the process, with everything that is unsaved."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import glfw

_OnError = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_OnExit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_kept: list[Any] = []  # Xlib may call them as long as the process lives


def outlive_display(tell: Callable[[], None]) -> bool:
    """Have ``tell`` called when GLFW's X server is gone, in the midst of whatever call finds that;
    calls for that display do nothing from then on, and the process goes on. False where there is
    no X, or an Xlib before 1.7, which knows no other end than the process's."""
    try:
        display = glfw.get_x11_display()
        xlib = ctypes.CDLL("libX11.so.6")
        set_exit, set_error = xlib.XSetIOErrorExitHandler, xlib.XSetIOErrorHandler
    except (OSError, AttributeError):  # GLFW has no X, this system has none, or an old one
        return False
    if not display:
        return False
    set_error.restype, set_error.argtypes = ctypes.c_void_p, [_OnError]
    set_exit.restype, set_exit.argtypes = None, [ctypes.c_void_p, _OnExit, ctypes.c_void_p]

    def on_error(broken: int) -> int:
        """Xlib's own ends the process, whatever is to be done instead of that."""
        return 0 if broken == display else before(broken)

    error, end = _OnError(on_error), _OnExit(lambda *_: tell())
    before = _OnError(set_error(error))
    set_exit(display, end, None)
    _kept.extend((error, end, before))
    return True
