"""The panel in the corner: frame rate, frame times, and what each network is doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs
from heimdall.render.sheet import BAD, DIM, GOOD, INK, RECT_FLOATS, TRACK, WARN, Sheet
from heimdall.vocabulary.enums import OverlayView
from heimdall.vocabulary.processors import CPU, GPU

GRAPH_FRAMES = 120
# One colour a network, in panel and timeline; told apart by eyes that confuse red and green too.
COLORS = ("#56b4e9", "#e69f00", "#cc79a7", "#00b894", "#f0e442", "#b197fc", "#ff8787", "#a3e635")
_SPEEDS = np.array([shapes.rgba(color) for color in ("#33b873e0", WARN, BAD)])  # of a frame
_PROCESSOR: Mapping[str, str] = {GPU: "#34d399", CPU: "#fb923c"}


@dataclass(frozen=True)
class DnnStatus:
    """One network: expected latency, what it may take, where it runs and how it keeps up."""

    name: str
    latency_ms: float | None  # None before the first result
    constraint_ms: float
    processor: str
    rate_hz: float
    age_ms: float | None  # of the result on screen
    misses: int
    active: bool  # has the processor now
    exit: str = ""  # the early exit that made the result, of a network that has some


@dataclass(frozen=True)
class Status:
    """One frame's numbers. ``frame_ms``: the last frame intervals, newest last."""

    app: str
    fps: float
    fps_target: float
    frame_ms: Sequence[float]
    late_frames: int
    scheduler: str
    mode: str
    device: str
    dnns: tuple[DnnStatus, ...]
    gap_utilization: float | None
    reason: str
    picture_age_ms: float | None = None  # of the camera picture when it is shown; None: no camera
    message: str = ""  # an error to show until it is gone
    notice: str = ""  # what the user asked for is done
    view: str = OverlayView.PANEL
    others: Sequence[str] = ()  # processors beside the GPU and the CPU, in the timeline's order
    help: Sequence[tuple[str, str]] = ()  # keys and what they do, while the card is shown
    now_ns: int = 0  # the right edge of the timeline, on the clock of its spans


class Panel(Sheet):
    """One layout of the panel at the top left; ``small``: the frame rate and its graph only."""

    def __init__(self, unit: float, glyphs: Glyphs, status: Status, small: bool):
        super().__init__(unit, glyphs)
        # A whole number of pixels a column keeps the graph crisp.
        self._column = max(1, self.px(2))
        self._wide = GRAPH_FRAMES * self._column
        self._edge, self._left = self.px(12), self.px(22)
        self._right = self._left + self._wide
        self._y = self._edge + self.px(6)
        self._head(status)
        self._frame_times()
        if not small:
            for number, dnn in enumerate(status.dnns):
                self._dnn(dnn, COLORS[number % len(COLORS)])
            self._foot(status)
        self._message(status.message)
        self.ground(self._edge, self._edge, self._right + self.px(10), self._y)

    def columns(self, status: Status) -> np.ndarray:
        """The graph: a column each of the last frame intervals, as rectangles."""
        recent = np.asarray(status.frame_ms[-GRAPH_FRAMES:], np.float32)
        top, height = self._graph
        # The line at half height is the target: a missed frame fills the graph.
        share = recent * (status.fps_target / 2000)
        tall = np.minimum(np.maximum(np.rint(share * height), 1), height)
        # Neighbours of one height are one rectangle: a steady frame rate draws hardly any.
        new = np.ones(len(recent), bool)
        np.not_equal(tall[1:], tall[:-1], out=new[1:])
        starts = new.nonzero()[0]
        share = share[starts]
        left = self._left + self._column * (GRAPH_FRAMES - len(recent))
        rows = np.empty((len(starts), RECT_FLOATS), np.float32)
        rows[:, 0] = left + starts * self._column
        rows[:, 1] = top + height - tall[starts]
        rows[:, 2] = left + len(recent) * self._column
        rows[:-1, 2] = rows[1:, 0]
        rows[:, 2] -= rows[:, 0]
        rows[:, 3] = tall[starts]
        rows[:, 4:] = _SPEEDS[(share > 0.55).astype(np.intp) + (share > 0.75)]
        return rows

    def _head(self, status: Status) -> None:
        share = status.fps / status.fps_target if status.fps_target else 1.0
        tint = GOOD if share > 0.97 else WARN if share > 0.85 else BAD
        after = self.put(f"{status.fps:.1f}", self._left, self._y, 30, tint, bold=True)
        top, room = self._y, self._right - after - self.px(30)
        self.put_right(status.app, self._right, top + self.px(4), 13, INK, room)
        line = top + self.px(20)
        self.put("fps", after + self.px(4), line, 11, DIM)
        target = f"target {status.fps_target:g} · late {status.late_frames}"
        self.put_right(target, self._right, line, 11, DIM, room)
        self._y = top + self.px(40)

    def _frame_times(self) -> None:
        height = self.px(13) * 2
        self._graph = (self._y, height)
        self.box(self._left, self._y, self._right, self._y + height, "#ffffff12")
        middle = self._y + height // 2
        self.box(self._left, middle, self._right, middle + 1, "#ffffff60")
        self._y += height + self.px(8)

    def _dnn(self, dnn: DnnStatus, color: str) -> None:
        """Its colour, name, processor and rate; latency against the constraint in numbers and as
        a bar; below it the age of the result on screen, the exit that made it, and deadlines
        missed."""
        top, left = self._y, self._left
        side = self.px(8 if dnn.active else 5)
        middle = top + self.px(9)
        self.box(left, middle - side // 2, left + side, middle - side // 2 + side, color)
        self.put(self.fitted(dnn.name, 13, self.px(70)), left + self.px(12), top, 13, INK)
        line = top + self.px(3)
        tag = _PROCESSOR.get(dnn.processor, DIM)
        self.put(dnn.processor.upper(), left + self.px(84), line, 10, tag, bold=True)
        self.put(f"{dnn.rate_hz:.1f}/s", left + self.px(114), line, 11, DIM)
        latency = "–" if dnn.latency_ms is None else f"{dnn.latency_ms:.0f}"
        late = dnn.latency_ms is not None and dnn.latency_ms > dnn.constraint_ms
        text = f"{latency} / {dnn.constraint_ms:.0f} ms"
        self.put_right(text, self._right, line, 11, BAD if late else INK, self._wide)
        self._y = top + self.px(18)
        self._bar((dnn.latency_ms or 0.0) / max(dnn.constraint_ms, 1e-3))
        age = "no result yet" if dnn.age_ms is None else f"result {_age(dnn.age_ms)} old"
        if dnn.exit:
            age += f" · {dnn.exit}"
        self.put(age, left + self.px(12), self._y, 10, DIM)
        if dnn.misses:
            missed = f"{dnn.misses} missed"
            self.put_right(missed, self._right, self._y, 10, WARN, self._wide)
        self._y += self.px(16)

    def _bar(self, share: float) -> None:
        left, bottom = self._left + self.px(12), self._y + max(2, self.px(3))
        end = left + (self._right - left) * min(share, 1.0)
        self.box(end, self._y, self._right, bottom, TRACK)
        tint = GOOD if share < 0.8 else WARN if share <= 1 else BAD
        self.box(left, self._y, end, bottom, tint)
        self._y = bottom + self.px(2)

    def _foot(self, status: Status) -> None:
        policy = f"{status.scheduler} · {status.mode}"
        if status.gap_utilization is not None:
            policy += f" · gaps {status.gap_utilization:.0%} used"
        lines = [policy, status.device]
        if status.picture_age_ms is not None:
            lines.insert(0, f"picture {status.picture_age_ms:.0f} ms old when shown")
        for text in lines:
            self.put(self.fitted(text, 11, self._wide), self._left, self._y, 11, DIM)
            self._y += self.px(14)
        for text in self.wrapped(status.reason, 11, self._wide)[:2]:
            self.put(text, self._left, self._y, 11, INK)
            self._y += self.px(14)

    def _message(self, message: str) -> None:
        for line in self.wrapped(message, 12, self._wide)[:3]:
            self.put(line, self._left, self._y, 12, BAD)
            self._y += self.px(16)
        self._y += self.px(4)


def _age(age_ms: float) -> str:
    return f"{age_ms / 1000:.1f} s" if age_ms >= 1000 else f"{age_ms:.0f} ms"
