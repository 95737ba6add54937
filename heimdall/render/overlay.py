"""The panel in the corner: frame rate, frame times, and what each network is doing.

Its text is laid out five times a second and kept in GPU buffers; between those a frame draws
one batch of rectangles (panel, meters, graph) and one of glyphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import moderngl
import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs, glyph_quads
from heimdall.render.programs import Programs
from heimdall.render.status import DnnStatus, Status
from heimdall.render.surface import Surface

GRAPH_FRAMES = 120
_REFRESH_S = 0.25
_PANEL, _TRACK = "#0b0e13c8", "#ffffff26"
_INK, _DIM = "#f4f6f8", "#aeb6c0"
_GOOD, _WARN, _BAD = "#4ade80", "#fbbf24", "#f87171"
_SPEEDS = np.array([shapes.rgba(color) for color in ("#33b873e0", _WARN, _BAD)])  # of a frame
_PROCESSOR = {"gpu": "#34d399", "cpu": "#fb923c"}


class Overlay:
    """Draws the status over the top left corner. Main thread only."""

    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic):
        self._surface, self._clock = surface, clock
        self._programs = Programs(surface.ctx)
        self._glyphs = Glyphs(surface.ctx)
        self._rects = shapes.rects(surface.ctx, self._programs)
        self._text = glyph_quads(surface.ctx, self._programs)
        self._laid_out_s = float("-inf")
        self._key: tuple[str, tuple[int, int]] = ("", (0, 0))
        self._page = _Page(1.0, self._glyphs)

    def prepare(self, status: Status) -> None:
        """Lay out new words. That takes longer than to draw them (1 ms beside busy threads), so
        call it a few times a second between frames; else ``draw`` does it, every 0.25 s."""
        self._lay_out(status)

    def draw(self, status: Status) -> None:
        """Draw over what is on the framebuffer; call after ``Scene.render``."""
        ctx, target = self._surface.ctx, self._surface.framebuffer
        target.use()
        target.scissor = target.viewport = (0, 0, *self._surface.size)
        ctx.enable_only(moderngl.BLEND)
        old = self._clock() - self._laid_out_s >= _REFRESH_S
        if old or self._key != (status.message, self._surface.size):
            self._lay_out(status)
        rects = np.concatenate([self._page.rects, self._page.columns(status)], dtype=np.float32)
        self._rects.write(rects)
        # Premultiplied: llvmpipe fills the panel in 0.16 instead of 0.19 ms.
        ctx.blend_func = (moderngl.ONE, moderngl.ONE_MINUS_SRC_ALPHA)
        self._rects.draw(len(rects))
        ctx.blend_func = (moderngl.SRC_ALPHA, moderngl.ONE_MINUS_SRC_ALPHA)
        self._glyphs.use(0)
        self._text.draw(self._page.glyph_count)

    def _lay_out(self, status: Status) -> None:
        self._laid_out_s, self._key = self._clock(), (status.message, self._surface.size)
        # 720 lines are the design size; denser displays and larger windows get larger letters.
        unit = max(self._surface.size[1] / 720, 0.75 * self._surface.scale)
        self._page = _Page(unit, self._glyphs)
        self._text.write(self._page.lay_out(status))
        for name in ("rects", "glyphs"):
            self._programs[name]["u_surface"] = self._surface.size


class _Page:
    """One layout of the panel. ``unit`` is surface pixels a design pixel."""

    def __init__(self, unit: float, glyphs: Glyphs):
        self._unit, self._glyphs = unit, glyphs
        self._left, self._y = self._px(12), self._px(12)
        # A whole number of pixels a column keeps the graph crisp.
        column = max(1, self._px(2))
        self._width = GRAPH_FRAMES * column
        self._column = column
        self._boxes: list[tuple[float, ...]] = []
        self._rows: list[np.ndarray] = []
        self._graph = (0, 0)  # top and height
        self.rects = np.zeros((0, 8), np.float32)
        self.glyph_count = 0

    def lay_out(self, status: Status) -> np.ndarray:
        """Glyph rows of the whole panel; its rectangles are in ``rects``."""
        self._y += self._px(6)
        self._head(status)
        self._frame_times()
        for dnn in status.dnns:
            self._dnn(dnn)
        self._foot(status)
        self.rects = np.array(self._panel() + self._boxes, np.float32)
        glyphs = np.concatenate(self._rows)
        self.glyph_count = len(glyphs)
        return glyphs

    def columns(self, status: Status) -> np.ndarray:
        """The graph: a column each of the last frame intervals, as rectangles."""
        recent = np.asarray(status.frame_ms[-GRAPH_FRAMES:], np.float32)
        top, height = self._graph
        # The line at half height is the target: a missed frame fills the graph.
        share = recent * status.fps_target / 2000
        tall = np.clip(np.round(share * height), 1, height)
        left = self._inner + self._column * (GRAPH_FRAMES - len(recent))
        # Neighbours of one height are one rectangle: a steady frame rate draws hardly any.
        starts = np.flatnonzero(np.diff(tall, prepend=-1))
        widths = np.diff(starts, append=len(recent)) * self._column
        tall, share = tall[starts], share[starts]
        tints = _SPEEDS[(share > 0.55).astype(int) + (share > 0.75)]
        lefts = left + starts * self._column
        return np.column_stack([lefts, top + height - tall, widths, tall, tints])

    def _panel(self) -> list[tuple[float, ...]]:
        """The translucent ground, its corners rounded by a few shorter rows."""
        top, radius = self._px(12), self._px(7)
        left, width = self._left, self._width + 2 * self._px(10)
        tint = shapes.rgba(_PANEL)
        rows: list[tuple[float, ...]] = []
        for row in range(radius):
            inset = round(radius - (radius**2 - (radius - row - 0.5) ** 2) ** 0.5)
            for y in (top + row, self._y - 1 - row):
                rows.append((left + inset, y, width - 2 * inset, 1, *tint))
        rows.append((left, top + radius, width, self._y - top - 2 * radius, *tint))
        return rows

    def _box(self, left: float, top: float, right: float, bottom: float, color: str) -> None:
        place = (round(left), round(top), round(right) - round(left), round(bottom) - round(top))
        self._boxes.append((*place, *shapes.rgba(color)))

    def _px(self, design: float) -> int:
        return round(design * self._unit)

    @property
    def _inner(self) -> int:
        return self._left + self._px(10)

    def _put(self, text: str, x: float, size: int, color: str, bold: bool = False) -> int:
        """Text at x on the current line; returns the x after it."""
        self._rows.append(self._glyphs.rows(text, x, self._y, self._px(size), color, bold))
        return round(x) + self._glyphs.width(text, self._px(size), bold)

    def _put_right(self, text: str, size: int, color: str, room: float | None = None) -> None:
        text = self._fitted(text, size, self._width if room is None else room)
        width = self._glyphs.width(text, self._px(size))
        self._put(text, self._inner + self._width - width, size, color)

    def _fitted(self, text: str, size: int, room: float) -> str:
        """The text, cut with an ellipsis if it is wider than ``room``."""
        if self._glyphs.width(text, self._px(size)) <= room:
            return text
        while text and self._glyphs.width(text + "…", self._px(size)) > room:
            text = text[:-1]
        return text + "…"

    def _head(self, status: Status) -> None:
        share = status.fps / status.fps_target if status.fps_target else 1.0
        tint = _GOOD if share > 0.97 else _WARN if share > 0.85 else _BAD
        after = self._put(f"{status.fps:.1f}", self._inner, 30, tint, bold=True)
        top = self._y
        room = self._inner + self._width - after - self._px(30)
        self._y = top + self._px(4)
        self._put_right(status.app, 13, _INK, room)
        self._y = top + self._px(20)
        self._put("fps", after + self._px(4), 11, _DIM)
        self._put_right(f"target {status.fps_target:g} · late {status.late_frames}", 11, _DIM, room)
        self._y = top + self._px(40)

    def _frame_times(self) -> None:
        height = self._px(13) * 2
        self._graph = (self._y, height)
        left, right = self._inner, self._inner + self._width
        self._box(left, self._y, right, self._y + height, "#ffffff12")
        middle = self._y + height // 2
        self._box(left, middle, right, middle + 1, "#ffffff60")
        self._y += height + self._px(8)

    def _dnn(self, dnn: DnnStatus) -> None:
        """Name and processor, rate, latency against its constraint as numbers and as a meter."""
        top, left = self._y, self._inner
        if dnn.active:
            self._put("●", left - self._px(1), 10, _GOOD)
        name = self._fitted(dnn.name, 13, self._px(70))
        self._put(name, left + self._px(12), 13, _INK)
        self._y = top + self._px(3)
        tag = _PROCESSOR.get(dnn.processor, _DIM)
        self._put(dnn.processor.upper(), left + self._px(84), 10, tag, bold=True)
        self._put(f"{dnn.rate_hz:.1f}/s", left + self._px(114), 11, _DIM)
        late = dnn.latency_ms is not None and dnn.latency_ms > dnn.constraint_ms
        latency = "–" if dnn.latency_ms is None else f"{dnn.latency_ms:.0f}"
        self._put_right(f"{latency} / {dnn.constraint_ms:.0f} ms", 11, _BAD if late else _INK)
        self._y = top + self._px(18)
        self._meter((dnn.latency_ms or 0.0) / max(dnn.constraint_ms, 1e-3))
        self._y += self._px(7)

    def _meter(self, share: float) -> None:
        left, right = self._inner + self._px(12), self._inner + self._width
        bottom = self._y + max(2, self._px(3))
        end = left + (right - left) * min(share, 1.0)
        self._box(end, self._y, right, bottom, _TRACK)
        tint = _GOOD if share < 0.8 else _WARN if share <= 1 else _BAD
        self._box(left, self._y, end, bottom, tint)

    def _foot(self, status: Status) -> None:
        policy = f"{status.scheduler} · {status.mode}"
        if status.gap_utilization is not None:
            policy += f" · gaps {status.gap_utilization:.0%} used"
        for text, tint in ((policy, _DIM), (status.device, _DIM), (status.reason, _INK)):
            if text:
                self._put(self._fitted(text, 11, self._width), self._inner, 11, tint)
                self._y += self._px(14)
        for line in self._wrapped(status.message, 12)[:3]:
            self._put(line, self._inner, 12, _BAD)
            self._y += self._px(16)
        self._y += self._px(4)

    def _wrapped(self, text: str, size: int) -> list[str]:
        lines: list[str] = []
        for word in text.split():
            joined = f"{lines[-1]} {word}" if lines else word
            if lines and self._glyphs.width(joined, self._px(size)) <= self._width:
                lines[-1] = joined
            else:
                lines.append(self._fitted(word, size, self._width))
        return lines
