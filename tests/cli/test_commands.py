"""The command line: results on standard output, one clear line on standard error, statuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from heimdall.app.options import RunOptions, parse_size, parse_source
from heimdall.cli import console, main
from heimdall.errors import ConfigError


def invoke(*args: str):
    return CliRunner().invoke(main, list(args))


def heimdall(*args: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "heimdall.cli", *args],
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


def test_the_version_is_the_packages():
    from importlib.metadata import version

    assert invoke("--version").stdout.split()[-1] == version("heimdall-ar")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", "shopping", "--size", "1280"], "WIDTHxHEIGHT"),
        (["run", "shopping", "--size", "-1x5"], "WIDTHxHEIGHT"),
        (["run", "shopping", "--size", "0x5"], "from 1 to"),
        (["run", "shopping", "--fps", "0"], "--fps 0"),
        (["run", "shopping", "--fps", "nan"], "--fps nan"),
        (["run", "shopping", "--fps", "fast"], "fast"),
        (["run", "shopping", "--frames", "0"], "--frames 0"),
        (["run", "shopping", "--seconds", "-3"], "--seconds -3"),
        (["run", "shopping", "--seconds", "inf"], "--seconds inf"),
        (["run", "shopping", "--gpu-cores", "0"], "--gpu-cores 0"),
        (["run", "shopping", "--content", "none"], "none"),
        (["run", "shopping", "--what"], "--what"),
        (["run", "shopping", "--scheduler", "best"], "max-total"),
        (["run"], "APP"),
        (["walk"], "walk"),
        (["check"], "MODEL"),
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


def test_sizes_and_sources_are_parsed():
    assert parse_size("1280x720") == (1280, 720)
    assert parse_source("0") == 0
    assert parse_source("clip.mp4") == "clip.mp4"
    assert parse_source("rtsp://camera/1") == "rtsp://camera/1"
    assert parse_source(None) is None


def test_run_options_refuse_a_folder_as_a_file(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        RunOptions(record=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write"):
        RunOptions(trace=tmp_path / "file" / "trace.json")
    assert RunOptions(record=tmp_path / "new" / "clip.mp4").record is not None


def test_run_passes_its_options_on(monkeypatch, tmp_path):
    seen: dict[str, Any] = {}

    def run_app(target, options, *progress):
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
    assert record.parent.is_dir()


# --- output and statuses ----------------------------------------------------------------------


def test_json_output_is_pure_whatever_is_printed_meanwhile():
    code = (
        "import os\n"
        "from heimdall.cli import console\n"
        "with console.work(True):\n"
        "    print('an app prints')\n"
        "    os.write(1, b'a driver prints\\n')\n"
        "    os.system('echo a child prints')\n"
        "console.print_json({'value': float('nan')})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == '{"value": null}\n'
    for who in ("an app", "a driver", "a child"):
        assert f"{who} prints" in done.stderr


def test_numpy_values_and_paths_become_json(capsys):
    import numpy as np

    console.print_json({"a": np.float32(1.5), "b": np.int64(2), "c": Path("x"), "d": (1, None)})
    assert json.loads(capsys.readouterr().out) == {"a": 1.5, "b": 2, "c": "x", "d": [1, None]}


def group_with(failure: BaseException) -> click.Group:
    @click.group(cls=console.Commands)
    def group() -> None: ...

    @group.command()
    def fail() -> None:
        raise failure

    return group


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (ConfigError("rate: must be positive"), 2, "error: rate: must be positive"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.FileError("x.mp4", "cannot be read"), 2, "error: "),
    ],
)
def test_each_kind_of_end_has_its_status(failure, status, said):
    result = CliRunner().invoke(group_with(failure), ["fail"])
    assert result.exit_code == status
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_bug_is_not_hidden():
    result = CliRunner().invoke(group_with(ZeroDivisionError()), ["fail"])
    assert isinstance(result.exception, ZeroDivisionError)


def test_progress_prints_a_line_for_each_step_where_there_is_no_terminal(capsys):
    with console.Progress() as progress:
        for done in range(4):
            progress("profiling nanodet", done, 3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "profiling nanodet ..."
    assert lines[1].startswith("profiling nanodet: done in")
    assert len(lines) == 2


# --- commands for real ------------------------------------------------------------------------


def test_models_lists_the_catalogue_with_files_that_exist():
    from heimdall.system.paths import ASSETS

    listed = json.loads(invoke("models", "--json").stdout)["models"]
    assert {"nanodet", "selfie", "hand", "multistyle"} <= {model["name"] for model in listed}
    for model in listed:
        assert all((ASSETS / "models" / name).is_file() for name in model["files"])
    assert "nanodet" in invoke("models").stdout


def test_devices_prints_one_object():
    result = heimdall("devices", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert {"gpu", "software_gpu", "gl", "onnxruntime", "cameras"} <= set(report)


def test_devices_for_people_names_gpu_and_renderer():
    result = heimdall("devices")
    assert result.returncode == 0, result.stderr
    assert "OpenGL" in result.stdout
    assert "software GPU" in result.stdout


@pytest.fixture(scope="module")
def small_model(tmp_path_factory) -> Path:
    """Three convolutions on 1x3xHx32, the height free."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, before = [], [], "image"
    for index in range(3):
        weight = rng.normal(0, 0.2, (3, 3, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        nodes.append(
            helper.make_node("Conv", [before, f"w{index}"], [f"c{index}"], pads=[1, 1, 1, 1])
        )
        nodes.append(helper.make_node("Relu", [f"c{index}"], [f"r{index}"]))
        before = f"r{index}"
    shape = (1, 3, "height", 32)
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(before, TensorProto.FLOAT, shape)],
        weights,
    )
    path = tmp_path_factory.mktemp("models") / "small.onnx"
    opset = [helper.make_opsetid("", 13)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


ON_ONNXRUNTIME = ("--device", "onnxruntime", "--shape", "image=1x3x32x32", "--json")


def test_profile_measures_once_and_then_reads(small_model, tmp_path):
    cache = {"HEIMDALL_CACHE": str(tmp_path)}
    first = heimdall("profile", str(small_model), *ON_ONNXRUNTIME, **cache)
    assert first.returncode == 0, first.stderr
    (network,) = json.loads(first.stdout)["networks"]
    assert network["ops"]
    assert all(op["ms"] >= 0 for op in network["ops"])
    assert "profiling" in first.stderr
    second = heimdall("profile", str(small_model), *ON_ONNXRUNTIME, **cache)
    assert json.loads(second.stdout) == json.loads(first.stdout)
    assert "profiling" not in second.stderr


def test_profile_for_people_lists_the_ops(small_model, tmp_path):
    args = ("--device", "onnxruntime", "--shape", "image=1x3x32x32")
    result = heimdall("profile", str(small_model), *args, HEIMDALL_CACHE=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "GFLOP/s" in result.stdout
    assert "whole network" in result.stdout


def test_partition_covers_every_op_and_draws(small_model, tmp_path):
    png = tmp_path / "new" / "chunks.png"
    args = ("--strategy", "fixed", "--ops", "2", "--png", str(png), *ON_ONNXRUNTIME)
    result = heimdall("partition", str(small_model), *args, HEIMDALL_CACHE=str(tmp_path))
    assert result.returncode == 0, result.stderr
    chunks = json.loads(result.stdout)["chunks"]
    assert chunks[0]["start"] == 0
    for before, after in pairwise(chunks):
        assert before["end"] == after["start"]
    assert all(chunk["end"] - chunk["start"] <= 2 for chunk in chunks)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_check_goes_on_after_a_model_that_cannot_be_checked(tmp_path):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    result = heimdall("check", str(broken), "selfie", "--device", "onnxruntime", "--json")
    assert result.returncode == 0, result.stderr
    first, second = json.loads(result.stdout)
    assert first["error"]
    assert second["error"] is None
    assert second["max_rel_error"] <= 1e-3
    assert second["cores"] >= 1


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
