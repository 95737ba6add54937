"""The paper's numbers, and how they are shown."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from benchmarks.paper.runs import all_runs
from benchmarks.paper.values import Figure, Headline, look_up, read_values, shown

ASKED_FOR = ("2", "4", "5", "7", "8", "9", "10", "11", "12", "14", "15", "16", "17", "18")


def test_every_figure_and_table_of_the_measurements_is_there():
    names = " ".join(figure.name.partition("(")[0] for figure in read_values().figure)
    words = set(names.split())
    assert {*ASKED_FOR, "Energy", "Section"} <= words
    assert [n for n in ("Table 2", "Table 3", "Table 4") if n not in names] == []


def test_the_numbers_are_the_papers():
    lines = [line for each in read_values().figure for row in each.rows for line in row.lines()]
    paper = {line.at: line.paper for line in lines}
    baseline = "runs/shopping multithread/fps"
    assert [paper[f"{baseline}/{part}"] for part in ("mean", "min", "max")] == [11.99, 6.82, 17.70]
    latency = "runs/shopping max-total-static/dnns/style/latency_ms"
    assert [paper[f"{latency}/{part}"] for part in ("mean", "max")] == [109, 139]
    assert paper["runs/shopping multithread/dnns/style/latency_ms/max"] == 2074
    assert paper["runs/shopping multithread/dnns/style/latency_ms/mean"] is None
    assert paper["derived/reduction/max-total-static"] == 14.92
    assert paper["networks/CPM/ops"] == 187


def test_headlines_have_bounds_and_say_why_they_may_not_hold():
    headlines = read_values().headline
    assert headlines
    for headline in headlines:
        assert headline.bounds() != (float("-inf"), float("inf")), headline.claim
        assert headline.why.strip()
        assert headline.command.startswith(("heimdall ", "python -m benchmarks.paper"))


def over(mean, half, least, most):
    found = {"mean": mean, "low": mean - half, "high": mean + half, "n": 5}
    return {**found, "least": least, "most": most}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (over(100, 2, 97, 103), "reproduced"),
        (over(118, 5, 110, 125), "partly"),
        (over(130, 2, 120, 140), "not"),
        ({"mean": 120, "low": None, "high": None, "least": 120, "most": 120, "n": 1}, "not"),
        (None, "not run"),
    ],
)
def test_a_verdict_is_about_all_seeds(found, verdict):
    headline = Headline(
        claim="c", section="1", at="a", paper=100, within=0.15, command="c", why="w"
    )
    assert headline.verdict(found) == verdict


def test_a_figure_knows_its_runs():
    figures = {figure.name: figure for figure in read_values().figure}
    assert set(figures["Fig. 4"].runs()) == {
        "nothing but drawn",
        *(f"{n} drawn" for n in (1, 2, 3, 4)),
    }
    assert {"alone", "together"} <= set(figures["Fig. 2(a)"].runs())
    assert figures["Table 3"].runs() == []


def test_every_run_that_a_number_comes_from_is_run():
    known = {run.name for run in all_runs()}
    for figure in read_values().figure:
        assert set(figure.runs()) <= known, figure.name


def test_every_figure_says_where_it_differs():
    for figure in read_values().figure:
        assert figure.note.strip().endswith("."), figure.name


def test_a_key_that_means_nothing_is_refused():
    row = {"what": "a", "at": "b", "papre": 1}
    with pytest.raises(ValidationError, match="papre"):
        Figure.model_validate(
            {"name": "x", "section": "1", "title": "t", "note": "n.", "rows": [row]}
        )


def test_paths_lead_through_names():
    results = {"runs": {"a run": {"fps": 30.0}}}
    assert look_up(results, "runs/a run/fps") == 30.0
    assert look_up(results, "runs/another/fps") is None
    assert look_up(results, "runs/a run/fps/mean") is None
    assert look_up(None, "runs") is None


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "", "–"),
        ("almost none", "%", "almost none"),
        (14, "", "14"),
        (14.92, "", "14.92"),
        (1181.4, "", "1181"),
        (0.898, "%", "89.8%"),
        ({"mean": 11.99, "min": 6.82, "max": 17.7}, "", "11.99 (6.82 to 17.70)"),
        ({"mean": 59.93, "std": 3.68}, "", "59.9 ± 3.68"),
        ({"mean": 409.2, "low": 400.0, "high": 420.0, "n": 5}, "", "409 [400, 420]"),
        ({"mean": 30.0, "low": 29.999, "high": 30.001, "n": 5}, "", "30.00"),
        ({"mean": 30.0, "low": None, "high": None, "n": 1}, "", "30.00 (one run)"),
        ({"mean": None, "p50": None, "p99": None, "max": None}, "", "–"),
    ],
)
def test_a_value_is_shown_as_long_as_it_needs(value, unit, text):
    assert shown(value, unit) == text
