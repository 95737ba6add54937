"""Four-channel textures, and in which order their channels lie.

llvmpipe, Mesa's software GL, copies pictures four times as fast where nothing is to be converted
and no depth is kept: a framebuffer without depth, texture and target with blue first, as X servers
have it, smooth coordinates on a rectangle (its *linear* rasteriser; 0.65 instead of 2.5 ms for
600x430 blended pixels). moderngl knows red first only, so the GL functions are called here.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any

import cv2
import moderngl
import numpy as np

from heimdall.render.egl import Loader, gl_functions
from heimdall.render.versions import is_es

_TEXTURE_2D, _PIXEL_PACK_BUFFER, _PACK_INVERT = 0x0DE1, 0x88EB, 0x8758
_BGRA, _WORDS, _ANY_RGBA = 0x80E1, 0x8367, 0x1908  # unsized: the driver keeps the order given
_UINT, _INT, _POINTER = ctypes.c_uint, ctypes.c_int, ctypes.c_void_p
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "glBindTexture": (None, _UINT, _UINT),
    "glBindBuffer": (None, _UINT, _UINT),
    "glPixelStorei": (None, _UINT, _INT),
    "glTexImage2D": (None, _UINT, _INT, _INT, _INT, _INT, _INT, _UINT, _UINT, _POINTER),
    "glTexSubImage2D": (None, _UINT, _INT, _INT, _INT, _INT, _INT, _UINT, _UINT, _POINTER),
    "glReadPixels": (None, _INT, _INT, _INT, _INT, _UINT, _UINT, _POINTER),
}


class Pixels:
    """Red first: what every GL has. Pictures are uint8 (h, w, 4), bottom row first."""

    from_bgr, from_rgb = cv2.COLOR_BGR2RGBA, cv2.COLOR_RGB2RGBA

    def __init__(self, ctx: moderngl.Context):
        self._ctx = ctx

    def in_order(self, rgba: np.ndarray) -> np.ndarray:
        """A picture or colours (..., 4), red first, in this order; the other way round as well."""
        return rgba

    def texture(self, size: tuple[int, int], pixels: np.ndarray | None = None) -> moderngl.Texture:
        """A texture of (width, height), clamped at its edges, with ``pixels`` in it."""
        texture = self._empty(size)
        texture.repeat_x = texture.repeat_y = False
        if pixels is not None:
            self.write(texture, pixels)
        return texture

    def _empty(self, size: tuple[int, int]) -> moderngl.Texture:
        return self._ctx.texture(size, 4)

    def write(
        self,
        texture: moderngl.Texture,
        pixels: np.ndarray,
        part: tuple[int, int, int, int] | None = None,
    ) -> None:
        """Replace the texture's pixels, or those of a part (x, y, width, height)."""
        texture.write(np.ascontiguousarray(pixels), viewport=part)

    def read(self, framebuffer: moderngl.Framebuffer, into: np.ndarray | moderngl.Buffer) -> None:
        """Copy the framebuffer into memory, or into a buffer of the GPU's."""
        # Four channels: Mesa copies those, but converts three (0.1 against 0.9 ms at 720p).
        framebuffer.read_into(into, components=4)

    def read_for_x(self, framebuffer: moderngl.Framebuffer, into: np.ndarray) -> None:
        """Copy it into memory as X windows have it: blue first, top row first."""
        width, height = framebuffer.size
        pixels = np.empty((height, width, 4), np.uint8)
        self.read(framebuffer, pixels)
        cv2.flip(cv2.cvtColor(pixels, cv2.COLOR_RGBA2BGRA), 0, dst=into)


class BgraPixels(Pixels):
    """Blue first. Raises AttributeError where a function is missing."""

    from_bgr, from_rgb = cv2.COLOR_BGR2BGRA, cv2.COLOR_RGB2BGRA

    def __init__(self, ctx: moderngl.Context, loader: Loader):
        super().__init__(ctx)
        self._gl = gl_functions(loader, _FUNCTIONS)

    def in_order(self, rgba: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(rgba).reshape(1, -1, 4)
        return cv2.cvtColor(rows, cv2.COLOR_RGBA2BGRA).reshape(rgba.shape)

    def _empty(self, size: tuple[int, int]) -> moderngl.Texture:
        texture = super()._empty(size)
        self._gl["glBindTexture"](_TEXTURE_2D, texture.glo)
        self._gl["glTexImage2D"](_TEXTURE_2D, 0, _ANY_RGBA, *size, 0, _BGRA, _WORDS, None)
        return texture

    def write(
        self,
        texture: moderngl.Texture,
        pixels: np.ndarray,
        part: tuple[int, int, int, int] | None = None,
    ) -> None:
        pixels = np.ascontiguousarray(pixels)
        self._gl["glBindTexture"](_TEXTURE_2D, texture.glo)
        form = (*(part or (0, 0, *texture.size)), _BGRA, _WORDS)
        self._gl["glTexSubImage2D"](_TEXTURE_2D, 0, *form, pixels.ctypes.data)

    def read(self, framebuffer: moderngl.Framebuffer, into: np.ndarray | moderngl.Buffer) -> None:
        framebuffer.use()
        place = (0, 0, *framebuffer.size, _BGRA, _WORDS)
        if isinstance(into, moderngl.Buffer):
            self._gl["glBindBuffer"](_PIXEL_PACK_BUFFER, into.glo)
            self._gl["glReadPixels"](*place, None)
            self._gl["glBindBuffer"](_PIXEL_PACK_BUFFER, 0)
        else:
            self._gl["glReadPixels"](*place, into.ctypes.data)

    def read_for_x(self, framebuffer: moderngl.Framebuffer, into: np.ndarray) -> None:
        if "GL_MESA_pack_invert" in self._ctx.extensions:
            self._gl["glPixelStorei"](_PACK_INVERT, 1)
            self.read(framebuffer, into)
            self._gl["glPixelStorei"](_PACK_INVERT, 0)
        else:
            self.read(framebuffer, into)
            cv2.flip(into, 0, dst=into)


def fastest(ctx: moderngl.Context, software: bool, loader: Loader | None) -> Pixels:
    """Blue first on software GL that is not GL ES, red first elsewhere."""
    if software and loader is not None and not is_es(ctx):
        with contextlib.suppress(AttributeError):
            return BgraPixels(ctx, loader)
    return Pixels(ctx)
