"""What grows, by made-up samples."""

from __future__ import annotations

import random

import pytest

from heimdall.lab.faults.chance import ALL
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.soak import Samples, by_second, gained, slope_per_minute, soaked
from heimdall.lab.faults.trial import Outcome
from tests.lab.faults.series import S, seen

SECONDS = [float(each) for each in range(120)]


def test_a_slope_is_that_of_what_has_settled():
    growing = [100 + (50 if each < 20 else 51) + each / 60 for each in SECONDS]
    assert slope_per_minute(SECONDS, growing) == pytest.approx(1.0)


def test_noise_and_single_jumps_are_no_slope():
    noise = random.Random(1)
    values = [100 + noise.gauss(0, 0.2) + (30 if each == 70 else 0) for each in SECONDS]
    assert abs(slope_per_minute(SECONDS, values)) < 0.3


def test_too_short_a_run_has_no_slope():
    assert slope_per_minute([1.0, 2.0], [5.0, 6.0]) is None


def test_what_comes_and_goes_is_not_gained():
    assert gained([10, 11, 10, 12] * 30) == 0
    assert gained([10 + each // 30 for each in range(120)]) == 2
    assert gained([10]) == 0


def test_the_longest_interval_of_each_second():
    found = by_second([0, S // 2, S // 2 + S // 10, 3 * S // 2])
    assert found == {"s": [0.0, 1.0], "longest_ms": [500.0, 900.0]}
    assert by_second([S]) == {"s": [], "longest_ms": []}


@pytest.mark.parametrize(
    ("memory", "threads", "why"),
    [
        ([100.0] * 120, [8] * 120, []),
        ([100 + each / 60 for each in SECONDS], [8] * 120, ["memory grows by 1.00 MB a minute"]),
        ([100.0] * 120, [8 + (each > 90) for each in SECONDS], ["1 threads gained"]),
    ],
)
def test_bounds(memory, threads, why):
    samples = Samples(SECONDS, memory, threads, [20] * 120)
    summary = {"late_frames": 3, "errors": ["injected"]}
    outcome = Outcome(seen(), 0, 15 * S, summary, [], [])
    found = soaked(Request("emoji"), ALL, outcome, samples)
    assert found["why"] == why
    assert found["late_frames"] == 3
