"""The strip at the bottom: who had the GPU and the CPU in the last moments, scrolling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import COLORS
from heimdall.render.sheet import GROUND, INK, Sheet

WINDOW_NS = 1_000_000_000
LANES = ("render", "GPU", "CPU")
_WIDE = 540  # design pixels: 16 a frame at 30 frames a second
_ROWS = 1024  # spans kept: more than a window holds
_EMPTY, _FRAME, _DNN = 0, 1, 2  # rows of _TINTS; a DNN's is _DNN + the number of its colour
_TINTS = np.array([shapes.rgba(color) for color in (GROUND, INK, *COLORS)])
_TINTS[:, :3] *= _TINTS[:, 3:]  # premultiplied, as the pictures of sheets are
_TINTS = (_TINTS * 255).round().astype(np.uint8).view(np.uint32).ravel()  # a number a pixel

Span = tuple[int, str, int, int]  # number of the lane, DNN, start and end in ns


class Strip(Sheet):
    """The fixed part of the timeline: ground and lane names. The colours are those of the panel.

    Every pixel costs a software GPU, so it is no wider than it must be.
    """

    def __init__(self, unit: float, glyphs: Glyphs, surface: tuple[int, int]):
        super().__init__(unit, glyphs)
        edge, lane = self.px(12), self.px(12)
        right, bottom = min(surface[0] - edge, edge + self.px(_WIDE)), surface[1] - edge
        top = bottom - len(LANES) * lane - self.px(8)
        self.left, self.right = edge + self.px(54), right - self.px(6)
        self.tops = [top + self.px(5) + number * lane for number in range(len(LANES))]
        self.thick = self.px(10)
        self.height = surface[1] - top
        for name, y in zip(LANES, self.tops, strict=True):
            self.put(name, edge + self.px(8), y - self.px(2), 11, INK)
        self.ground(edge, top, right, bottom)


class Timeline:
    """Keeps the spans of the last moments and paints them as the pixels inside a Strip.

    Pixels cost 0.16 ms at 720p on one llvmpipe core, a rectangle for each of 130 spans 0.24 ms:
    the corners of rectangles are work for the CPU.
    """

    def __init__(self) -> None:
        self._spans = np.zeros((_ROWS, 2), np.int64)  # start, end
        self._looks = np.zeros((_ROWS, 2), np.intp)  # lane, row of _TINTS
        self._next = 0

    def add(self, spans: Sequence[Span], names: Sequence[str]) -> None:
        """Take in new spans; ``names`` are the DNNs in the order of their colours."""
        for lane, name, start_ns, end_ns in spans:
            row = self._next % _ROWS
            self._spans[row] = start_ns, end_ns
            look = _DNN + names.index(name) % len(COLORS) if name in names else _FRAME
            self._looks[row] = lane, look
            self._next += 1

    def pixels(self, strip: Strip, now_ns: int) -> np.ndarray:
        """The lanes, premultiplied RGBA uint8 (height, width, 4), top row first; their top left
        corner is the strip's ``left`` and first of ``tops``."""
        width = max(strip.right - strip.left, 1)
        looks = self._columns(width, now_ns)
        tall = strip.tops[-1] + strip.thick - strip.tops[0]
        picture = np.full((tall, width), _TINTS[_EMPTY])
        for top, tints in zip(strip.tops, _TINTS[looks], strict=True):
            first = top - strip.tops[0]
            picture[first : first + strip.thick] = tints
        return picture.view(np.uint8).reshape(tall, width, 4)

    def _columns(self, width: int, now_ns: int) -> np.ndarray:
        """What each lane shows in each column, (lanes, width): rows of _TINTS."""
        begin_ns = now_ns - WINDOW_NS
        seen = np.flatnonzero((self._spans[:, 1] > begin_ns) & (self._spans[:, 0] < now_ns))
        ends = ((self._spans[seen] - begin_ns) * (width / WINDOW_NS)).round().clip(0, width)
        first = np.minimum(ends[:, 0], width - 1).astype(np.intp)
        count = np.maximum(ends[:, 1].astype(np.intp) - first, 1)
        lane, look = self._looks[seen].T
        # Counts up from each span's first place, all spans in one go.
        skipped = np.cumsum(count) - count
        places = np.repeat(lane * width + first - skipped, count) + np.arange(count.sum())
        looks = np.full(len(LANES) * width, _EMPTY)
        looks[places] = np.repeat(look, count)
        return looks.reshape(len(LANES), width)
