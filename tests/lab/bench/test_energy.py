"""Power from energy counters, here files in a folder."""

from __future__ import annotations

import threading

import pytest

from heimdall.lab.bench.energy import EnergyMeter, inference_mj


@pytest.fixture
def counter(tmp_path):
    """Sets the counters of a package."""

    def write(package, energy_uj, range_uj=10**9):
        folder = tmp_path / package
        folder.mkdir(exist_ok=True)
        (folder / "energy_uj").write_text(f"{energy_uj}\n")
        (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")

    return write


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when told."""
    now = [1000.0]
    monkeypatch.setattr("heimdall.lab.bench.energy.time.perf_counter", lambda: now[0])
    return now


def test_the_power_of_all_packages_adds_up(tmp_path, counter, clock):
    counter("intel-rapl:0", 5_000_000)
    counter("intel-rapl:1", 0)
    meter = EnergyMeter(tmp_path)
    counter("intel-rapl:0", 25_000_000)
    counter("intel-rapl:1", 10_000_000)
    clock[0] += 10
    assert meter.watts() == 3.0


def test_parts_of_a_package_do_not_count_twice(tmp_path, counter, clock):
    for package in ("intel-rapl:0", "intel-rapl:0:0"):
        counter(package, 0)
    meter = EnergyMeter(tmp_path)
    for package in ("intel-rapl:0", "intel-rapl:0:0"):
        counter(package, 4_000_000)
    clock[0] += 2
    assert meter.watts() == 2.0


def test_a_counter_that_began_again_goes_on(tmp_path, counter, clock):
    counter("intel-rapl:0", 9_000_000, range_uj=9_999_999)
    meter = EnergyMeter(tmp_path)
    counter("intel-rapl:0", 1_000_000, range_uj=9_999_999)
    clock[0] += 1
    assert meter.watts() == 2.0


def test_without_counters_there_is_no_power(tmp_path, counter, clock):
    clock[0] += 1
    assert EnergyMeter(tmp_path / "nothing").watts() is None
    meter = EnergyMeter(tmp_path)
    counter("intel-rapl:0", 1)  # only readable later
    clock[0] += 1
    assert meter.watts() is None


def test_a_damaged_counter_is_none(tmp_path, counter, clock):
    counter("intel-rapl:0", "?")
    meter = EnergyMeter(tmp_path)
    clock[0] += 1
    assert meter.watts() is None


def test_a_runs_energy_is_its_inferences_by_what_they_take_alone():
    found = inference_mj(3.0, {"a": 10, "b": 5}, {"a": 1e6, "b": 4e6})
    assert found == {"a": pytest.approx(100), "b": pytest.approx(400)}
    assert 10 * found["a"] + 5 * found["b"] == pytest.approx(3000)


def test_where_nothing_is_measured_or_finished_an_inference_has_no_energy():
    assert inference_mj(None, {"a": 1}, {"a": 1e6}) is None
    assert inference_mj(3.0, {}, {"a": 1e6}) is None


def test_a_counter_may_start_again_several_times_in_a_run(tmp_path, counter, clock):
    """65 kJ, as Intel's do, last a quarter of an hour at 70 W."""
    range_uj = 65_532_610_987
    counter("intel-rapl:0", 0, range_uj)
    meter = EnergyMeter(tmp_path)
    total_uj = 0
    for _ in range(40):  # 90 s each, read now and then
        total_uj += 90 * 70_000_000
        counter("intel-rapl:0", total_uj % (range_uj + 1), range_uj)
        meter.read()
    clock[0] += 3600
    assert meter.watts() == 70.0
    assert meter.joules() == pytest.approx(252_000)
    assert any(thread.name == "energy" for thread in threading.enumerate())


def test_the_thread_that_reads_counters_ends_with_the_meter(tmp_path, counter, monkeypatch):
    monkeypatch.setattr("heimdall.lab.bench.energy.EVERY_S", 0.001)
    counter("intel-rapl:0", 0)
    before = set(threading.enumerate())
    meter = EnergyMeter(tmp_path)
    (reads,) = set(threading.enumerate()) - before
    del meter
    reads.join(20)
    assert not reads.is_alive()
