"""What the overlay and the window's title say, kept up to date between and during frames."""

from __future__ import annotations

from dataclasses import replace

from heimdall.render import Status
from heimdall.runtime.opening.canvas import Canvas
from heimdall.runtime.session.controls import Controls
from heimdall.runtime.telemetry.figures import Figures
from heimdall.runtime.telemetry.report import Reporter
from heimdall.runtime.telemetry.spans import Spans

STATUS_INTERVAL_NS = 200_000_000


class Display:
    """New words a few times a second, laid out while no frame is being drawn, and printed after
    one; new figures every frame."""

    def __init__(
        self, canvas: Canvas, reporter: Reporter, figures: Figures, controls: Controls, spans: Spans
    ) -> None:
        self._surface, self._overlay = canvas.surface, canvas.overlay
        self._reporter, self._figures = reporter, figures
        self._controls, self._spans = controls, spans
        self._status = self.latest = reporter.status(0, "", "")
        self._due_ns = 0
        self._title = ""

    def refresh(self, now_ns: int, reason: str, message: str) -> None:
        """New words if it is time; ``reason`` is that of the last choice."""
        if now_ns < self._due_ns and not self._overlay.outdated(self._current(now_ns)):
            return
        self._due_ns = now_ns + STATUS_INTERVAL_NS
        self.lay_out(now_ns, reason, message)
        title = self._controls.title(self._status)
        if title != self._title:
            self._title = title
            self._surface.set_title(title)

    def lay_out(self, now_ns: int, reason: str, message: str) -> None:
        """Lay out new words, to be printed."""
        self._status = self._reporter.status(now_ns, reason, message)
        self.latest = self._current(now_ns)
        self._overlay.lay_out(self.latest)

    @property
    def covered(self) -> list[tuple[int, int, int, int]]:
        """The places of the surface that words are drawn over."""
        return self._overlay.covered

    def print(self) -> None:
        """Have the GPU, which must be free, draw new words if there are any."""
        self._overlay.print()

    def paint(self, now_ns: int) -> None:
        """Renew the timeline, before the frame is drawn."""
        if self._controls.view == "timeline":
            self._overlay.add(self._spans.fetch(), self._status)
            self._overlay.paint(now_ns)

    def draw(self, now_ns: int) -> None:
        """Draw over the frame."""
        self._overlay.show(self._current(now_ns))

    def _current(self, now_ns: int) -> Status:
        controls = self._controls
        return replace(
            self._status,
            fps=self._figures.recent_fps(),
            frame_ms=tuple(self._figures.recent_ms),
            notice=controls.notice,
            view=controls.view,
            help=controls.help,
            now_ns=now_ns,
        )
