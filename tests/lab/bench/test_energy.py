"""Power from energy counters, here files in a folder."""

from __future__ import annotations

import pytest

from heimdall.lab.bench.energy import EnergyMeter


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
