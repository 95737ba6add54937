"""Starts GLFW, and opens a window with the first GL context that it gives."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import warnings
from typing import Any

import glfw
import moderngl

from heimdall.errors import DeviceError
from heimdall.render.binding import bound
from heimdall.render.versions import Version, none_left, wanted

# How contexts are made. GLX, the native way of X, lacks ES with some drivers that have it in EGL.
_WAYS = {"native": glfw.NATIVE_CONTEXT_API, "EGL": glfw.EGL_CONTEXT_API}


def open_window(size: tuple[int, int], title: str) -> tuple[Any, moderngl.Context, list[str]]:
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
            return window, bound(address, version), refused
        except Exception as error:  # moderngl raises bare ones, too
            refused.append(f"{version.name}, {way} context: {error}")
            if window is not None:
                glfw.destroy_window(window)
    glfw.terminate()
    raise none_left(refused)


def address(name: str) -> int | None:
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
