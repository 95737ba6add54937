"""The command line: results on standard output, one clear line on standard error, statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heimdall.app.options import RunOptions
from heimdall.cli import main


def invoke(*args: str, **environment: str):
    return CliRunner().invoke(main, list(args), env=environment)


def heimdall(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: where it matters what else a process writes, or its threads."""
    return subprocess.run(
        [sys.executable, "-m", "heimdall", *args],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )


# --- parsing ----------------------------------------------------------------------------------


def test_help_lists_every_command():
    result = invoke("--help")
    assert result.exit_code == 0
    for command in ("run", "devices", "models", "profile", "partition", "check", "trace"):
        assert command in result.stdout


def test_no_summary_of_a_command_is_cut():
    said = invoke("--help").stdout
    assert "..." not in said.partition("Commands:")[2]
    assert "Write a kept SESSION (.mcap) for Rerun's viewer" in said


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert invoke("--version").stdout.split()[-1] == version("heimdall-ar")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "shopping", "--size", "1280"], "WIDTHxHEIGHT"),
        (["measure", "--parts", "chunks,speed"], "--parts speed"),
        (["measure", "--output", "/dev/null/x.toml"], "cannot write there"),
        (["measure", "--seconds", "0"], "--seconds 0"),
        (["simulate", "shopping", "--fps", "0"], "--fps 0"),
        (["run", "shopping", "--size", "-1x5"], "WIDTHxHEIGHT"),
        (["run", "shopping", "--size", "0x5"], "from 1 to"),
        (["run", "shopping", "--fps", "0"], "--fps 0"),
        (["run", "shopping", "--fps", "nan"], "--fps nan"),
        (["run", "shopping", "--fps", "fast"], "fast"),
        (["run", "shopping", "--frames", "0"], "--frames 0"),
        (["run", "shopping", "--seconds", "-3"], "--seconds -3"),
        (["run", "shopping", "--seconds", "inf"], "--seconds inf"),
        (["run", "shopping", "--gpu-cores", "0"], "--gpu-cores 0"),
        (["run", "shopping", "--cpu-workers", "0"], "--cpu-workers 0"),
        (["run", "shopping", "--processors", ""], "a name is empty"),
        (["run", "shopping", "--processors", "gpu,,cpu"], "a name is empty"),
        (["serve", "--model", "a=b.onnx", "--processors", "gpu,gpu"], "'gpu' is listed twice"),
        (["bench", "split-1", "--processors", "cpu,cpu"], "'cpu' is listed twice"),
        (["run", "shopping", "--content", "none"], "none"),
        (
            ["run", "shopping", "--press", "1:bogus"],
            "unknown key 'bogus'",
        ),
        (["run", "shopping", "--press", "1:pageup"], "did you mean 'page_up'?"),
        (["run", "still.jpg"], "heimdall run surroundings --source still.jpg"),
        (["run", "clips/desk.MP4"], "is no app: it goes to one as its source"),
        (["run", "rtsp://camera/1"], "as its source"),
        (["run", "shopping", "--luminance", "rows"], "rows"),
        (["run", "shopping", "--what"], "--what"),
        (["run", "shopping", "--scheduler", "best"], "max-total"),
        (["run"], "APP"),
        (["walk"], "walk"),
        (["check"], "MODEL"),
        (["check", "selfie", "--precision", "fp8"], "fp8"),
        (["profile", "selfie", "--precision", "double"], "double"),
        (["partition", "nanodet", "--gap-ms", "0"], "gap-ms"),
        (["profile", "nonsense"], "nonsense"),
        (["partition", "nonsense", "--gap-ms", "20"], "nonsense"),
        (["trace", "/nonexistent.json"], "/nonexistent.json"),
    ],
)
def test_a_mistake_is_one_clear_error_with_status_2(args, said):
    result = invoke(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert said in lines[0]
    assert "Traceback" not in result.stderr


def test_an_unknown_app_is_an_error_without_traceback():
    result = heimdall("run", "no-such-app", "--headless", "--frames", "1")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "error: " in result.stderr
    assert "no-such-app" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "args", [("--debug", "trace", "/nonexistent.json"), ("trace", "/nonexistent.json", "--debug")]
)
def test_debug_shows_where_an_error_was_raised(args):
    result = heimdall(*args)
    assert result.returncode == 2
    assert "Traceback" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("error: ")


def test_run_passes_its_options_on(monkeypatch, tmp_path):
    seen: dict[str, Any] = {}

    def run_app(target, options, *progress, **more):
        seen.update(target=target, options=options)
        return {"schema": 1}

    import heimdall.runtime.run

    monkeypatch.setattr(heimdall.runtime.run, "run_app", run_app)
    record = tmp_path / "out" / "clip.mp4"
    result = invoke(
        *("run", "shopping", "--source", "1", "--size", "640x480", "--static", "--no-offload"),
        *("--fps", "15", "--headless", "--record", str(record), "--no-realtime", "--json"),
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == {"schema": 1}
    assert seen["target"] == "shopping"
    assert seen["options"] == RunOptions(
        source=1,
        size=(640, 480),
        mode="static",
        offload=False,
        fps=15.0,
        headless=True,
        record=record,
        realtime=False,
    )
    assert not record.parent.exists()  # it is made when the run begins


# --- output and statuses ----------------------------------------------------------------------


# --- commands for real ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["check", "profile"])
def test_a_precision_that_the_device_lacks_is_one_error_that_says_what_to_type(command):
    result = heimdall(command, "selfie", "--device", "onnxruntime", "--precision", "fp16")
    assert result.returncode == 2
    assert result.stdout == ""
    last = result.stderr.splitlines()[-1]
    assert last == "error: engine onnxruntime has no fp16: use --precision fp32"


def test_models_lists_the_catalogue_with_files_that_exist():
    from heimdall.system.paths import ASSETS

    listed = json.loads(invoke("models", "--json").stdout)["models"]
    assert {"nanodet", "selfie", "hand", "multistyle"} <= {model["name"] for model in listed}
    for model in listed:
        assert model["files"]
        assert all((ASSETS / "models" / name).is_file() for name in model["files"])
    assert "nanodet" in invoke("models").stdout


def test_devices_prints_one_object_and_a_table_for_people(monkeypatch):
    result = heimdall("devices", "--json")  # looking for devices places the process's threads
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert {"gpu", "software_gpu", "gl", "onnxruntime", "cameras"} <= set(report)
    monkeypatch.setattr("heimdall.runtime.opening.devices.list_devices", lambda: report)
    table = invoke("devices")
    assert table.exit_code == 0, table.output
    assert "OpenGL" in table.stdout
    assert "software GPU" in table.stdout


@pytest.fixture(scope="module")
def small_model(tmp_path_factory) -> Path:
    """Three convolutions on 1x3xHx32, the height free."""
    import numpy as np
    import onnx
    from onnx import helper

    from tests.networks import small_model

    rng = np.random.default_rng(0)
    nodes, weights, before = [], {}, "image"
    for index in range(3):
        weights[f"w{index}"] = rng.normal(0, 0.2, (3, 3, 3, 3)).astype(np.float32)
        nodes.append(
            helper.make_node("Conv", [before, f"w{index}"], [f"c{index}"], pads=[1, 1, 1, 1])
        )
        nodes.append(helper.make_node("Relu", [f"c{index}"], [f"r{index}"]))
        before = f"r{index}"
    shape = (1, 3, "height", 32)
    path = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(small_model(nodes, {"image": shape}, {before: shape}, weights, opset=13), path)
    return path


ON_ONNXRUNTIME = ("--device", "onnxruntime", "--shape", "image=1x3x32x32", "--json")


def test_profile_measures_once_and_then_reads(small_model, tmp_path):
    cache = {"HEIMDALL_CACHE": str(tmp_path)}
    first = invoke("profile", str(small_model), *ON_ONNXRUNTIME, **cache)
    assert first.exit_code == 0, first.stderr
    (network,) = json.loads(first.stdout)["networks"]
    assert network["ops"]
    assert all(op["ms"] >= 0 for op in network["ops"])
    assert "profiling" in first.stderr
    second = invoke("profile", str(small_model), *ON_ONNXRUNTIME, **cache)
    assert json.loads(second.stdout) == json.loads(first.stdout)
    assert "profiling" not in second.stderr


def test_profile_for_people_lists_the_ops(small_model, tmp_path):
    args = ("--device", "onnxruntime", "--shape", "image=1x3x32x32")
    result = invoke("profile", str(small_model), *args, HEIMDALL_CACHE=str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert "GFLOP/s" in result.stdout
    assert "whole network" in result.stdout


def test_partition_covers_every_op_and_draws(small_model, tmp_path):
    png = tmp_path / "new" / "chunks.png"
    args = ("--strategy", "fixed", "--ops", "2", "--png", str(png), *ON_ONNXRUNTIME)
    result = invoke("partition", str(small_model), *args, HEIMDALL_CACHE=str(tmp_path))
    assert result.exit_code == 0, result.stderr
    chunks = json.loads(result.stdout)["chunks"]
    assert chunks[0]["start"] == 0
    for before, after in pairwise(chunks):
        assert before["end"] == after["start"]
    assert all(chunk["end"] - chunk["start"] <= 2 for chunk in chunks)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_partition_lists_the_ops_after_each_pass(small_model, tmp_path):
    args = ("partition", str(small_model), "--passes", "--shape", "image=1x3x32x32")
    result = invoke(*args, "--json")
    if "OpenCL" in result.stderr and result.exit_code == 2:
        pytest.skip(result.stderr)
    assert result.exit_code == 0, result.stderr
    first, *_, last = json.loads(result.stdout)["passes"]
    assert first["pass"] == "lowering"
    assert [op["kind"] for op in first["ops"]] == ["conv", "elementwise"] * 3
    assert [op["kind"] for op in last["ops"]] == ["conv"] * 3
    assert last["ops"][0]["output"] == "r0"
    assert last["ops"][0]["shape"] == [1, 3, 32, 32]
    assert "fuse-convolutions: 3 ops" in invoke(*args).stdout


def test_an_engine_without_passes_says_so(small_model):
    result = invoke("partition", str(small_model), "--passes", *ON_ONNXRUNTIME)
    assert result.exit_code == 2
    assert "the engine onnxruntime has no passes to show" in result.stderr


def test_check_goes_on_after_a_model_that_cannot_be_checked(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    result = invoke("check", str(broken), "selfie", "--device", "onnxruntime", "--json")
    assert result.exit_code == 2, result.stderr
    printed = json.loads(result.stdout)
    assert printed["schema"] == 1
    first, second = printed["models"]
    assert first["error"]
    assert second["error"] is None
    assert second["max_rel_error"] <= 1e-3
    assert second["cores"] >= 1


def test_free_dimensions_are_fixed_by_an_option(tmp_path, monkeypatch):
    import onnx

    graph = '<ir_version: 8, opset_import: ["" : 13]> net (float[1, n] x) => (float[1, n] y) '
    onnx.save(onnx.parser.parse_model(graph + "{ y = Relu(x) }"), tmp_path / "free.onnx")
    monkeypatch.chdir(tmp_path)
    ort = ("--device", "onnxruntime", "--json")
    (refused,) = json.loads(invoke("check", "free.onnx", *ort).stdout)["models"]
    assert "such as --shape x=1x1" in refused["error"]
    assert "such as --shape x=1x1" in invoke("profile", "free.onnx", *ort).stderr
    (checked,) = json.loads(invoke("check", "free.onnx", "--shape", "x=1x8", *ort).stdout)["models"]
    assert checked["error"] is None


def test_bundled_files_are_found_by_their_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke("check", "seg_selfie_256.onnx", "--device", "onnxruntime", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["models"][0]["error"] is None
    marker = ("--marker", "DICT_4X4_50:7:0.08")
    done = invoke("pose", "page.mp4", *marker, "--frames", "2", "--json")
    assert json.loads(done.stdout)["frames"][-1]["state"] == "tracked"


@pytest.mark.parametrize(
    "shape", ["image", "image=", "image=0x3", "=1x3", "image=1xx3", "image=1x2x3x4x5x6"]
)
def test_a_malformed_shape_is_refused(shape):
    result = invoke("profile", "nanodet", "--shape", shape)
    assert result.exit_code == 2
    assert "INPUT=SHAPE" in result.stderr


def test_an_unknown_strategy_lists_the_valid_ones(small_model):
    result = invoke("partition", str(small_model), "--strategy", "best")
    assert result.exit_code == 2
    assert "heimdall" in result.stderr


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    (tmp_path / "t.json").write_text("[1, 2")
    result = invoke("trace", str(tmp_path / "t.json"))
    assert result.exit_code == 2
    assert "is not a trace" in result.stderr
