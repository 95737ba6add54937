"""What docs/look-up says is so: nothing is missing, examples run, JSON is as its schema says."""

from __future__ import annotations

import gzip
import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import heimdall
from heimdall.capture.cameras import list_cameras
from heimdall.cli import COMMANDS, main
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.cli.schemas import json_schema, schema_names
from heimdall.lab.simulator.sweep_file import load_sweep
from heimdall.lab.simulator.variations import VARIATIONS
from heimdall.models.catalog import CATALOG
from heimdall.runtime.session.keys import COMMANDS as KEYS
from heimdall.runtime.telemetry.summary import (
    DnnSummary,
    FirstStart,
    RequestSummary,
    WorldSummary,
)
from heimdall.runtime.telemetry.trace import SCHEMA
from heimdall.tracking.pose.targets import dictionary
from heimdall.vocabulary.enums import OverlayView
from tests.docs.json_schemas import wrong
from tests.networks import doublings

ROOT = Path(__file__).resolve().parents[2]
LOOK_UP = ROOT / "docs" / "look-up"
PAGES = sorted(LOOK_UP.glob("*.md"))
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def hook():
    """scripts/site_hook.py, which writes what pages leave to the code."""
    pytest.importorskip("mkdocs")
    from tests.docs import hooks

    return hooks.site_hook()


def text(name: str) -> str:
    return (LOOK_UP / f"{name}.md").read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(kind: str) -> list[str]:
    found = [block for page in PAGES for block in FENCE.findall(page.read_text("utf-8"))]
    return [code for language, code in found if language == kind]


# --- pages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_sentence_says_whom_a_page_is_for(page):
    first = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith(("For whoever ", "You "))


def test_what_is_written_by_hand_is_short():
    words = sum(len(page.read_text("utf-8").split()) for page in LOOK_UP.rglob("*.md"))
    assert words <= 4500


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_everything_that_a_page_leaves_to_the_code_is_written(page, hook):
    written = hook.filled(page.read_text(encoding="utf-8"))
    assert "<!-- generated" not in written
    assert "|  |  |" not in written


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for code in blocks("sh") for line in code.splitlines()])
def test_commands_on_pages_run(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program, *words = line.split()
    assert program == "heimdall"
    assert CliRunner().invoke(main, words).exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python"))
def test_files_on_pages_run(code, tmp_path):
    name = re.match(r"# (\w+\.py)\n", code)
    (tmp_path / name[1]).write_text(code)
    run = [sys.executable, name[1]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        run, cwd=tmp_path, capture_output=True, text=True, timeout=200, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


# --- figures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        (heimdall.RunSummary, "A run"),
        (FirstStart, "A run"),
        (WorldSummary, "A run"),
        (DnnSummary, "Each DNN"),
        (RequestSummary, "Each model"),
    ],
)
def test_every_figure_of_a_run_is_documented(kind, title):
    table = section(text("figures"), title)
    for each in fields(kind):
        assert f"`{each.name}`" in table, each.name


def test_no_figure_is_documented_that_there_is_not():
    kinds = {"A run": heimdall.RunSummary, "Each DNN": DnnSummary, "Each model": RequestSummary}
    for title, kind in kinds.items():
        rows = re.findall(r"^\| (`[^|]+) \|", section(text("figures"), title), re.MULTILINE)
        named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
        assert named == {each.name for each in fields(kind)}


def test_schemas_tell_what_figures_mean(hook):
    schema = hook.described(json_schema("run"))
    without = [key for key, rules in schema["properties"].items() if "description" not in rules]
    assert without == []
    bench = hook.described(json_schema("bench"))["$defs"]
    assert "deadline" in bench["LiveRun"]["properties"]["late_frames"]["description"]
    assert "SLO" in bench["RequestSummary"]["properties"]["violations"]["description"]


# --- commands -----------------------------------------------------------------------------------


def test_every_command_has_its_place_its_arguments_and_examples(hook):
    page = "\n\n".join(hook.commands())
    shown = hook.shown_commands()
    assert re.findall(r"^## (\S+)$", page, re.MULTILINE) == shown
    assert set(hook.EXAMPLES) == set(shown)
    for name in shown:
        for param in COMMANDS[name].params:
            if param.name != "debug" and not getattr(param, "hidden", False):
                words = param.opts if isinstance(param, click.Option) else [param.name.upper()]
                assert any(word in section(f"\n{page}", name) for word in words), param.name


def test_every_option_of_a_command_is_told_once(hook):
    for name in hook.shown_commands():
        options = [each.name for each in COMMANDS[name].params if isinstance(each, click.Option)]
        told = [each for _, names in hook.grouped(options) for each in names]
        assert sorted(told) == sorted(options)
    known = {param.name for command in COMMANDS.values() for param in command.params}
    assert {each for names in hook.GROUPS.values() for each in names} <= known


def test_run_has_no_option_without_a_group(hook):
    options = [
        each.name
        for each in COMMANDS["run"].params
        if isinstance(each, click.Option) and each.name != "debug"
    ]
    assert "option" not in dict(hook.grouped(options))


def test_examples_are_understood(hook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, lines in hook.EXAMPLES.items():
        for line in lines:
            program, command, *words = line.split()
            assert (program, command) == ("heimdall", name)
            COMMANDS[name].make_context(name, words)


# --- files --------------------------------------------------------------------------------------


def test_every_key_of_a_file_has_a_sentence(hook):
    for kinds in (hook.SCENARIO, hook.PHONE, hook.SEVERAL, hook.SWEEP):
        for kind in kinds.values():
            described = [said for _, said, _, _ in hook.keys(kind)]
            assert all(said.endswith(".") for said in described), kind


@pytest.mark.parametrize("code", blocks("toml"))
def test_files_that_pages_show_are_read(code, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(code)
    if "[vary]" in code:
        sweep = load_sweep(path)
        sweep.experiment(next(sweep.points()))
    else:
        load_scenario(str(path))


def test_every_axis_of_a_sweep_is_listed(hook):
    (table,) = hook.axes()
    assert set(re.findall(r"`(\w+)`", table)) >= set(VARIATIONS)
    for axis in VARIATIONS:
        assert re.search(rf"^\| [^|]*`{axis}`", table, re.MULTILINE), axis


# --- networks, the panel, variables -------------------------------------------------------------


def test_every_network_and_its_options_are_told(hook):
    (table,) = hook.networks()
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(CATALOG)
    options = {
        option for entry in CATALOG.values() for option in inspect.signature(entry.make).parameters
    }
    told = section(text("models"), "Options")
    assert {name for name in options if f"| `{name}` |" not in told} == set()


def test_every_view_and_every_key_is_told(hook):
    page = text("overlay")
    assert all(f"`{view}`" in page for view in OverlayView.values())
    (table,) = hook.key_table()
    for command in KEYS:
        assert command.says in table
    assert (ROOT / "docs" / "images" / "overlay.webp").stat().st_size <= 60_000


def test_every_extra_is_told():
    project = re.search(
        r"\[project.optional-dependencies\]\n(.*?)\n\[",
        (ROOT / "pyproject.toml").read_text("utf-8"),
        re.DOTALL,
    )
    extras = set(re.findall(r"^([a-z0-9]+) = ", project[1], re.MULTILINE)) - {"dev", "docs"}
    table = section(text("requirements"), "Machines")
    assert extras == set(re.findall(r"^\| `([a-z0-9]+)` \|", table, re.MULTILINE))


def test_every_variable_that_the_code_reads_is_told():
    code = "\n".join(path.read_text("utf-8") for path in (ROOT / "heimdall").rglob("*.py"))
    read = set(re.findall(r"\bHEIMDALL_[A-Z_]+", code))
    assert read == set(re.findall(r"\bHEIMDALL_[A-Z_]+", text("environment")))


# --- JSON ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Any:
    """``printed(*words)``: the value that a command prints, in a process of its own."""
    folder = tmp_path_factory.mktemp("json")
    onnx.save(doublings(6, 32), folder / "small.onnx")
    (folder / "app.py").write_text(
        "from heimdall import DNN, App\n\n\n"
        "class Small(App):\n"
        "    fps, size = 10, (160, 120)\n"
        "    selfie = DNN(model='selfie', rate_hz=1)\n"
    )
    (folder / "small.toml").write_text('app = "app.py"\n')
    live = (ROOT / "tests" / "traces" / "live" / "emoji.json.gz").read_bytes()
    recorded = {"schema": SCHEMA, **json.loads(gzip.decompress(live))}
    (folder / "trace.json").write_text(json.dumps({"heimdall": recorded}))
    [each for each in recorded["records"] if each["actions"]][-1]["actions"] = []
    (folder / "differs.json").write_text(json.dumps({"heimdall": recorded}))
    marker = cv2.aruco.generateImageMarker(dictionary("DICT_4X4_50"), 3, 200)
    marker = np.pad(marker, 140, constant_values=255)
    cv2.imwrite(str(folder / "marker.png"), marker)
    cv2.imwrite(str(folder / "blank.png"), np.full_like(marker, 255))
    (folder / "sweep.toml").write_text(
        'scenario = "shopping"\nseeds = 1\nseconds = 1\n[vary]\nturn_ms = [5, 29]\n'
    )

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "heimdall", *words, "--json"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HEIMDALL_TUNE": "off"},
            capture_output=True,
            text=True,
            timeout=280,
        )
        refused = [word for word in words if word.startswith("absent.")]
        most = 2 if refused else (words == ("doctor",))  # 1: something is missing
        assert done.returncode <= most, done.stderr
        return json.loads(done.stdout)

    return run


ORT = ("--device", "onnxruntime")
PRINTED: dict[str, list[tuple[str, ...]]] = {
    "devices": [("devices",)],
    "models": [("models",)],
    "profile": [("profile", "small.onnx", *ORT)],
    "partition": [("partition", "small.onnx", *ORT)],
    "partition-passes": [("partition", "small.onnx", "--passes")],
    "check": [("check", "small.onnx", "absent.onnx", *ORT)],
    "run": [("run", "app.py", "--headless", "--frames", "5", *ORT)],
    "bench": [("bench", "small.toml", "--systems", "max-total", "--seconds", "0.5", *ORT)],
    "simulate": [
        ("simulate", "shopping", "--seconds", "1"),
        ("simulate", "split-1", "--seconds", "3"),
        ("simulate", "pantheon-traffic", "--seconds", "1"),
        ("simulate", "band-eagleeye"),
        ("simulate", "top-mixed", "--seconds", "1"),
    ],
    "simulate-seeds": [("simulate", "shopping", "--seconds", "1", "--seeds", "2")],
    "simulate-systems": [
        ("simulate", "shopping", "--seconds", "1", "--systems", "max-total,multithread")
    ],
    "simulate-sweep": [("simulate", "--sweep", "sweep.toml")],
    "doctor": [("doctor",)],
    "new": [("new", "mine")],
    "calibrate": [("calibrate", "--board", "board.pdf")],
    "pose": [
        ("pose", "marker.png", "--marker", "DICT_4X4_50:3:0.1"),
        ("pose", "blank.png", "--marker", "DICT_4X4_50:3:0.1"),
        ("pose", "blank.png", "--world"),  # of a clip: cli/test_poses.py
    ],
    "model3d": [("model3d", "smiley.glb", "--size", "64x48"), ("model3d", "absent.glb")],
    "trace": [("trace", "trace.json"), ("trace", "differs.json")],
    "faults-list": [("faults", "--list")],
    "measure": [("measure", "--parts", "energy", "--seconds", "1", *ORT)],
}
# What takes long, waits for clients or needs packages is held against its schema where it is run.
ELSEWHERE = {
    "calibrate": "cli/test_calibrate.py",
    "export": "runtime/telemetry/test_kept.py",
    "serve": "serve/test_hosting.py",
    "exits": "lab/cli/test_exits.py",
    "train-top": "lab/simulator/together/test_learning.py",
    "measure": "lab/bench/judge/test_parts.py",
    "faults": "lab/cli/test_faults.py",
    "soak": "lab/cli/test_faults.py",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [(name, words) for name, all_words in PRINTED.items() for words in all_words],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_what_a_command_prints_is_as_its_schema_says(printed, name, words):
    value, schema = printed(*words), json_schema(name)
    assert wrong(schema, value) == []
    try:
        import jsonschema
    except ImportError:
        return
    jsonschema.validate(value, schema)


def test_every_schema_is_tried_and_listed(hook):
    assert {*PRINTED, *ELSEWHERE} == set(schema_names())
    for name, path in ELSEWHERE.items():
        assert f'json_schema("{name}")' in (ROOT / "tests" / path).read_text(encoding="utf-8")
    (table,) = hook.schemas()
    assert all(f"schemas/{name}.json" in table for name in schema_names())


def test_every_command_that_prints_json_has_a_schema(hook):
    asked = {
        name
        for name in hook.shown_commands()
        if any(each.name == "as_json" for each in COMMANDS[name].params)
    }
    assert asked <= set(schema_names())
    (table,) = hook.schemas()
    assert all(f"`heimdall {name} --json`" in table for name in asked)


def test_an_app_beside_a_server_is_told_as_any_run(hook):
    served = hook.described(json_schema("serve"))["$defs"]["RunSummary"]["properties"]
    assert [key for key, rules in served.items() if "description" not in rules] == []


def test_a_schema_notices_what_is_wrong():
    schema = json_schema("models")
    entry = {"name": "a", "title": "b", "task": "c", "licence": "d", "files": [], "size_mb": None}
    assert wrong(schema, {"schema": 1, "models": [entry]}) == []
    assert wrong(schema, {"schema": 2, "models": [entry]}) == ["$.schema: 2 instead of 1"]
    assert wrong(schema, {"schema": 1, "models": [{**entry, "files": 3}]}) != []
    assert wrong(schema, {"schema": 1, "models": [{**entry, "more": 3}]}) != []
    assert wrong(schema, {"schema": 1, "models": [{"name": "a"}]}) != []
    assert wrong(schema, {"schema": 1}) == ["$.models: is missing"]


def test_a_listed_camera_is_as_the_schema_says():
    schema = json_schema("devices")
    camera = {"$defs": schema["$defs"], "$ref": "#/$defs/ListedCamera"}
    sizes = [{"width": 640, "height": 480, "fps": [30.0, 15]}]
    formats = [{"format": "YUYV", "compressed": False, "sizes": sizes}]
    there = {"source": "0", "index": 0, "name": "x", "error": None, "note": None}
    for each in (*list_cameras(), {**there, "formats": formats}, {**there, "formats": None}):
        assert wrong(camera, each) == []
