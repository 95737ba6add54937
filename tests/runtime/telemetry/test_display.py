"""When the overlay and the window's title are renewed: words now and then, figures every frame."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from heimdall.render.timeline import Span
from heimdall.runtime.telemetry.display import STATUS_INTERVAL_NS, Display
from heimdall.runtime.telemetry.spans import Spans

MS = 1_000_000


class Overlay:
    """Notes what it is asked for."""

    def __init__(self):
        self.laid_out, self.shown, self.painted, self.spans = [], [], [], []
        self.prints = 0
        self.wants_words = False

    def outdated(self, status):
        return self.wants_words

    def lay_out(self, status):
        self.laid_out.append(status)

    def print(self):
        self.prints += 1

    def add(self, spans, status):
        self.spans += spans

    def paint(self, now_ns):
        self.painted.append(now_ns)

    def show(self, status):
        self.shown.append(status)


@pytest.fixture
def desk(watched):
    """``display`` over a watched run, with an overlay and a window that note what they get."""
    titles: list[str] = []
    overlay, spans = Overlay(), Spans(None)
    canvas = watched.setup.canvas
    canvas.overlay, canvas.surface.set_title = overlay, titles.append
    controls: Any = SimpleNamespace(
        view="panel", notice="", help=(), title=lambda status: f"{status.app} · {status.reason}"
    )
    display = Display(canvas, watched.reporter, watched.figures, controls, spans)
    return SimpleNamespace(
        display=display, overlay=overlay, titles=titles, controls=controls, spans=spans,
        figures=watched.figures,
    )  # fmt: skip


def test_words_are_renewed_after_a_while_and_the_title_only_if_it_changes(desk):
    desk.display.refresh(0, "one", "")
    desk.display.refresh(STATUS_INTERVAL_NS - 1, "two", "")
    assert [status.reason for status in desk.overlay.laid_out] == ["one"]
    desk.display.refresh(STATUS_INTERVAL_NS, "two", "")
    desk.display.refresh(2 * STATUS_INTERVAL_NS, "two", "")
    assert [status.reason for status in desk.overlay.laid_out] == ["one", "two", "two"]
    assert desk.titles == ["Watched app · one", "Watched app · two"]


def test_what_cannot_wait_is_laid_out_at_once(desk):
    desk.display.refresh(0, "one", "")
    desk.overlay.wants_words = True
    desk.display.refresh(1, "two", "draw failed")
    assert desk.overlay.laid_out[-1].message == "draw failed"


def test_every_frame_shows_the_newest_figures_notice_and_view(desk):
    desk.display.refresh(0, "one", "")
    for frame in range(10):
        desk.figures.frame(frame * 50 * MS, 0, 0, MS)
    desk.controls.notice, desk.controls.view = "saved a.png", "small"
    desk.display.draw(7)
    (status,) = desk.overlay.shown
    assert status.fps == pytest.approx(20)
    assert len(status.frame_ms) == 9
    assert (status.notice, status.view, status.now_ns) == ("saved a.png", "small", 7)
    assert status.reason == "one"  # words are those that were laid out


def test_spans_wait_until_the_timeline_is_shown(desk):
    desk.spans.span("gpu", "eye", 1, 2, {})
    desk.display.paint(5)
    assert desk.overlay.painted == []
    desk.controls.view = "timeline"
    desk.display.paint(6)
    assert desk.overlay.painted == [6]
    assert desk.overlay.spans == [Span(1, "eye", 1, 2)]


def test_printing_is_left_to_the_overlay(desk):
    desk.display.print()
    assert desk.overlay.prints == 1
