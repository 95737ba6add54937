"""The paper's numbers, and how they are shown."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from benchmarks.paper.values import Figure, look_up, read_values, shown

ASKED_FOR = ("2", "4", "5", "7", "8", "9", "10", "11", "12", "14", "15", "16", "17", "18")


def test_every_figure_and_table_of_the_measurements_is_there():
    names = " ".join(figure.name.partition("(")[0] for figure in read_values())
    words = set(names.split())
    assert {*ASKED_FOR, "Energy"} <= words
    assert [n for n in ("Table 2", "Table 3", "Table 4") if n not in names] == []


def test_the_headline_is_the_papers():
    paper = {row.at: row.paper for figure in read_values() for row in figure.rows}
    assert paper["runs/shopping multithread/fps"] == {"mean": 11.99, "min": 6.82, "max": 17.70}
    assert paper["runs/shopping max-total/fps"] == 29.96
    latency = "runs/shopping max-total/dnns/style/latency_ms"
    assert paper[latency] == {"mean": 109, "max": 139}
    assert paper["derived/reduction/max-total"] == 14.92


def test_every_figure_says_where_it_differs():
    for figure in read_values():
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
        ({"mean": 409.2, "p50": 400.0, "p99": 540.0, "max": 548.0}, "", "409, at most 548"),
        ({"mean": None, "p50": None, "p99": None, "max": None}, "", "–"),
    ],
)
def test_a_value_is_shown_as_long_as_it_needs(value, unit, text):
    assert shown(value, unit) == text
