"""The camera picture behind everything, with dark bars where its aspect leaves some.

A GPU samples it. A software GPU would take half of its frame time for that (llvmpipe at 720p on
one core: 5 of 10 ms); there OpenCV scales the picture on a CPU core, before the frame starts, and
drawing it is a copy (1 ms). The same holds for another picture behind the people: blended by
OpenCV it takes 2 ms of a CPU core, on llvmpipe 8 ms of the GPU's; and for people in front of
meshes: cut out by OpenCV, half a couch takes 0.5 ms of a CPU core and as much of the GPU's, on
llvmpipe alone 2.5 ms.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import moderngl
import numpy as np

from heimdall.render.blending import ERASE, OVER
from heimdall.render.layout import Extent, Letterbox
from heimdall.render.plate import Copier
from heimdall.render.programs import Programs
from heimdall.render.surface import Surface
from heimdall.render.textures import (
    MASK_EDGE,
    Content,
    TextureCache,
    levels_of,
    likely_part,
    mask_textures,
    smooth,
)

BARS_COLOR = (0.055, 0.06, 0.07)


@dataclass(frozen=True)
class Behind:
    """A picture, RGB uint8 (h, w, 3), that replaces the camera's where a mask, probabilities
    (h, w), is unlikely. Both are stretched over the whole picture."""

    pixels: np.ndarray
    values: np.ndarray


class Backdrop(ABC):
    """Main thread only."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._picture = np.empty((0, 0, 4), np.uint8)  # the camera's, channels as the surface's lie

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        """Take a new picture, BGR uint8 (h, w, 3)."""
        if self._picture.shape[:2] != image.shape[:2]:
            self._picture = np.empty((*image.shape[:2], 4), np.uint8)
        # OpenCV adds alpha in 0.05 ms for 640x480 and releases the interpreter lock; Mesa's own
        # conversion of three channels takes 0.45 ms and holds it.
        cv2.cvtColor(image, self._surface.pixels.from_bgr, dst=self._picture)

    @abstractmethod
    def draw(self, target: moderngl.Framebuffer, box: Letterbox, behind: Behind | None) -> None:
        """Fill the target's colours, which are the surface's, with picture and bars."""

    @abstractmethod
    def cut(self, box: Letterbox, part: Extent, masks: Sequence[np.ndarray]) -> None:
        """What ``draw_again`` will draw: the picture, in a part of it, where a mask, probabilities
        (h, w), is likely. Called before anything of the frame is drawn."""

    @abstractmethod
    def draw_again(self, target: moderngl.Framebuffer, number: int) -> None:
        """Draw the picture over what is there, where mask ``number`` is likely. Blending is on, by
        the surface's ``mix``."""


class Sampled(Backdrop):
    """Drawn by the GPU."""

    _ground = (*BARS_COLOR, 0.0)

    def __init__(self, surface: Surface, programs: Programs) -> None:
        super().__init__(surface)
        ctx = surface.ctx
        self._texture: moderngl.Texture | None = None
        self._quad = ctx.vertex_array(programs["background"], [])
        self._over = ctx.vertex_array(programs["behind"], [])
        self._front = ctx.vertex_array(programs["occlude"], [])
        for name in ("behind", "occlude"):
            programs[name]["u_mask"] = 1
        self._far = TextureCache(lambda pixels: smooth(ctx, pixels, 3))
        self._masks = mask_textures(ctx)

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        super().load(image, box)
        size = (image.shape[1], image.shape[0])
        if self._texture is None or self._texture.size != size:
            if self._texture is not None:
                self._texture.release()
            self._texture = self._surface.pixels.texture(size)
        self._surface.pixels.write(self._texture, self._picture)

    def draw(self, target: moderngl.Framebuffer, box: Letterbox, behind: Behind | None) -> None:
        self._far.trim()  # of the frame before
        self._masks.trim()
        target.use()
        target.viewport = target.scissor = (0, 0, *self._surface.size)
        mask, target.depth_mask = target.depth_mask, False
        target.clear(color=self._ground)
        target.depth_mask = mask
        target.viewport = target.scissor = box.gl_box()
        if self._texture is not None:
            self._surface.ctx.enable_only(moderngl.NOTHING)
            self._texture.use(0)
            self._quad.render(moderngl.TRIANGLE_STRIP, vertices=4)
        if behind is not None:
            self._draw_behind(behind)
        target.viewport = target.scissor = (0, 0, *self._surface.size)

    def cut(self, box: Letterbox, part: Extent, masks: Sequence[np.ndarray]) -> None:
        self._cut = (box, part, masks)

    def draw_again(self, target: moderngl.Framebuffer, number: int) -> None:
        if self._texture is not None:
            self._draw_front(target, number, self._texture)

    def _draw_front(
        self, target: moderngl.Framebuffer, number: int, picture: moderngl.Texture
    ) -> None:
        box, part, masks = self._cut
        mask = self._masks.get(masks[number])
        # Only where there is something to hide: the picture is costly to draw twice.
        before, target.scissor = target.scissor, box.gl_part(overlap(part, mask.extent))
        picture.use(0)
        mask.use(1)
        target.viewport = box.gl_box()
        self._front.render(moderngl.TRIANGLE_STRIP, vertices=4)
        target.viewport, target.scissor = (0, 0, *self._surface.size), before

    def _draw_behind(self, behind: Behind) -> None:
        ctx = self._surface.ctx
        ctx.enable_only(moderngl.BLEND)
        ctx.blend_func = self._surface.mix
        self._far.get(behind.pixels).use(0)
        self._masks.get(behind.values).use(1)
        self._over.render(moderngl.TRIANGLE_STRIP, vertices=4)


class Clear(Sampled):
    """Nothing: the picture is behind the frame already, such as a phone's camera's, which the
    phone shows by itself."""

    _ground = (0.0, 0.0, 0.0, 0.0)

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        """It is not drawn."""

    def draw_again(self, target: moderngl.Framebuffer, number: int) -> None:
        self._surface.ctx.blend_func = ERASE
        self._draw_front(target, number, self._nothing)
        self._surface.ctx.blend_func = self._surface.mix

    @functools.cached_property
    def _nothing(self) -> moderngl.Texture:
        return self._surface.pixels.texture((1, 1))


class Copied(Backdrop):
    """Scaled by OpenCV when it arrives, copied into the colour texture when it is drawn."""

    def __init__(self, surface: Surface, programs: Programs) -> None:
        super().__init__(surface)
        self._pixels = np.empty((0, 0, 4), np.uint8)  # bottom row first, as GL counts
        self._box: Letterbox | None = None
        # As given, what that held, and as the picture is.
        self._far: tuple[np.ndarray, Content, np.ndarray] | None = None
        self._copier = Copier(surface, programs)
        self._fronts: list[moderngl.Texture] = []  # what is drawn again, at its place
        self._places: list[tuple[int, int, int, int]] = []
        self._sharp = _sharpening()

    def load(self, image: np.ndarray, box: Letterbox) -> None:
        super().load(image, box)
        self._fit(box)
        self._show(self._picture, box)

    def draw(self, target: moderngl.Framebuffer, box: Letterbox, behind: Behind | None) -> None:
        if box != self._box:  # the surface has another size than when the picture came
            self._fit(box)
        if behind is not None and self._picture.size:
            self._show(self._blended(behind), box)
        self._surface.pixels.write(self._surface.colour, self._pixels)

    def cut(self, box: Letterbox, part: Extent, masks: Sequence[np.ndarray]) -> None:
        self._places = []
        for number, values in enumerate(masks):
            levels = levels_of(values)
            x, y, width, height = place = box.gl_part(overlap(part, likely_part(levels)))
            self._places.append(place)
            if width and height and self._picture.size:
                near = cv2.LUT(_spread(levels, box, place), self._sharp)
                picture = self._pixels[y : y + height, x : x + width]
                front = cv2.multiply(picture, cv2.merge([near] * 4), scale=1 / 255)
                self._surface.pixels.write(self._front(number), front, place)

    def _front(self, number: int) -> moderngl.Texture:
        """A texture as large as the surface."""
        size = self._surface.size
        if self._fronts and self._fronts[0].size != size:
            for old in self._fronts:
                old.release()
            self._fronts = []
        while len(self._fronts) <= number:
            self._fronts.append(self._surface.pixels.texture(size))
            self._fronts[-1].filter = (moderngl.NEAREST, moderngl.NEAREST)
        return self._fronts[number]

    def draw_again(self, target: moderngl.Framebuffer, number: int) -> None:
        x, y, width, height = place = self._places[number]
        if width and height and self._picture.size:
            self._surface.ctx.blend_func = OVER
            self._copier.draw(self._fronts[number], place, (x, y))
            self._surface.ctx.blend_func = self._surface.mix

    def _show(self, picture: np.ndarray, box: Letterbox) -> None:
        x, y, width, height = box.gl_box()
        inside = self._pixels[y : y + height, x : x + width]
        cv2.resize(cv2.flip(picture, 0), (width, height), dst=inside)

    def _blended(self, behind: Behind) -> np.ndarray:
        """The camera picture, (h, w, 4), with the other one behind. Integer products: OpenCV's
        blendLinear with its float weights takes twice as long."""
        size = self._picture.shape[1::-1]
        low, high = MASK_EDGE
        sharp = cv2.convertScaleAbs(
            np.clip(behind.values, low, high) - low, alpha=255 / (high - low)
        )
        near = cv2.merge([cv2.resize(sharp, size)] * 4)
        return cv2.add(
            cv2.multiply(self._picture, near, scale=1 / 255),
            cv2.multiply(self._far_at(size, behind.pixels), cv2.bitwise_not(near), scale=1 / 255),
        )

    def _far_at(self, size: tuple[int, int], pixels: np.ndarray) -> np.ndarray:
        known = self._far
        same = known is not None and known[0] is pixels and known[2].shape[1::-1] == size
        if known is None or not same or known[1].changed(pixels):
            scaled = cv2.resize(pixels, size, interpolation=cv2.INTER_LINEAR)
            order = self._surface.pixels.from_rgb
            known = self._far = (pixels, Content(pixels), cv2.cvtColor(scaled, order))
        return known[2]

    def _fit(self, box: Letterbox) -> None:
        if box == self._box:
            return
        width, height = self._surface.size
        self._pixels = np.empty((height, width, 4), np.uint8)
        bars = np.array([*(round(255 * level) for level in BARS_COLOR), 255], np.uint8)
        self._pixels[:] = self._surface.pixels.in_order(bars)
        self._box = box


def backdrop_for(surface: Surface, programs: Programs) -> Backdrop:
    """The kind that suits a surface."""
    if surface.see_through:
        return Clear(surface, programs)
    return (Copied if surface.software else Sampled)(surface, programs)


def overlap(a: Extent, b: Extent) -> Extent:
    """The part of the picture that is in both."""
    return max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])


def _spread(levels: np.ndarray, box: Letterbox, place: tuple[int, int, int, int]) -> np.ndarray:
    """A mask stretched over the whole picture, as seen in a place of the surface, y up."""
    left, low, across, up = box.gl_box()
    x, y, width, height = place
    rows, columns = levels.shape
    wide, tall = columns / across, rows / up
    # A pixel's centre to the mask's texels, whose centres are at half numbers too.
    right = (x - left + 0.5) * wide - 0.5
    down = rows - (y - low + 0.5) * tall - 0.5
    return cv2.warpAffine(
        levels,
        np.array([[wide, 0, right], [0, -tall, down]]),
        (width, height),
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )


def _sharpening() -> np.ndarray:
    """Of each level of a mask, how opaque it is: shaders/occlude.frag as a table."""
    low, high = MASK_EDGE
    opaque = (np.arange(256) / 255 - low) / (high - low)
    return np.rint(255 * np.clip(opaque, 0, 1)).astype(np.uint8)
