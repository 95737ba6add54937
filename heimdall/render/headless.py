"""A surface without display: EGL on Linux, the platform's own off-screen context elsewhere."""

from __future__ import annotations

import sys
from typing import Any

import moderngl

from heimdall.errors import DeviceError
from heimdall.render.fence import egl_loader, release_egl_thread
from heimdall.render.surface import NEEDS_GL, Windowless


class HeadlessSurface(Windowless):
    """Draws like a window, shows nothing, and receives no input."""

    def __init__(self, size: tuple[int, int]):
        egl = sys.platform.startswith("linux")
        options: dict[str, Any] = {"backend": "egl"} if egl else {}
        try:
            ctx = moderngl.create_context(standalone=True, require=330, **options)
        except Exception as error:  # the backends raise bare Exception
            raise DeviceError(NEEDS_GL.format(error=error)) from error
        self._closed = False
        self._start(ctx, size, egl_loader() if egl else None)

    def make_current(self) -> None:
        self.ctx.__enter__()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.make_current()
            self.ctx.release()
            release_egl_thread()
