"""A surface without display: EGL on Linux, the platform's own off-screen context elsewhere."""

from __future__ import annotations

import itertools
import sys

import moderngl

from heimdall.errors import DeviceError
from heimdall.render.binding import bound
from heimdall.render.egl import Display, Egl, EglContext, egl_loader
from heimdall.render.surface import Surface
from heimdall.render.versions import DESKTOP, Version, none_left, wanted


class HeadlessSurface(Surface):
    """Draws like a window, shows nothing, and receives no input. Raises DeviceError where no
    version of GL can be had. ``high``: the driver, where it can, serves it before others."""

    def __init__(self, size: tuple[int, int], *, high: bool = True):
        self._closed, self._high = False, high
        if sys.platform.startswith("linux"):
            self._start(self._open_egl(), size, egl_loader())
        else:
            self._start(self._open_own(), size, None)

    def make_current(self) -> None:
        if not self.hangs:
            self.ctx.__enter__()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if not self.hangs:
                self.make_current()
                self.ctx.release()

    def _open_egl(self) -> moderngl.Context:
        """Every version of a device before the next device: that may be a software renderer."""
        refused: list[str] = []
        self.refused = refused
        versions = wanted()
        try:
            egl = Egl()
            for display, version in itertools.product(egl.displays(), versions):
                try:
                    return self._context(egl, display, version)
                except Exception as error:  # moderngl raises bare ones, too
                    refused.append(f"{version.name} on {display.name}: {error}")
        except DeviceError as error:
            refused.append(str(error))
        raise none_left(refused)

    def _context(self, egl: Egl, display: Display, version: Version) -> moderngl.Context:
        context = EglContext(egl, display, version, high=self._high)
        self.driver_priority = context.driver_priority
        try:
            return bound(egl.loader, version, context)
        except Exception:
            context.release()
            raise

    def _open_own(self) -> moderngl.Context:
        if DESKTOP not in wanted():
            raise DeviceError("without a window, OpenGL ES is available on Linux only")
        try:
            return moderngl.create_context(standalone=True, require=DESKTOP.code)
        except Exception as error:  # the backends raise bare Exception
            raise none_left([f"{DESKTOP.name}: {error}"]) from error
