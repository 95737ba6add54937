"""Which processor each model is given for good."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.simulator import mapping
from heimdall.lab.simulator.mapping import balanced, numbers_a_round

ONE_LANE = {"gpu": 1, "npu": 1}


def requests(name: str) -> Scenario:
    scenario = load_scenario(name)
    return scenario


def longest(chosen, times, numbers, lanes):
    """What the processor with the most to do has, each lane with whole models."""
    found = []
    for processor, count in lanes.items():
        work = [
            numbers[name] * times[name][processor] for name in chosen if chosen[name] == processor
        ]
        found.append(max(max(work, default=0.0), sum(work) / count))
    return max(found)


def test_a_model_alone_is_where_it_is_fastest():
    assert balanced({"a": {"gpu": 9, "npu": 2}}, {"a": 1.0}, ONE_LANE) == {"a": "npu"}


def test_who_would_wait_goes_to_a_slower_one():
    times = {"a": {"gpu": 5, "npu": 4}, "b": {"gpu": 5, "npu": 4}}
    assert sorted(balanced(times, {"a": 1.0, "b": 1.0}, ONE_LANE).values()) == ["gpu", "npu"]


def test_how_many_requests_come_counts():
    times = {"often": {"gpu": 2, "npu": 1}, "seldom": {"gpu": 2, "npu": 1}}
    found = balanced(times, {"often": 10.0, "seldom": 1.0}, ONE_LANE)
    assert found == {"often": "npu", "seldom": "gpu"}


def test_a_processor_of_two_lanes_runs_two_models_but_never_one_of_them_twice_as_fast():
    lanes = {"gpu": 1, "cpu": 2}
    times = {name: {"gpu": 5, "cpu": 6} for name in "abc"}
    assert sorted(balanced(times, dict.fromkeys("abc", 1.0), lanes).values()) == [
        "cpu", "cpu", "gpu",
    ]  # fmt: skip
    assert balanced({"a": {"gpu": 5, "cpu": 6}}, {"a": 1.0}, lanes) == {"a": "gpu"}


def test_only_processors_that_run_a_model_are_chosen():
    assert balanced({"a": {"npu": 50}}, {"a": 1.0}, ONE_LANE) == {"a": "npu"}


TIME = st.integers(1, 50)


@given(
    rows=st.lists(st.tuples(TIME, TIME, st.integers(1, 5)), min_size=1, max_size=5),
    lanes=st.integers(1, 3),
)
def test_no_other_mapping_leaves_the_busiest_less(rows, lanes):
    times = {f"m{i}": {"gpu": gpu, "cpu": cpu} for i, (gpu, cpu, _) in enumerate(rows)}
    numbers = {f"m{i}": float(count) for i, (_, _, count) in enumerate(rows)}
    there = {"gpu": 1, "cpu": lanes}
    found = balanced(times, numbers, there)
    others = (dict(zip(times, each, strict=True)) for each in product(there, repeat=len(times)))
    best = min(longest(each, times, numbers, there) for each in others)
    assert longest(found, times, numbers, there) == pytest.approx(best)


@given(rows=st.lists(st.tuples(TIME, TIME), min_size=1, max_size=6))
def test_where_there_are_too_many_to_try_every_model_still_gets_one(rows):
    times = {f"m{i}": {"gpu": gpu, "npu": npu} for i, (gpu, npu) in enumerate(rows)}
    numbers = dict.fromkeys(times, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mapping, "_MOST_TRIED", 0)
        found = balanced(times, numbers, ONE_LANE)
    assert found.keys() == times.keys()
    alone = sum(min(each.values()) for each in times.values())  # never worse than one after another
    assert longest(found, times, numbers, ONE_LANE) <= alone


def test_a_round_counts_what_follows_from_what():
    scenario = requests("band-eagleeye")
    found = numbers_a_round(scenario)
    assert found
    assert all(number > 0 for number in found.values())
    for name, number in found.items():
        own = scenario.models[name].numbers
        before = scenario.models[name].after
        mean = sum(own) / len(own)
        assert number == pytest.approx(mean * (found[before] if before is not None else 1))


def test_without_a_closed_loop_there_is_no_round():
    assert numbers_a_round(requests("split-1")) == {}
