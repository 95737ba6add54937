"""Files of sweeps: what they say is what is run, and what is impossible is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.sweep_file import load_sweep

SWEEPS = Path(__file__).parents[2] / "benchmarks" / "sweeps"
HEAD = 'scenario = "shopping"\n'


@pytest.fixture
def sweep(tmp_path):
    def load(text: str):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return load_sweep(path)

    return load


def test_a_table_gives_all_combinations_of_its_axes(sweep):
    read = sweep(
        HEAD + 'systems = ["max-min", "multithread"]\n'
        "[vary]\nturn_ms = { from = 10, to = 30, step = 10 }\ngpu_noise = [0.01, 0.1]"
    )
    points = [(point.system, *point.values.values()) for point in read.points()]
    assert len(points) == 3 * 2 * 2
    assert points[:3] == [("max-min", 10, 0.01), ("multithread", 10, 0.01), ("max-min", 10, 0.1)]
    assert (read.title, read.device, read.seeds, read.seconds) == ("mine", "lg-v50", 16, 60.0)


def test_several_tables_vary_by_themselves(sweep):
    read = sweep(HEAD + "[[vary]]\nturn_ms = [10, 20]\n[[vary]]\nswitch_ms = 2.5")
    assert [dict(point.values) for point in read.points()] == [
        {"turn_ms": 10}, {"turn_ms": 20}, {"switch_ms": 2.5}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("{ from = 0, to = 0.3, step = 0.1 }", [0.0, 0.1, 0.2, 0.3]),
        ("{ from = 0, to = 1, step = 0.4 }", [0.0, 0.4, 0.8]),
        ("{ from = 1, to = 1, step = 1 }", [1]),
    ],
)
def test_a_range_includes_both_ends(sweep, said, values):
    (grid,) = sweep(HEAD + f"[vary]\nswitch_ms = {said}").grids
    assert grid["switch_ms"] == values


def test_an_experiment_is_the_scenario_and_machine_of_its_point(sweep):
    read = sweep(
        HEAD + '[vary]\nfps = [60]\nsize = ["1280x720"]\nturn_ms = [12]\n'
        "dnns.style.latency_constraint_ms = [50]"
    )
    (point,) = read.points()
    experiment = read.experiment(point)
    assert (experiment.scenario.fps, experiment.scenario.size) == (60, (1280, 720))
    assert experiment.machine.batch_ns == 12_000_000
    constraints = {dnn.name: dnn.plan.constraint_ns for dnn in experiment.dnns}
    assert constraints["style"] == 50_000_000
    assert constraints["hand"] == 500_000_000


def test_scenarios_devices_and_systems_may_vary(sweep):
    read = sweep(
        HEAD + 'systems = ["fixed-5"]\n[vary]\nscenario = ["emoji", "workspace"]\n'
        'device = ["pixel-3-xl"]'
    )
    found = [read.experiment(point) for point in read.points()]
    assert [(each.scenario.name, each.machine.name) for each in found] == [
        ("emoji", "pixel-3-xl"), ("workspace", "pixel-3-xl")
    ]  # fmt: skip
    assert found[0].system.name == "fixed-5"


def test_files_are_looked_for_beside_the_sweep(sweep, tmp_path):
    (tmp_path / "other.toml").write_text('app = "shopping"\nfps = 20\n[dnns.detect]\n' + LOADS)
    read = sweep('scenario = "other.toml"\n[vary]\nturn_ms = [10]')
    (point,) = read.points()
    assert read.experiment(point).scenario.fps == 20


LOADS = """
reference = "YOLO-v2"
[dnns.segment]
reference = "DeepLab-v3"
[dnns.hand]
reference = "PoseNet"
[dnns.style]
reference = "StyleTransfer"
"""


@pytest.mark.parametrize("path", sorted(SWEEPS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_sweeps_of_the_benchmarks_can_be_run(path):
    read = load_sweep(path)
    assert read.seeds >= 16
    for point in list(read.points())[:: len(read.systems) * 3]:
        read.experiment(point)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[vary]\nturn_ms = [1]", "scenario: is missing"),
        (HEAD + "scenes = 3\n[vary]\nturn_ms = [1]", "unknown key 'scenes'; did you mean seeds"),
        (HEAD, "vary: is missing"),
        (HEAD + "vary = 3", "vary: must be a list"),
        (HEAD + "[vary]", "nothing to vary"),
        (HEAD + "seeds = 0\n[vary]\nturn_ms = [1]", "whole number from 1"),
        (HEAD + "seconds = 0\n[vary]\nturn_ms = [1]", "must be above 0"),
        (HEAD + 'systems = ["magic"]\n[vary]\nturn_ms = [1]', "unknown system 'magic'"),
        (HEAD + "systems = []\n[vary]\nturn_ms = [1]", "no system given; choose from"),
        (HEAD + "[vary]\nturn = [1]", "unknown axis 'turn'; choose one of: .*turn_ms"),
        (HEAD + "[vary]\ndnns.style.speed = [1]", "unknown key of axis dnns.style.KEY 'speed'"),
        (HEAD + "[vary]\nturn_ms = []", "turn_ms has no values"),
        (HEAD + "[vary]\nturn_ms = [10, 10.0]", "turn_ms has 10.0 twice"),
        (HEAD + "[vary]\nturn_ms = [10, 0]", "turn_ms=0: must be above 0"),
        (HEAD + "[vary]\nluminance = ['beach']", "unknown clip 'beach'"),
        (HEAD + "[vary]\nluminance = ['nothing.json']", "cannot read trace nothing.json"),
        (HEAD + "[vary]\nfps = [5000]", "fps=5000: must be above 0 and at most 1000"),
        (HEAD + "[vary]\nsize = ['big']", "size=big: "),
        (HEAD + "[vary]\nscenario = [3]", "scenario=3: must be a name"),
        (HEAD + "[vary]\nturn_ms = { from = 1, to = 2 }", "a range has from, to and step"),
        (HEAD + "[vary]\nturn_ms = { from = 2, to = 1, step = 1 }", "leads nowhere"),
        (HEAD + "[vary]\nturn_ms = { from = 1, to = 2, step = 0 }", "leads nowhere"),
        (HEAD + "[vary]\nturn_ms = { from = 1, to = 'x', step = 1 }", "turn_ms.to=x: must be"),
        (HEAD + "[vary]\nturn_ms = { from = 1, to = 2, step = 1e-9 }", "are too many"),
        (
            HEAD + "[vary]\nturn_ms = { from = 1, to = 100, step = 1 }\n"
            "switch_ms = { from = 1, to = 100, step = 1 }",
            "160000 runs are too many, at most 100000: there are 10000 combinations",
        ),
        ("scenario = ", "not valid TOML"),
    ],
)
def test_impossible_sweeps_are_refused(sweep, text, message):
    with pytest.raises(ConfigError, match=message) as refused:
        sweep(text)
    assert str(refused.value).startswith("sweep ")


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_sweep(tmp_path / "nothing.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('scenario = "beach"\n[vary]\nturn_ms = [1]', "unknown scenario 'beach'"),
        (HEAD + 'device = "here"\n[vary]\nturn_ms = [1]', "measure it into a file"),
        (HEAD + 'device = "brick"\n[vary]\nturn_ms = [1]', "unknown device 'brick'"),
        (HEAD + "[vary]\ndnns.face.beta = [1]", "unknown DNN 'face'"),
        (HEAD + "[vary]\ndnns.style.beta = [-1]", "dnns.style.beta=-1: must be above 0"),
        (HEAD + "[vary]\ndnns.style.priority = ['x']", "dnns.style.priority=x: "),
    ],
)
def test_what_only_shows_with_the_scenario_is_refused_too(sweep, text, message):
    read = sweep(text)
    with pytest.raises(ConfigError, match=message):
        read.experiment(next(read.points()))
