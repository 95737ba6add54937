"""Scenarios of requests, simulated: what a summary says, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.bench.timeline import read_timeline
from heimdall.lab.simulator.seeds import simulate_seeds
from heimdall.lab.simulator.simulate import simulate

DEVICE = """
title = "Two processors"
[processors.gpu]
name = "Chip"
kind = "gpu"
[processors.cpu]
name = "Cores"
lanes = 2
[networks.long]
ops = 20
ms = { gpu = 60, cpu = 200 }
unsupported = { gpu = [[8, 10]] }
[networks.short]
ops = 10
ms = { gpu = 10 }
"""
SCENARIO = """
title = "Two models"
device = "{device}"
system = "{system}"
requests = 300
[models.long]
event = {{ process = "poisson", rate_hz = 4 }}
slo_multiplier = 4
[models.short]
event = {{ process = "poisson", rate_hz = 20 }}
slo_ms = 30
"""
LOOP = """
device = "{device}"
frames = 20
[models.detect]
reference = "long"
event = {{ process = "closed" }}
[models.face]
reference = "short"
after = "detect"
number = 2
"""


@pytest.fixture
def device(tmp_path: Path) -> str:
    path = tmp_path / "two.toml"
    path.write_text(DEVICE, encoding="utf-8")
    return path.as_posix()


@pytest.fixture
def write(tmp_path: Path, device: str):
    def scenario(text: str = SCENARIO, system: str = "fcfs") -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text.format(device=device, system=system), encoding="utf-8")
        return path.as_posix()

    return scenario


@pytest.mark.parametrize("system", ["fcfs", "max-total"])
def test_every_request_is_answered_and_counted(write, system):
    found = simulate(write(system=system), None, None)
    assert (found["scenario"], found["system"], found["simulated"]) == ("mine", system, True)
    requests = found["requests"]
    assert sum(each["submitted"] for each in requests.values()) == 300
    assert all(
        each["finished"] + each["dropped"] == each["submitted"] for each in requests.values()
    )
    dropped = {reason for each in requests.values() for reason in each["reasons"]}
    assert dropped <= ({"cannot be in time any more"} if system == "max-total" else set())
    finished = sum(each["finished"] for each in requests.values())
    assert finished > 200
    assert found["throughput_hz"] == pytest.approx(finished / found["seconds"], rel=1e-3)
    assert 0.1 < found["processors"]["gpu"]["busy"] < 0.8  # 20 x 10 ms a second, and 4 x 54
    for each in requests.values():
        shares = [each["violations"][k] for k in ("2", "4", "8", "20")]
        assert shares == sorted(shares, reverse=True)
    json.dumps(found)


def test_alone_means_on_whatever_is_fastest(write):
    requests = simulate(write(), None, None)["requests"]
    assert requests["short"]["lone_ms"] == pytest.approx(10)
    assert 54 < requests["long"]["lone_ms"] < 90  # two of its ops on the CPU, far from all


def test_an_slo_is_absolute_or_a_multiple_of_the_time_alone(write):
    requests = simulate(write(), None, None)["requests"]
    assert requests["long"]["violations"]["slo"] == requests["long"]["violations"]["4"]
    thrice = simulate(write(SCENARIO.replace("30\n", "40\n")), None, None)["requests"]["short"]
    assert thrice["violations"]["slo"] == thrice["violations"]["4"]


def test_the_same_seed_gives_the_same_figures(write):
    one, other, third = (simulate(write(), None, None, seed=seed) for seed in (1, 1, 2))
    assert one["requests"] == other["requests"]
    assert one["requests"] != third["requests"]


def test_a_closed_loop_has_rounds(write):
    found = simulate(write(LOOP), None, "fcfs")
    rounds = found["frames"]["detect"]
    assert rounds["finished"] == 20
    assert {name: each["submitted"] for name, each in found["requests"].items()} == {
        "detect": 20,
        "face": 40,
    }
    assert rounds["fps"] == pytest.approx(1000 / rounds["latency_ms"]["mean"], rel=1e-3)
    assert rounds["latency_ms"]["mean"] > found["requests"]["detect"]["latency_ms"]["mean"]


def test_what_is_varied_changes_what_comes(write):
    usual = simulate(write(), None, None)
    faster = simulate(write(), None, None, variations={"rate": 2.0})
    assert faster["seconds"] < 0.7 * usual["seconds"]
    strict = simulate(write(), None, None, variations={"slo_multiplier": 2})["requests"]
    assert strict["short"]["violations"]["slo"] == strict["short"]["violations"]["2"]
    noisy = simulate(write(), None, None, variations={"noise": 0.5})
    assert noisy["requests"]["short"]["jitter_ms"] > usual["requests"]["short"]["jitter_ms"]


def test_seconds_end_it_instead(write):
    found = simulate(write(), None, None, seconds=5)
    assert 4 < found["seconds"] < 6
    assert 60 < sum(each["submitted"] for each in found["requests"].values()) < 180


def test_a_processor_may_be_away(write):
    text = SCENARIO.replace(
        "requests = 300", "requests = 300\naway = [{{ processor = 'gpu', from_s = 1, for_s = 2 }}]"
    )
    found = simulate(write(text), None, None)
    assert all(each["finished"] == each["submitted"] for each in found["requests"].values())
    assert found["requests"]["short"]["latency_ms"]["max"] > 1000  # no other processor can run it
    with pytest.raises(ConfigError, match=r"away: unknown processor 'npu'; .*cpu, gpu"):
        simulate(write(text.replace("'gpu'", "'npu'")), None, None)


def test_a_timeline_shows_who_ran_what(write, tmp_path):
    path = tmp_path / "trace.json"
    simulate(write(), None, None, trace=path)
    timeline = read_timeline(path)
    assert {span.lane for span in timeline.spans} == {"gpu", "cpu", "cpu-1"}  # it has two lanes
    assert {span.name for span in timeline.spans} == {"long", "short"}


def test_many_seeds_say_something_together(write):
    found = simulate_seeds(write(), None, None, seeds=3, workers=1)
    assert found["over_runs"]["requests"]["short"]["jitter_ms"]["n"] == 3
    assert found["system"] == "fcfs"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"system": "multithread"}, r"multithread has no queue of requests.*not known.*fcfs"),
        ({"system": "fifo"}, r"unknown system 'fifo'.*fcfs"),
        ({"device": "lg-v51"}, r"unknown device for requests 'lg-v51'"),
        ({"fps": 30}, r"requests beside frames: .*on a phone's profile"),
        ({"render_ms": 3}, r"scenario 'mine' draws nothing: leave it out, or give fps"),
        ({"seconds": 0}, r"seconds=0: must be above 0"),
        ({"seconds": float("nan")}, r"seconds=nan: must be above 0"),
        ({"variations": {"turn_ms": 3}}, r"unknown variation of requests 'turn_ms'; .*estimates"),
        ({"variations": {"rate": 0}}, r"rate=0: must be above 0"),
        ({"variations": {"rate": float("nan")}}, r"rate=nan: must be above 0"),
        ({"variations": {"slo_multiplier": -1}}, r"slo_multiplier=-1: must be above 0"),
        ({"variations": {"apart": 0.5}}, r"apart=0.5: give 1"),
        ({"variations": {"noise": 2}}, r"noise=2: must be at least 0 and at most 1"),
    ],
)
def test_what_makes_no_sense_is_refused(write, asked, message):
    options = {"device": None, "system": None, **asked}
    with pytest.raises(ConfigError, match=message):
        simulate(write(), **options)


def test_a_scenario_without_a_device_needs_one(write, device):
    text = write(SCENARIO.replace('device = "{device}"', ""))
    with pytest.raises(ConfigError, match=r"'mine' names no device"):
        simulate(text, None, None)
    assert simulate(text, device, None)["requests"]


def test_a_network_that_the_device_lacks_is_named(write):
    with pytest.raises(ConfigError, match=r"unknown network of device 'two' 'huge'.*long, short"):
        simulate(write(SCENARIO + 'reference = "huge"\n'), None, None)
