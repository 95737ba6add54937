"""Several systems in turn: processes, failures and interruptions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from heimdall.cli import main
from heimdall.errors import DeviceError
from heimdall.lab.bench.runner import run_all
from heimdall.lab.bench.systems import BASELINES, parse_systems
from tests.standin_driver import standin_driver

SYSTEMS = parse_systems("multithread,fixed-5,max-total")

APP = """
from heimdall import DNN, App

class Small(App):
    size = (160, 120)
    dnns = (
        DNN("mask", model="selfie"),
        DNN("hand", model="hand", on_event=True, latency_constraint_ms=0.01),
    )
"""
TINY = """
from heimdall import DNN, App

class Small(App):
    size = (160, 120)
    dnns = (DNN("kind", model="fashion"),)
"""
SCENARIO = """
title = "Small"
app = "small.py"
[dnns.hand]
event = { process = "periodic", rate_hz = 10 }
"""
MODELS = """
[models.kind]
model = "light:squeezenet"
event = { process = "periodic", rate_hz = 10 }
slo_multiplier = 20
"""


def quiet(what: str, done: int, total: int) -> None:
    """No progress."""


def test_a_system_that_fails_does_not_keep_the_others_from_running():
    def run(system):
        if system.name == "fixed-5":
            raise DeviceError("no queue")
        return {"name": system.name}

    summaries, failures, interrupted = run_all(SYSTEMS, run, quiet)
    assert list(summaries) == ["multithread", "max-total"]
    assert summaries["max-total"] == [{"name": "max-total"}]
    assert failures == ["fixed-5: no queue"]
    assert not interrupted


def test_systems_take_turns_and_one_that_cannot_run_is_tried_once():
    tried = []

    def run(system):
        tried.append(system.name)
        if system.name == "fixed-5" or (system.name == "max-total" and len(tried) == 5):
            raise DeviceError("no queue")
        return {"turn": len(tried)}

    summaries, failures, interrupted = run_all(SYSTEMS, run, quiet, runs=3)
    others = ["multithread", "max-total"]
    assert tried == ["multithread", "fixed-5", "max-total", *others, *others]
    assert [each["turn"] for each in summaries["multithread"]] == [1, 4, 6]
    assert [each["turn"] for each in summaries["max-total"]] == [3, 7]
    assert failures == ["fixed-5: no queue", "max-total: no queue"]
    assert not interrupted


def test_an_interruption_keeps_what_has_finished():
    def run(system):
        if system.name == "fixed-5":
            raise KeyboardInterrupt
        return {"name": system.name}

    summaries, failures, interrupted = run_all(SYSTEMS, run, quiet)
    assert (list(summaries), failures, interrupted) == (["multithread"], [], True)


def bench(
    *arguments: str, env: Mapping[str, str] = os.environ, timeout_s: float = 280
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "heimdall", "bench", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env=dict(env),
    )


LIMIT_S = 900  # for all of them on a machine that does something else, too
SIDE_BY_SIDE = (*BASELINES, "max-min-static")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario with an app."""
    path = tmp_path_factory.mktemp("small") / "small.toml"
    path.with_suffix(".py").write_text(APP)
    path.write_text(SCENARIO)
    return path


@pytest.fixture(scope="module")
def compared(small: Path) -> SimpleNamespace:
    """What came of all baselines and a policy, each in a process of its own."""
    page = small.with_name("page.html")
    chosen = ("--systems", ",".join(SIDE_BY_SIDE), "--seconds", "2", "--report", str(page))
    done = bench(str(small), *chosen, "--json", timeout_s=LIMIT_S - 20)
    result = json.loads(done.stdout)
    return SimpleNamespace(result=result, systems=result["systems"], stderr=done.stderr, page=page)


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_systems_run_side_by_side_and_say_what_cannot_work(compared):
    result, systems = compared.result, compared.systems
    assert (result["scenario"], result["title"]) == ("small", "Small")
    assert result["machine"]["cores"] >= 1
    assert [*systems] == [name for name in SIDE_BY_SIDE if name in systems]
    assert result["runs"] == {name: [run] for name, run in systems.items()}
    assert result["over_runs"]["fixed-5"]["fps"]["mean"]["n"] == 1
    for run in systems.values():
        assert run["dnns"]["hand"]["deadline_misses"] == run["dnns"]["hand"]["inferences"]
    assert systems["fixed-5"]["dnns"]["mask"]["chunks"] > 10
    assert systems["multithread"]["dnns"]["mask"]["chunks"] == 1
    assert systems["multithread"]["gap_utilization"] is None
    assert compared.page.read_text(encoding="utf-8").count("<svg") == 4
    assert (
        "hand cannot meet its latency constraint of 0 ms on the GPU even alone" in compared.stderr
    )


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("name", sorted({*SIDE_BY_SIDE} - {"driver-priority"}))
def test_every_baseline_runs_live(compared, name: str):
    run = compared.systems[name]
    assert run["errors"] == []
    assert run["fps"]["mean"] > 0
    for dnn in run["dnns"].values():
        assert dnn["inferences"] > 0
        if name in BASELINES:
            assert dnn["inferences"] == dnn["cpu" if "onnxruntime" in name else "gpu"]


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_driver_priorities_are_refused_by_name_where_no_driver_has_them(compared):
    if "driver-priority" in compared.systems:
        pytest.skip("the drivers here have priorities")
    (failure,) = compared.result["failures"]
    assert failure.startswith("driver-priority: no driver here draws before it runs networks")
    assert "neither cl_khr_priority_hints nor cl_qcom_priority_hint" in failure
    assert failure in compared.stderr


@pytest.mark.slow
def test_requests_are_answered_beside_an_app(small: Path):
    path = small.with_name("beside.toml")
    path.write_text(SCENARIO.replace("[dnns", "seconds = 60\n[dnns") + MODELS)
    done = bench(str(path), "--systems", "max-total", "--seconds", "2", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["systems"]["max-total"]
    assert run["errors"] == []
    assert run["fps"]["mean"] > 0
    assert run["dnns"]["mask"]["inferences"] > 0
    assert run["requests"]["kind"]["finished"] > 10


@pytest.mark.slow
def test_driver_priorities_are_those_of_a_driver_that_has_them(tmp_path: Path):
    """A stand-in has them, beneath which is this machine's. Its cache is empty: one network of few
    layers is compiled quickly."""
    (tmp_path / "small.py").write_text(TINY)
    path = tmp_path / "small.toml"
    path.write_text('title = "Small"\napp = "small.py"')
    driver = standin_driver(tmp_path, "cl_khr_priority_hints")
    systems = "driver-priority,multithread,max-total"
    how = (str(path), "--systems", systems, "--seconds", "1", "--json")
    done = bench(*how, env=driver.environment)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    networks = {
        name: run["device"]["priorities"]["networks"] for name, run in result["systems"].items()
    }
    assert networks == {"driver-priority": "low", "multithread": None, "max-total": "low"}
    for run in result["systems"].values():
        assert run["errors"] == []
        assert all(dnn["inferences"] > 0 for dnn in run["dnns"].values())
    assert set(driver.asked) == {"queue 4"}


def test_a_system_that_cannot_run_is_named_with_the_reason(tmp_path: Path):
    """The first raises, the second is gone without a word."""
    constructor = f"""
    def __init__(self):
        super().__init__()
        import os
        try:
            os.mkdir({str(tmp_path / "been here")!r})
        except FileExistsError:
            os._exit(3)
        self.nothing
"""
    (tmp_path / "small.py").write_text(APP + constructor)
    path = tmp_path / "small.toml"
    path.write_text('app = "small.py"')
    done = bench(str(path), "--systems", "max-min,max-total", "--seconds", "1", "--json")
    assert done.returncode == 2
    first, second = json.loads(done.stdout)["failures"]
    assert first.startswith("max-min: ")
    assert "AttributeError" in first
    assert second.startswith("max-total: ")
    assert "ended with status 3" in second
    assert done.stderr.splitlines()[-1] == "error: no system could run"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shoping"], "unknown scenario 'shoping'"),
        (["criminal"], "can only be simulated"),
        (["shopping", "--systems", "maxtotal"], "unknown system 'maxtotal'"),
        (["shopping", "--systems", ","], "no system given"),
        (["shopping", "--gpu-cores", "99"], "99 GPU cores"),
        (["shopping", "--seconds", "0"], "0.0 is not in the range x>0"),
        (["shopping", "--trace", "x.json"], "--trace x.json: records one system, not 4"),
        (["shopping", "--report", "x.pdf"], "the name must end in .html"),
        (["shopping", "--report", "/dev/null/x.html"], "cannot write there"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, message):
    done = CliRunner().invoke(main, ["bench", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
