from __future__ import annotations

import random
import statistics

import pytest

from heimdall.lab.simulator.cores import Cores, Threads, noise_source


def quiet(count: int, contention: float = 0.0) -> Cores:
    return Cores(count, contention, lambda: 1.0)


def test_work_on_a_core_of_its_own_takes_its_time():
    cores = quiet(2)
    assert cores.end_ns(100, 50) == 150
    assert cores.end_ns(100, 50) == 150
    assert cores.busy_ns == 100


def test_more_work_than_cores_takes_longer():
    cores = quiet(1)
    cores.end_ns(0, 1000)
    assert cores.end_ns(0, 1000) == 2000


def test_work_beside_other_work_is_slowed():
    cores = quiet(4, contention=0.1)
    cores.end_ns(0, 1000)
    cores.end_ns(0, 1000)
    assert cores.end_ns(0, 1000) == 1200


def test_work_that_all_cores_share_takes_a_part_of_its_time():
    cores = quiet(4, contention=0.1)
    assert cores.shared_end_ns(100, 1000) == 100 + 1000 / 4 * 1.3
    assert cores.busy_ns == 1300


def test_what_shares_all_cores_takes_turns_on_them():
    cores = quiet(4)
    cores.shared_end_ns(0, 1000)
    assert cores.shared_end_ns(0, 1000) == 500
    assert cores.busy_ns == 2000


def test_one_thread_serves_in_order_of_arrival():
    thread = Threads(quiet(4))
    assert [thread.end_ns(0, 10), thread.end_ns(5, 10), thread.end_ns(50, 10)] == [10, 20, 60]


def test_noise_has_mean_one_and_the_spread_asked_for():
    noise = noise_source(random.Random(1), 0.2)
    seen = [noise() for _ in range(20_000)]
    assert statistics.fmean(seen) == pytest.approx(1, abs=0.01)
    assert statistics.stdev(seen) == pytest.approx(0.2, abs=0.01)
    assert noise_source(random.Random(1), 0)() == 1
