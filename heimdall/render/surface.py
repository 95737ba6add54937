# ruff: noqa: B027  (where there is no window, there is nothing to do)
"""Where frames are drawn: one contract, met by a window and by a headless surface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import moderngl
import numpy as np

from heimdall.render.blending import MIX, PREMULTIPLYING
from heimdall.render.egl import Loader
from heimdall.render.events import InputEvent
from heimdall.render.fence import Fence
from heimdall.render.pixels import Pixels, fastest
from heimdall.render.versions import is_es
from heimdall.vocabulary.driver_priority import NOT_ASKED, DriverPriority

_SOFTWARE = ("llvmpipe", "softpipe", "swiftshader")


class Surface(ABC):
    """A target for drawing: 8-bit RGBA colour with 24-bit depth, of ``size`` pixels.

    Both kinds draw into an own framebuffer object: so a picture can be read back or recorded at
    any time, also while the window is covered by another one.
    What is not overridden is that of one without a window: it shows nothing by itself, and so
    receives no input. Everything here belongs to the main thread.
    """

    ctx: moderngl.Context
    framebuffer: moderngl.Framebuffer
    flat: moderngl.Framebuffer  # the same colours without depth; on a real GPU the framebuffer
    target: moderngl.Framebuffer  # that of the two which takes the present frame
    colour: moderngl.Texture  # what both draw into
    pixels: Pixels  # how its channels lie
    software: bool  # CPU cores play the GPU
    es: bool  # OpenGL ES 3.0 or later instead of desktop OpenGL 3.3 or later
    refused: Sequence[str] = ()  # what was tried before, and why it is not that
    # Another's picture is behind the frame, whose colours are premultiplied by their opacity then.
    see_through: bool = False
    driver_priority: DriverPriority = NOT_ASKED  # of its context, among all that use the GPU
    scale: float = 1.0  # framebuffer pixels a point, above 1 on high-density displays

    def _start(self, ctx: moderngl.Context, size: tuple[int, int], loader: Loader | None) -> None:
        self.ctx = ctx
        self.renderer: str = ctx.info["GL_RENDERER"]
        self.version: str = ctx.info["GL_VERSION"]
        self.es = is_es(ctx)
        self.software = any(name in self.renderer.lower() for name in _SOFTWARE)
        self._fence = Fence(loader, ctx.finish)
        self.pixels = self._pixels(loader)
        self._allocate(size)

    def _pixels(self, loader: Loader | None) -> Pixels:
        """The order of channels in which drawing and showing is cheapest."""
        return fastest(self.ctx, self.software, loader)

    def _allocate(self, size: tuple[int, int]) -> None:
        self.colour = self.pixels.texture(size)
        depth = self.ctx.depth_renderbuffer(size)
        self.framebuffer = self.ctx.framebuffer([self.colour], depth)
        # Software GL draws rectangles faster without depth; a GPU would rather not change targets.
        self.flat = self.ctx.framebuffer([self.colour]) if self.software else self.framebuffer
        self.target = self.framebuffer
        self._depth_only = self.ctx.framebuffer(depth_attachment=depth)
        self.framebuffer.use()
        self.framebuffer.clear()

    def resize(self, size: tuple[int, int]) -> None:
        """Draw pictures of another size from now on; what was drawn is gone. Between frames."""
        self._release()
        self._allocate(size)

    def _release(self) -> None:
        """Free what ``_allocate`` has made."""
        self._depth_only.release()
        if self.flat is not self.framebuffer:
            self.flat.release()
        for each in (self.colour, self.framebuffer.depth_attachment, self.framebuffer):
            each.release()

    def clear_depth(self) -> None:
        """Forget how far away everything drawn so far is; colours stay."""
        self._depth_only.clear(depth=1.0)
        self.framebuffer.use()

    @property
    def mix(self) -> Any:
        """How colours with their opacity are drawn upon what is there: see blending.py."""
        return PREMULTIPLYING if self.see_through else MIX

    @property
    def size(self) -> tuple[int, int]:
        """Framebuffer width and height in pixels."""
        return self.framebuffer.size

    @abstractmethod
    def make_current(self) -> None:
        """Draw here from now on: several surfaces of a process take turns. Raises DeviceError where
        nothing can be drawn any more."""

    def give_back(self) -> None:
        """Leave drawing to others: what they drew to is bound again."""

    def finish(self) -> None:
        """Return when the GPU has drawn everything submitted, and it can be presented."""
        self.wait()

    def wait(self) -> None:
        """Return when the GPU has done what it was given so far; other threads run meanwhile.
        Raises DeviceError where it hangs."""
        self._fence.wait()

    @property
    def hangs(self) -> bool:
        """Whether the GPU was given up: a call that waits for it would not come back."""
        return self._fence.hangs

    def stage(self) -> None:
        """Get what was drawn when ``finish`` returned ready to be shown; asks nothing of the GPU.
        To be called while ``present`` is not due yet."""

    def present(self) -> None:
        """Show what was drawn when ``finish`` returned, at once: deadlines pace the frames, not
        the display. Asks nothing of the GPU, which works for a network by then."""

    def poll(self) -> list[InputEvent]:
        """What the user did since the last call."""
        return []

    def set_title(self, title: str) -> None:
        """Name the window, where there is one."""

    def toggle_full_screen(self) -> None:
        """Fill the screen with the window, or go back."""

    def read(self) -> np.ndarray:
        """A screenshot: (h, w, 3) RGB uint8, top row first. Waits for the GPU."""
        self.wait()
        w, h = self.size
        pixels = np.empty((h, w, 4), np.uint8)
        self.pixels.read(self.framebuffer, pixels)
        return np.ascontiguousarray(self.pixels.in_order(pixels)[::-1, :, :3])

    @abstractmethod
    def close(self) -> None:
        """Release the context and the window; closing twice is allowed."""

    def __enter__(self) -> Surface:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
