"""How moderngl gets at a GL context that it has not made itself, of OpenGL ES too.

moderngl calls a few functions that only desktop GL has. Mesa forgives that; other drivers of
OpenGL ES have no such function, and a call would end the process. Here they are in terms of what
ES 3.0 has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import moderngl

from heimdall.render.egl import KIND, EglContext, Loader
from heimdall.render.versions import Version, is_es

_COLOR_BUFFER_BIT = 0x4000
_DRAW_BUFFER, _DRAW_BUFFER0 = 0x0C01, 0x8825
_DESKTOP_ONLY = ("glPrimitiveRestartIndex",)  # moderngl asks whether it is there

_INT = ctypes.c_int
_POINTER = ctypes.c_void_p


class Binding:
    """What moderngl asks of a context: its functions by name, to be made current, its end."""

    def __init__(self, loader: Loader, version: Version, owner: EglContext | None):
        self._loader, self._owner = loader, owner
        self._stand_ins = dict(_stand_ins(loader)) if version.es else {}
        self._absent = _DESKTOP_ONLY if version.es else ()

    def load_opengl_function(self, name: str) -> int:
        """A function's address, 0 where there is none."""
        if name in self._absent:
            return 0
        if stand_in := self._stand_ins.get(name):
            return ctypes.cast(stand_in, _POINTER).value or 0
        return self._loader(name) or 0

    def __enter__(self) -> None:
        if self._owner is not None:
            self._owner.make_current()

    def __exit__(self) -> None:
        pass

    def release(self) -> None:
        """End the context, if it has an owner for that."""
        if self._owner is not None:
            self._owner.release()


def bound(loader: Loader, version: Version, owner: EglContext | None = None) -> moderngl.Context:
    """moderngl's view of the current context. ``owner``: makes it current again and ends it for
    moderngl; without one it has a window, whose framebuffer is found. Raises Exception where the
    context is older than ``version``, or of the other kind."""
    binding: Any = Binding(loader, version, owner)  # moderngl's hints expect settings here
    ctx = moderngl.create_context(
        require=version.code, standalone=owner is not None, context=binding
    )
    if is_es(ctx) != version.es:
        raise ValueError(f"the driver gave {ctx.info['GL_VERSION']}")
    return ctx


def _stand_ins(loader: Loader) -> Iterator[tuple[str, Any]]:
    """Functions of desktop GL by name, as callbacks for moderngl."""

    def function(name: str, *arguments: Any) -> Any:
        return KIND(None, *arguments)(loader(name))

    clear_depth = function("glClearDepthf", ctypes.c_float)
    depth_range = function("glDepthRangef", ctypes.c_float, ctypes.c_float)
    draw_buffers = function("glDrawBuffers", _INT, _POINTER)
    colour_mask = function("glColorMask", *[ctypes.c_ubyte] * 4)
    integers = function("glGetIntegerv", ctypes.c_uint, _POINTER)
    blit = function("glBlitFramebuffer", *[_INT] * 8, ctypes.c_uint, ctypes.c_uint)

    def draw_buffer(buffer: int) -> None:
        draw_buffers(1, ctypes.byref(ctypes.c_uint(buffer)))

    def colour_mask_of(_: int, *channels: int) -> None:
        colour_mask(*channels)  # one attachment is all that is ever drawn to

    def integers_of(name: int, values: int) -> None:
        integers(_DRAW_BUFFER0 if name == _DRAW_BUFFER else name, values)

    def blit_colours(*arguments: int) -> None:
        # A copy of depth must be between buffers of one format, and no caller asks for it.
        blit(*arguments[:8], arguments[8] & _COLOR_BUFFER_BIT, arguments[9])

    def clamp_read_colours(*_: int) -> None:
        """Bytes are what is read: they are within their range."""

    stand_ins: tuple[tuple[Any, ...], ...] = (
        ("glClearDepth", clear_depth, ctypes.c_double),
        ("glDepthRange", depth_range, ctypes.c_double, ctypes.c_double),
        ("glDrawBuffer", draw_buffer, ctypes.c_uint),
        ("glClampColor", clamp_read_colours, ctypes.c_uint, ctypes.c_uint),
        ("glColorMaski", colour_mask_of, ctypes.c_uint, *[ctypes.c_ubyte] * 4),
        ("glGetIntegerv", integers_of, ctypes.c_uint, _POINTER),
        ("glBlitFramebuffer", blit_colours, *[_INT] * 8, ctypes.c_uint, ctypes.c_uint),
    )
    for name, stand_in, *arguments in stand_ins:
        yield name, KIND(None, *arguments)(stand_in)
