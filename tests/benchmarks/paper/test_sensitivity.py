"""Where headlines hold."""

from __future__ import annotations

import pytest

from benchmarks.paper import ranges, sensitivity
from benchmarks.paper.kept import Kept, perform
from benchmarks.paper.sensitivity import Parameter, holding, in_words
from benchmarks.paper.values import Headline

HEADLINE = Headline(
    claim="speed", section="1", at="runs/a/fps", paper=10, within=0.1, command="c", why="w"
)


@pytest.fixture
def two(monkeypatch):
    """Two parameters, and two systems."""
    found = (
        Parameter("turn_ms", "turn, ms", (12, 29), 29),
        Parameter("scatter", "places", (0, 1), 0),
        Parameter("part_cost_ms", "part, ms", (0, 0.4), 0, of_all=False),
    )
    monkeypatch.setattr(sensitivity, "parameters", lambda: found)
    monkeypatch.setattr(ranges, "parameters", lambda: found)
    monkeypatch.setattr(sensitivity, "RUNS", ("shopping multithread", "shopping max-total"))
    return found


def quiet(what, done, total):
    """No progress."""


@pytest.fixture
def tried(two, tmp_path):
    kept = Kept(tmp_path / "results.jsonl", "now")
    tasks = [point.task for point in sensitivity.points(1, 2.0)]
    perform(tasks, kept, 0, "", quiet)
    return sensitivity.collected(kept, 1, 2.0)


def test_a_shorter_turn_of_the_driver_leaves_the_baseline_more_frames(tried):
    rates = {
        value: results["runs"]["shopping multithread"]["fps"]["mean"]["mean"]
        for value, results in tried["turn_ms"]
    }
    assert rates[12] > 1.5 * rates[29]


def test_what_only_a_coordinator_has_leaves_baselines_out(tried):
    assert "shopping multithread" not in tried["part_cost_ms"][1][1]["runs"]


def test_places_of_fallback_ops_change_a_network(tried):
    style = [
        results["runs"]["shopping multithread"]["dnns"]["style"]["latency_ms"]["mean"]["mean"]
        for _, results in tried["scatter"]
    ]
    assert style[0] != style[1]


def test_the_usual_value_is_run_once_for_all_parameters(two):
    points = sensitivity.points(1, 2.0)
    usual = {point.task.key for point in points if not point.changes}
    assert len(usual) == 2


def test_there_is_a_picture(tried):
    figure = ranges.draw(tried)
    assert figure is not None
    assert len(figure.axes) == 3 * 7
    assert ranges.draw({}) is None


def test_a_headline_holds_where_its_mean_is_within_the_bounds():
    tried = [(value, {"runs": {"a": {"fps": {"mean": rate}}}}) for value, rate in
             ((1, 9.5), (2, 10.9), (3, 12.0), (4, 10.0))]  # fmt: skip
    held = holding(HEADLINE, [*tried, (5, {})])
    assert held == [(1, True), (2, True), (3, False), (4, True)]
    assert in_words(held) == "1 to 2, 4"


@pytest.mark.parametrize(
    ("held", "words"),
    [
        ([], "–"),
        ([(1, True), (2, True)], "all"),
        ([(1, False)], "none"),
        ([("a", True), ("b", True), ("c", False)], "a, b"),
    ],
)
def test_ranges_in_words(held, words):
    assert in_words(held) == words
