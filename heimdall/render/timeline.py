"""The strip at the bottom: what had the GPU and the CPU in the last moments, scrolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs
from heimdall.render.panel import COLORS
from heimdall.render.sheet import DIM, GROUND, INK, Sheet
from heimdall.vocabulary.enums import Lane

WINDOW_NS = 1_000_000_000
LANES = {Lane.RENDER: "drawing", Lane.GPU: "GPU", Lane.CPU: "CPU"}  # from the top, as labelled
_WIDE = 480  # design pixels: 14 a frame at 30 frames a second
_COLUMNS = 500  # of 2 ms
_COLUMN_NS = WINDOW_NS // _COLUMNS
_ROWS = 12  # of a lane: jobs that run together share them
_EMPTY, _FRAME, _DNN = 0, 1, 2  # rows of _TINTS; a DNN's is _DNN + the number of its colour
_TINTS = np.array([shapes.rgba(color) for color in (GROUND, INK, *COLORS)])
_TINTS[:, :3] *= _TINTS[:, 3:]  # premultiplied, as the pictures of sheets are
_TINTS = (_TINTS * 255).round().astype(np.uint8).view(np.uint32).ravel()  # a number a pixel


class Span(NamedTuple):
    """A piece of work: number of the lane, DNN, start and end in ns. Of ``parts`` jobs that ran
    together it is number ``part``."""

    lane: int
    dnn: str
    start_ns: int
    end_ns: int
    part: int = 0
    parts: int = 1


class Strip(Sheet):
    """The fixed part of the timeline: ground and lane names. The colours are those of the panel.

    ``others``: further processors, each with a lane below the usual ones. Every pixel costs a
    software GPU, so it is no wider than it must be.
    """

    def __init__(
        self, unit: float, glyphs: Glyphs, surface: tuple[int, int], others: Sequence[str] = ()
    ):
        super().__init__(unit, glyphs)
        labels = (*LANES.values(), *others)
        edge, lane, head = self.px(12), self.px(14), self.px(17)
        right, bottom = min(surface[0] - edge, edge + self.px(_WIDE)), surface[1] - edge
        top = bottom - head - len(labels) * lane - self.px(4)
        self.left, self.right = edge + self.px(64), right - self.px(6)
        self.tops = [top + head + number * lane for number in range(len(labels))]
        self.thick = self.px(11)
        self.height = surface[1] - top
        for name, y in zip(labels, self.tops, strict=True):
            self.put(name, edge + self.px(8), y - self.px(2), 12, INK)
        self.put("1 s ago", self.left, top + self.px(2), 12, DIM)
        self.put_right("now", self.right, top + self.px(2), 12, DIM, self.right - self.left)
        self.ground(edge, top, right, bottom)


class Timeline:
    """Keeps what the last moments showed and gives it as the pixels inside a Strip.

    Drawing a rectangle for each of 130 spans took 0.06 ms more at 720p on one llvmpipe core: the
    corners of rectangles are work for the CPU.
    """

    def __init__(self) -> None:
        # A ring: time is column number ``time // _COLUMN_NS``, kept at its remainder.
        # Of each lane its rows; what they hold are rows of _TINTS.
        self._looks = np.full((len(LANES), _ROWS, _COLUMNS), _EMPTY, np.uint8)
        self._end = 0  # the first column that is not there yet

    def add(self, spans: Sequence[Span], names: Sequence[str]) -> None:
        """Take in new spans; ``names`` are the DNNs in the order of their colours."""
        self._have(max((span.lane + 1 for span in spans), default=0))
        for lane, name, start_ns, end_ns, part, parts in spans:
            look = _DNN + names.index(name) % len(COLORS) if name in names else _FRAME
            first = start_ns // _COLUMN_NS
            last = max(end_ns // _COLUMN_NS, first + 1)
            self._reach(last)
            top = part * _ROWS // parts
            rows = lane, slice(top, max((part + 1) * _ROWS // parts, top + 1))
            self._paint(rows, max(first, self._end - _COLUMNS), last, look)

    def pixels(self, strip: Strip, now_ns: int) -> np.ndarray:
        """The lanes, premultiplied RGBA uint8 (height, width, 4), top row first; their top left
        corner is the strip's ``left`` and first of ``tops``."""
        width, lanes = max(strip.right - strip.left, 1), len(strip.tops)
        self._have(lanes)
        self._reach(now_ns // _COLUMN_NS)
        columns = (np.arange(width) * _COLUMNS // width + self._end) % _COLUMNS
        tall = strip.tops[-1] + strip.thick - strip.tops[0]
        picture = np.full((tall, width), _TINTS[_EMPTY])
        rows = np.arange(strip.thick) * _ROWS // strip.thick
        for top, looks in zip(strip.tops, self._looks[:lanes], strict=True):
            first = top - strip.tops[0]
            picture[first : first + strip.thick] = _TINTS[looks[:, columns]][rows]
        return picture.view(np.uint8).reshape(tall, width, 4)

    def _have(self, lanes: int) -> None:
        """Make room for so many of them."""
        if (more := lanes - len(self._looks)) > 0:
            new = np.full((more, *self._looks.shape[1:]), _EMPTY, np.uint8)
            self._looks = np.concatenate([self._looks, new])

    def _reach(self, end: int) -> None:
        """Make room up to this column: what is older than the window goes."""
        if end > self._end:
            self._paint((), max(self._end, end - _COLUMNS), end, _EMPTY)
            self._end = end

    def _paint(self, rows: tuple[int | slice, ...], first: int, last: int, look: int) -> None:
        """Columns of ``rows``, which are those of a lane, or all."""
        if first < last:
            looks = self._looks[rows]
            left, right = first % _COLUMNS, (last - 1) % _COLUMNS + 1
            if left < right:
                looks[..., left:right] = look
            else:
                looks[..., left:] = look
                looks[..., :right] = look
