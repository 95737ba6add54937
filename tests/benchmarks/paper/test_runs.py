"""Scenarios as the paper's figures change them."""

from __future__ import annotations

import pytest

from benchmarks.paper.runs import Run, all_runs, as_toml, scenario_of, variant
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.simulator.simulate import simulate


def test_names_of_runs_are_those_of_files_and_unique():
    names = [run.name for run in all_runs()]
    assert len(set(names)) == len(names)
    assert not any("/" in name for name in names)


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.name)
def test_every_run_can_be_written_and_read_again(tmp_path, run):
    parse_system(run.system)
    scenario = scenario_of(run, live=run.live)
    path = tmp_path / f"{scenario.name}.toml"
    path.write_text(as_toml(scenario))
    assert load_scenario(str(path)) == scenario


def test_dnns_that_are_left_out_are_never_asked_for():
    run = Run("one", "shopping", "max-total", only=("hand",))
    summary = simulate(variant(run, load_scenario("shopping")), run.device, run.system, seconds=2)
    counts = {name: dnn["inferences"] for name, dnn in summary["dnns"].items()}
    assert counts.pop("hand") > 0
    assert set(counts.values()) == {0}


def test_free_dnns_run_back_to_back():
    run = Run("free", "shopping", "multithread", only=("style",), free=True, drawn=False)
    scenario = variant(run, load_scenario("shopping"))
    summary = simulate(scenario, run.device, run.system, seconds=3, render_ms=0)
    style = summary["dnns"]["style"]
    assert style["inferences"] * style["end_to_end_ms"]["mean"] == pytest.approx(3000, rel=0.05)
