"""The strip at the bottom: who had the GPU and the CPU in the last moments, scrolling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import COLORS
from heimdall.render.sheet import INK, RECT_FLOATS, Sheet

WINDOW_NS = 1_000_000_000
LANES = ("render", "GPU", "CPU")
_WIDE = 540  # design pixels: 16 a frame at 30 frames a second
_ROWS = 1024  # spans kept: more than a window holds
_WHITE = shapes.rgba(INK)
_TINTS = np.array([shapes.rgba(color) for color in COLORS], np.float32)

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
    """Keeps the spans of the last moments and gives them as rectangles on a Strip."""

    def __init__(self) -> None:
        self._spans = np.zeros((_ROWS, 2), np.int64)  # start, end
        self._looks = np.zeros((_ROWS, 2), np.intp)  # lane, colour; colour -1 is rendering
        self._next = 0

    def add(self, spans: Sequence[Span], names: Sequence[str]) -> None:
        """Take in new spans; ``names`` are the DNNs in the order of their colours."""
        for lane, name, start_ns, end_ns in spans:
            row = self._next % _ROWS
            self._spans[row] = start_ns, end_ns
            self._looks[row] = lane, names.index(name) % len(COLORS) if name in names else -1
            self._next += 1

    def rows(self, strip: Strip, now_ns: int) -> np.ndarray:
        """A rectangle for each span, (n, 8)."""
        begin_ns = now_ns - WINDOW_NS
        seen = np.flatnonzero(self._spans[:, 1] > begin_ns)
        scale = (strip.right - strip.left) / WINDOW_NS
        ends = ((self._spans[seen] - begin_ns) * scale).clip(0, strip.right - strip.left)
        ends = ends.round() + strip.left
        rows = np.empty((len(seen), RECT_FLOATS), np.float32)
        rows[:, 0] = ends[:, 0]
        rows[:, 1] = np.asarray(strip.tops)[self._looks[seen, 0]]
        rows[:, 2] = np.maximum(ends[:, 1] - ends[:, 0], 1)
        rows[:, 3] = strip.thick
        colours = self._looks[seen, 1]
        rows[:, 4:] = np.where(colours[:, None] < 0, _WHITE, _TINTS[colours])
        return rows
