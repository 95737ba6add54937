"""A surface in a GL context that belongs to a host program."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

import moderngl

from heimdall.errors import DeviceError
from heimdall.render.egl import Loader, egl_loader, loader_of
from heimdall.render.pixels import Pixels
from heimdall.render.surface import Surface
from heimdall.render.versions import DESKTOP, EMBEDDED, is_es
from heimdall.system import forks
from heimdall.vocabulary.driver_priority import DriverPriority


class HostedSurface(Surface):
    """Draws into a framebuffer of its own, and copies what was drawn into the host's.

    The context must be current on this thread whenever the session is used. Afterwards the host's
    framebuffer is bound; other state of the context (blending, depth test, programs, textures) is
    as drawing left it. Closing releases what was made here, and leaves the context alone.
    """

    driver_priority = DriverPriority(why="its context is the host's")

    def __init__(
        self,
        context: moderngl.Context,
        size: tuple[int, int],
        target: moderngl.Framebuffer | None = None,
    ) -> None:
        """``target``: the host's framebuffer; None: nothing is copied. Raises DeviceError for a
        context that is too old, or lost."""
        forks.begin()
        self._check(context)
        needed = EMBEDDED if is_es(context) else DESKTOP
        if context.version_code < needed.code:
            raise DeviceError(
                f"the host's GL context is of version {context.version_code / 100:.1f}: "
                f"{needed.name} is needed; ask for it where the context is created"
            )
        self._target = target
        self._host = target or context.detect_framebuffer()
        self._closed = False
        self._start(context, size, _loader())
        self._host.use()

    @staticmethod
    def _check(context: object) -> None:
        if not isinstance(context, moderngl.Context):
            raise DeviceError(
                "context must be a moderngl.Context, made by moderngl.create_context() while the "
                f"host's is current, not {type(context).__name__}"
            )
        if isinstance(context.mglo, moderngl.InvalidObject):
            raise DeviceError("the host's GL context has been released: open another session")

    def _pixels(self, loader: Loader | None) -> Pixels:
        return Pixels(self.ctx)  # as the host's framebuffer most likely is

    def make_current(self) -> None:
        self._check(self.ctx)
        if self._target is not None and isinstance(self._target.mglo, moderngl.InvalidObject):
            raise DeviceError("the host's framebuffer has been released: open another session")

    def finish(self) -> None:
        if self._target is not None:
            self.ctx.copy_framebuffer(self._target, self.framebuffer)
        self.wait()

    def give_back(self) -> None:
        self._host.use()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if not (self.hangs or isinstance(self.ctx.mglo, moderngl.InvalidObject)):
                self._release()
                self._host.use()


@contextlib.contextmanager
def reclaimed(context: moderngl.Context | None) -> Iterator[None]:
    """Free what was made in a host's context inside this block, or was let go of in it: moderngl
    leaves that to the context's owner."""
    lost = isinstance(getattr(context, "mglo", None), moderngl.InvalidObject | None)
    if context is None or lost:
        yield
        return
    before = context.gc_mode
    context.gc_mode = "auto"
    try:
        yield
    finally:
        _use_no_program()  # the one in use would only be marked for deletion
        gc.collect()
        context.gc_mode = before


def _use_no_program() -> None:
    loader = _loader()
    if loader is not None and (address := loader("glUseProgram")):
        ctypes.CFUNCTYPE(None, ctypes.c_uint)(address)(0)


def _loader() -> Loader | None:
    """GL function addresses, however the host has made its context."""
    if sys.platform.startswith("linux"):
        try:
            return loader_of(ctypes.CDLL("libGL.so.1"), "glXGetProcAddressARB")
        except (OSError, AttributeError):
            return egl_loader()
    return None  # moderngl's own wait then, which holds the interpreter lock
