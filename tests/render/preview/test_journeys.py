"""Pictures of a phone on their way, and how long they take."""

from __future__ import annotations

import pytest

from heimdall.render.preview import journeys as module
from heimdall.render.preview.journeys import Journeys

MS = 1_000_000


def test_a_picture_is_followed_from_station_to_station():
    journeys = Journeys()
    journeys.note(10 * MS, sent=12 * MS, received=20 * MS, decoded=22 * MS)
    assert journeys.take() == []
    journeys.note(10 * MS, drawn=40 * MS, encoded=45 * MS, shown=70 * MS)
    (journey,) = journeys.take()
    assert journey.latency_ns == 60 * MS
    names = [name for name, _, _ in journey.legs()]
    assert names == [
        "captured to sent",
        "sent to received",
        "received to decoded",
        "decoded to drawn",
        "drawn to encoded",
        "encoded to shown",
    ]
    assert sum(ended - began for _, began, ended in journey.legs()) == 60 * MS
    assert journeys.take() == []
    assert journeys.latest_ms == pytest.approx(60)


def test_a_picture_that_is_shown_twice_counts_once():
    journeys = Journeys()
    journeys.note(1 * MS, received=2 * MS)
    journeys.note(1 * MS, shown=10 * MS)
    journeys.note(1 * MS, shown=43 * MS)
    assert journeys.summary == {"shown": 1, "p50_ms": 9.0, "p99_ms": 9.0}


def test_what_is_not_told_is_left_out():
    journeys = Journeys()
    journeys.note(1 * MS, received=2 * MS)
    journeys.note(1 * MS, shown=10 * MS)
    assert [name for name, _, _ in journeys.take()[0].legs()] == [
        "captured to received",
        "received to shown",
    ]


@pytest.mark.parametrize("shown", [0, 10_000_000_000_000])
def test_clocks_that_cannot_be_true_do_not_count(shown):
    journeys = Journeys()
    journeys.note(5 * MS, received=6 * MS)
    journeys.note(5 * MS, shown=shown)
    assert journeys.summary["shown"] == 0
    assert journeys.take() == []


def test_pictures_that_are_never_shown_do_not_fill_the_memory():
    journeys = Journeys()
    for at in range(10_000):
        journeys.note(at, received=at)
    assert len(journeys._under_way) < 1000
    journeys.note(0, shown=1)  # it is forgotten
    assert journeys.summary["shown"] == 0


def test_counting_begins_afresh():
    journeys = Journeys()
    assert journeys.latest_ms is None
    assert journeys.summary == {"shown": 0, "p50_ms": None, "p99_ms": None}
    journeys.note(1, received=2)
    journeys.note(1, shown=3)
    journeys.restart()
    assert journeys.summary["shown"] == 0


def test_a_long_run_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 100)
    journeys = Journeys()
    for at in range(1000):
        journeys.note(at * MS, received=at * MS)
        journeys.note(at * MS, shown=at * MS + (9 if at < 500 else 5) * MS)
    assert journeys.summary == {"shown": 1000, "p50_ms": 5.0, "p99_ms": 5.0}
    assert journeys.latest_ms == 5.0
    assert len(journeys._latencies_ns) == 100
