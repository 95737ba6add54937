"""The panel in the corner: frame rate, frame times, and what each network is doing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.render import shapes
from heimdall.render.glyphs import Glyphs
from heimdall.render.sheet import BAD, DIM, GOOD, INK, RECT_FLOATS, TRACK, WARN, Sheet
from heimdall.vocabulary.enums import ChunkMode, OverlayView
from heimdall.vocabulary.processors import CPU, GPU

GRAPH_FRAMES = 150  # at most
_WIDE = 300  # design pixels: 44 letters
# One colour a network, in panel and timeline; told apart by eyes that confuse red and green too.
COLORS = ("#56b4e9", "#e69f00", "#cc79a7", "#00b894", "#f0e442", "#b197fc", "#ff8787", "#a3e635")
_SPEEDS = np.array([shapes.rgba(color) for color in ("#33b873e0", WARN, BAD)])  # of a frame
_SMALL, _LINE = 12, 16  # design pixels: letters, and from one line to the next
_PIECES: Mapping[str, str] = {
    ChunkMode.ELASTIC: "fills the gaps",
    ChunkMode.STATIC: "one piece a gap",
}
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
    makes: str = "results"  # what these are


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
        self._frames = min(GRAPH_FRAMES, self.px(_WIDE) // self._column)
        self._wide = self._frames * self._column
        self._edge, self._left = self.px(12), self.px(22)
        self._right = self._left + self._wide
        self._y = self._edge + self.px(6)
        self._head(status)
        self._frame_times(status)
        if not small:
            for number, dnn in enumerate(status.dnns):
                self._dnn(dnn, COLORS[number % len(COLORS)])
            self._foot(status)
        self._message(status.message)
        self.ground(self._edge, self._edge, self._right + self.px(10), self._y)

    def columns(self, status: Status) -> np.ndarray:
        """The graph: a column each of the last frame intervals, as rectangles."""
        recent = np.asarray(status.frame_ms[-self._frames :], np.float32)
        top, height = self._graph
        # The line at half height is the target: a missed frame fills the graph.
        share = recent * (status.fps_target / 2000)
        tall = np.minimum(np.maximum(np.rint(share * height), 1), height)
        # Neighbours of one height are one rectangle: a steady frame rate draws hardly any.
        new = np.ones(len(recent), bool)
        np.not_equal(tall[1:], tall[:-1], out=new[1:])
        starts = new.nonzero()[0]
        share = share[starts]
        left = self._left + self._column * (self._frames - len(recent))
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
        after = self.put("fps", after + self.px(5), self._y + self.px(19), _SMALL, DIM)
        top, room = self._y, self._right - after - self.px(10)
        self.put_right(status.app, self._right, top + self.px(3), 13, INK, room)
        target = f"target {status.fps_target:g} fps, {status.late_frames} late"
        self.put_right(target, self._right, top + self.px(19), _SMALL, DIM, room)
        self._y = top + self.px(41)

    def _frame_times(self, status: Status) -> None:
        """The graph's ground; in its upper half, which only missed frames reach, what it shows."""
        height = self.px(_LINE) * 2
        self._graph = (self._y, height)
        self.box(self._left, self._y, self._right, self._y + height, "#ffffff12")
        middle = self._y + height // 2
        self.box(self._left, middle, self._right, middle + 1, "#ffffff60")
        if status.fps_target:
            says = f"time from frame to frame; line: {1000 / status.fps_target:.0f} ms"
            self.put(says, self._left + self.px(3), self._y, _SMALL, DIM)
        self._y += height + self.px(8)

    def _dnn(self, dnn: DnnStatus, color: str) -> None:
        """Its colour and name; latency against the constraint in numbers and as a bar; below it the
        processor, the rate and age of its results, the exit that made the newest, and how many
        were late."""
        top, left, indent = self._y, self._left, self._left + self.px(13)
        side = self.px(8 if dnn.active else 5)
        middle = top + self.px(9)
        self.box(left, middle - side // 2, left + side, middle - side // 2 + side, color)
        latency = "–" if dnn.latency_ms is None else f"{dnn.latency_ms:.0f}"
        late = dnn.latency_ms is not None and dnn.latency_ms > dnn.constraint_ms
        takes = f"{latency} ms of {dnn.constraint_ms:.0f} allowed"
        room = self._right - self.width(takes, _SMALL) - self.px(8)
        self.put(self.fitted(dnn.name, 13, room - indent), indent, top, 13, INK, bold=True)
        self.put_right(takes, self._right, top + self.px(1), _SMALL, BAD if late else INK, room)
        self._y = top + self.px(19)
        self._bar((dnn.latency_ms or 0.0) / max(dnn.constraint_ms, 1e-3))
        end = self._right
        if dnn.misses:
            text = f"{dnn.misses} late"
            end -= self.width(text, _SMALL) + self.px(6)
            self.put_right(text, self._right, self._y, _SMALL, WARN, self._wide)
        tag = _PROCESSOR.get(dnn.processor, DIM)
        after = self.put(f"on {dnn.processor.upper()}", indent, self._y, _SMALL, tag)
        self.put(self.fitted(_results(dnn), _SMALL, end - after), after, self._y, _SMALL, DIM)
        self._y += self.px(_LINE + 3)

    def _bar(self, share: float) -> None:
        left, bottom = self._left + self.px(12), self._y + max(2, self.px(3))
        end = left + (self._right - left) * min(share, 1.0)
        self.box(end, self._y, self._right, bottom, TRACK)
        tint = GOOD if share < 0.8 else WARN if share <= 1 else BAD
        self.box(left, self._y, end, bottom, tint)
        self._y = bottom + self.px(2)

    def _foot(self, status: Status) -> None:
        used = "–" if status.gap_utilization is None else f"{status.gap_utilization:.0%}"
        lines = [
            f"gaps between frames: GPU {used} busy",
            f"policy {status.scheduler}, {status.mode}: {_PIECES.get(status.mode, '')}",
        ]
        if status.picture_age_ms is not None:
            lines.append(f"camera picture {status.picture_age_ms:.0f} ms old when shown")
        lines.append(f"GPU: {status.device}")
        for text in lines:
            self._write(self.fitted(text, _SMALL, self._wide), DIM)
        reason = self.wrapped(status.reason, _SMALL, self._wide)
        for text in [*reason, "", ""][:2]:  # always two: the panel keeps its size
            self._write(text, INK)

    def _message(self, message: str) -> None:
        for line in self.wrapped(message, _SMALL, self._wide)[:3]:
            self._write(line, BAD)
        self._y += self.px(4)

    def _write(self, text: str, color: str) -> None:
        """A line of its own."""
        self.put(text, self._left, self._y, _SMALL, color)
        self._y += self.px(_LINE)


def _results(dnn: DnnStatus) -> str:
    """What is to be said of its results, after where they are made."""
    if dnn.age_ms is None:
        return ", no new result"
    made = f" by {dnn.exit}" if dnn.exit else ""
    return f", {dnn.rate_hz:.1f} {dnn.makes}/s, {_age(dnn.age_ms)} old{made}"


def _age(age_ms: float) -> str:
    return f"{age_ms / 1000:.1f} s" if age_ms >= 1000 else f"{age_ms:.0f} ms"
