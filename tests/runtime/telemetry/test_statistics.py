from __future__ import annotations

import math
import random

import pytest

from heimdall.errors import ArgumentError
from heimdall.runtime.telemetry.statistics import interval, over_runs, quantile


@pytest.mark.parametrize(
    ("count", "t"),  # of any table of Student's distribution, two-sided 95%
    [(2, 12.706), (3, 4.303), (4, 3.182), (5, 2.776), (6, 2.571), (16, 2.131), (31, 2.042)],
)
def test_the_interval_is_students(count, t):
    values = [0.0] * (count - 1) + [1.0]
    deviation = math.sqrt((count - 1) / count / (count - 1))
    found = interval(values)
    assert found.mean == pytest.approx(1 / count)
    assert found.half == pytest.approx(t * deviation / math.sqrt(count), rel=1e-3)
    assert (found.least, found.most, found.n) == (0.0, 1.0, count)


def test_it_holds_the_true_mean_as_often_as_asked():
    draw = random.Random(1)
    held = 0
    for _ in range(2000):
        found = interval([draw.gauss(10, 3) for _ in range(4)], level=0.9)
        held += found.low <= 10 <= found.high
    assert held / 2000 == pytest.approx(0.9, abs=0.02)


def test_equal_values_have_no_width():
    found = interval([2, 2, 2])
    assert (found.mean, found.low, found.high) == (2, 2, 2)


def test_of_a_single_run_nothing_can_be_said():
    found = interval([5.0])
    assert (found.mean, found.low, found.high, found.half, found.n) == (5.0, None, None, None, 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: interval([]),
        lambda: interval([1.0, math.nan]),
        lambda: interval([1.0], level=1),
        lambda: quantile([], 0.5),
        lambda: quantile([1.0], 1.5),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(ArgumentError):
        call()


def test_a_quantile_lies_between_two_values_in_proportion():
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([0, 10], 0.9) == pytest.approx(9)


def test_runs_are_summed_up_place_by_place():
    summaries = [
        {
            "seed": 1,
            "fps": {"mean": 30.0, "note": "x"},
            "misses": 1,
            "size": [1, 2],
            "rate": None,
            "is": True,
        },
        {"fps": {"mean": 28.0, "note": "y"}, "misses": 3, "size": [1, 2], "rate": 2, "is": True},
    ]
    found = over_runs(summaries)
    assert set(found) == {"fps", "misses", "rate"}
    assert found["fps"] == {"mean": found["fps"]["mean"]}
    assert found["misses"] == {
        "mean": 2.0,
        "low": pytest.approx(2 - 12.7062, abs=1e-3),
        "high": pytest.approx(2 + 12.7062, abs=1e-3),
        "least": 1,
        "most": 3,
        "n": 2,
    }
    assert found["rate"] == {"mean": 2, "low": None, "high": None, "least": 2, "most": 2, "n": 1}
