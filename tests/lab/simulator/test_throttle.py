"""A simulated GPU that gets hot."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from heimdall.cli.run_tables import run_summary
from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.workload import as_app
from heimdall.lab.simulator.coordinated import CoordinatedRun
from heimdall.lab.simulator.simulate import prepare, simulate
from heimdall.lab.simulator.throttle import throttled
from heimdall.system import paths

HOT = paths.ROOT / "benchmarks" / "shopping-hot.toml"
THROTTLE = {"throttle": (20.0, 1.5)}


def test_factors_grow_when_it_is_time():
    now = [-1]
    factor = throttled(lambda: 2.0, (3.0, 1.5), lambda: now[0])
    found = []
    for now[0] in (-1, 0, 2_999_999_999, 3_000_000_000, 9_000_000_000):
        found.append(factor())
    assert found == [2.0, 2.0, 2.0, 3.0, 3.0]


@pytest.fixture(scope="module")
def hot():
    """40 s, hot from the middle on."""
    return simulate("shopping", "lg-v50", "max-total", seconds=40, variations=THROTTLE)


def test_expected_latencies_follow_the_gpu():
    run = prepare("shopping", "lg-v50", "max-total", variations=THROTTLE).begin(0)
    assert isinstance(run, CoordinatedRun)
    expected: list[dict[str, int]] = []
    for seconds in (15, 45):  # the figures count from 15 s on
        run.advance(seconds * 1_000_000_000)
        if not expected:
            run.warm()
        dnns = run.coordinator.snapshot(run.now_ns).dnns
        expected.append({name: dnn.expected_gpu_ns for name, dnn in dnns.items()})
    cool, warm = expected
    for dnn in ("hand", "style"):  # of the others one goes to the CPU, and is not measured anew
        assert warm[dnn] / cool[dnn] == pytest.approx(1.5, rel=0.1)


def test_frames_keep_their_rate_and_networks_pay(hot):
    windows = hot["windows"]
    assert list(windows) == ["0-10 s", "10-20 s", "20-30 s", "30-40 s"]
    assert all(window["fps"] > 29.5 for window in windows.values())
    cool, warm = windows["10-20 s"]["dnns"], windows["30-40 s"]["dnns"]
    assert warm["hand"]["latency_ms"] > 1.3 * cool["hand"]["latency_ms"]
    inferences = sum(10 * window["dnns"]["hand"]["achieved_hz"] for window in windows.values())
    assert inferences == pytest.approx(hot["dnns"]["hand"]["inferences"], rel=0.02)


def test_its_windows_are_printed(hot):
    printed = io.StringIO()
    console = Console(file=printed, width=150)
    for part in run_summary(hot):
        console.print(part)
    assert re.search(r"30-40 s +(29|30)\.\d .*% missed", printed.getvalue())


def test_without_coordination_frames_pay():
    windows = simulate("shopping", "lg-v50", "multithread", seconds=40, variations=THROTTLE)[
        "windows"
    ]
    assert windows["30-40 s"]["fps"] < 0.95 * windows["10-20 s"]["fps"]


def test_a_machine_that_stays_cool_has_no_windows():
    assert "windows" not in simulate("shopping", "lg-v50", "max-total", seconds=1)


def test_a_scenario_may_say_so():
    scenario = load_scenario(str(HOT))
    assert scenario.throttle.model_dump() == {"after_s": 60, "factor": 1.5}
    experiment = prepare(scenario, "lg-v50", "max-total", seconds=1)
    assert experiment.machine.throttle == (60, 1.5)
    assert {**scenario.model_dump(), "throttle": None, "name": "", "title": ""} == {
        **load_scenario("shopping").model_dump(),
        "name": "",
        "title": "",
    }


def test_it_is_not_run_as_if_it_were_cool():
    with pytest.raises(ConfigError, match=r"shopping-hot.*only simulated"):
        as_app(load_scenario(str(HOT)))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("after_s = -1\nfactor = 1.5", "throttle.after_s"),
        ("after_s = 60\nfactor = 0", "throttle.factor"),
        ("after_s = 60", "throttle.factor"),
        ("after_s = 60\nfactor = 1.5\nuntil_s = 3", "throttle: unknown key 'until_s'"),
    ],
)
def test_what_cannot_be_is_named(tmp_path, line, words):
    path = tmp_path / "hot.toml"
    path.write_text(f'app = "shopping"\n[throttle]\n{line}\n')
    with pytest.raises(ConfigError, match=words):
        load_scenario(str(path))
