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
def registered_models(watched):
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


def test_words_are_renewed_after_a_while_and_the_title_only_if_it_changes(registered_models):
    registered_models.display.refresh(0, "one", "")
    registered_models.display.refresh(STATUS_INTERVAL_NS - 1, "two", "")
    assert [status.reason for status in registered_models.overlay.laid_out] == ["one"]
    registered_models.display.refresh(STATUS_INTERVAL_NS, "two", "")
    registered_models.display.refresh(2 * STATUS_INTERVAL_NS, "two", "")
    assert [status.reason for status in registered_models.overlay.laid_out] == ["one", "two", "two"]
    assert registered_models.titles == ["Watched app · one", "Watched app · two"]


def test_what_cannot_wait_is_laid_out_at_once(registered_models):
    registered_models.display.refresh(0, "one", "")
    registered_models.overlay.wants_words = True
    registered_models.display.refresh(1, "two", "draw failed")
    assert registered_models.overlay.laid_out[-1].message == "draw failed"


def test_every_frame_shows_the_newest_figures_notice_and_view(registered_models):
    registered_models.display.refresh(0, "one", "")
    for frame in range(10):
        registered_models.figures.frame(frame * 50 * MS, 0, 0, MS)
    registered_models.controls.notice, registered_models.controls.view = "saved a.png", "small"
    registered_models.display.draw(7)
    (status,) = registered_models.overlay.shown
    assert status.fps == pytest.approx(20)
    assert len(status.frame_ms) == 9
    assert (status.notice, status.view, status.now_ns) == ("saved a.png", "small", 7)
    assert status.reason == "one"  # words are those that were laid out


def test_spans_wait_until_the_timeline_is_shown(registered_models):
    registered_models.spans.span("gpu", "eye", 1, 2, {})
    registered_models.display.paint(5)
    assert registered_models.overlay.painted == []
    registered_models.controls.view = "timeline"
    registered_models.display.paint(6)
    assert registered_models.overlay.painted == [6]
    assert registered_models.overlay.spans == [Span(1, "eye", 1, 2)]


def test_printing_is_left_to_the_overlay(registered_models):
    registered_models.display.print()
    assert registered_models.overlay.prints == 1
