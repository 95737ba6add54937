"""Spans of work: for the timeline as they come, and for the tracer, if there is one."""

from __future__ import annotations

import threading

import pytest

from heimdall.render.timeline import LANES, Span
from heimdall.runtime.telemetry.spans import Spans
from heimdall.runtime.telemetry.trace import Tracer


def test_what_is_new_is_fetched_once_with_the_number_of_its_lane():
    spans = Spans(None)
    spans.span("gpu", "eye [3:7]", 10, 20, {})
    spans.span("render", "frame", 20, 30, {})
    assert spans.fetch() == [Span(1, "eye", 10, 20), Span(0, "frame", 20, 30)]
    assert spans.fetch() == []
    spans.span("cpu", "eye", 30, 40, {})
    assert spans.fetch() == [Span(list(map(str, LANES)).index("cpu"), "eye", 30, 40)]


def test_other_lanes_are_the_tracers_alone():
    tracer = Tracer(0)
    spans = Spans(tracer)
    spans.span("pool-0", "eye decode", 10, 20, {"job": 1})
    spans.span("gpu", "eye", 10, 20, {"job": 1})
    assert spans.fetch() == [Span(1, "eye", 10, 20)]
    assert tracer.spans == [
        ("pool-0", "eye decode", 10, 20, {"job": 1}),
        ("gpu", "eye", 10, 20, {"job": 1}),
    ]


def test_spans_that_are_not_fetched_do_not_fill_the_memory():
    spans = Spans(None)
    for number in range(5000):
        spans.span("gpu", "eye", number, number + 1, {})
    kept = spans.fetch()
    assert len(kept) < 5000
    assert kept[-1] == Span(1, "eye", 4999, 5000)  # the newest


def test_spans_come_from_any_thread():
    spans = Spans(None)
    found = []

    def work(name):
        for number in range(100):
            spans.span("gpu", name, number, number + 1, {})

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found += spans.fetch()
    found += spans.fetch()
    for name in "ab":
        assert [span[2] for span in found if span[1] == name] == list(range(100))


def test_further_processors_have_lanes_below_the_usual_ones():
    spans = Spans(None, ["gpu2", "remote"])
    for lane in ("remote", "gpu2", "pool"):
        spans.span(lane, "eye", 1, 2, {})
    assert spans.fetch() == [Span(len(LANES) + 1, "eye", 1, 2), Span(len(LANES), "eye", 1, 2)]


@pytest.mark.parametrize(("lane", "number"), [("gpu", 1), ("gpu2", len(LANES))])
def test_jobs_that_run_together_share_the_lane_of_their_processor(lane, number):
    spans, together = Spans(None, ["gpu2"]), ["eye", "ear", "eye"]
    for row, dnn in enumerate(together):
        spans.span(lane, dnn, 10, 20, {"together": together, "row": row})
    assert spans.fetch() == [
        Span(number, "eye", 10, 20, 0, 3),
        Span(number, "ear", 10, 20, 1, 3),
        Span(number, "eye", 10, 20, 2, 3),
    ]
