"""What a user can get wrong, through the command line: one clear error, status 2, no traceback;
or the documented fallback, and frames go on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import av
import cv2
import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import heimdall.runtime.loop.live
from heimdall.app.options import RunOptions
from heimdall.cli import main
from heimdall.engine.onnxruntime import OnnxRuntimeNetwork
from heimdall.runtime.run import run_app

HEADER = "from heimdall.app import App, DNN\nfrom heimdall.models import OnnxPipeline\n"
SMALL = RunOptions(headless=True, size=(160, 90), frames=5, device="onnxruntime")


def refused(*args: object) -> str:
    """The error of a command that must fail as commands should."""
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    return line


def app_file(folder: Path, body: str) -> Path:
    path = folder / "mine.py"
    path.write_text(HEADER + body)
    return path


def tiny_model(
    path: Path, op: str = "Relu", kind: int = TensorProto.FLOAT, domain: str = ""
) -> Path:
    values = [helper.make_tensor_value_info(name, kind, (1, 3, 8, 8)) for name in ("x", "y")]
    node = helper.make_node(op, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "tiny", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("strange", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


# --- sources and results ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (None, "missing.mp4", "No such file"),
        (b"", "empty.mp4", "is empty"),
        (b"hello\n", "text.png", "is a text file"),
        (b"\x00\x01\xff" * 99, "noise.mp4", "no video"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "cut.png", "damaged"),
    ],
)
def test_a_source_that_is_no_picture_is_refused(tmp_path, content, name, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    error = refused("run", "shopping", "--headless", "--source", tmp_path / name)
    assert name in error
    assert said in error


def test_a_truncated_video_is_refused(tmp_path, assets):
    (tmp_path / "cut.mp4").write_bytes((assets / "media" / "box.mp4").read_bytes()[:3000])
    assert "cut.mp4" in refused("run", "shopping", "--headless", "--source", tmp_path / "cut.mp4")


@pytest.mark.parametrize("source", ["rtsp://127.0.0.1:1/x", "strange://x", "999"])
def test_a_source_that_cannot_be_opened_is_refused(source):
    assert f" {source}" in refused("run", "shopping", "--headless", "--source", source)


def test_a_source_without_a_name_is_refused():
    assert "no name" in refused("run", "shopping", "--headless", "--source", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_without_writer_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    error = refused("run", "shopping", "--headless", "--source", tmp_path / "pipe.mp4")
    assert "is a pipe" in error


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--record", "out.avi", ".mp4"),
        ("--screenshot", "out.xyz", ".png"),
        ("--trace", "file/trace.json", "cannot write"),
        ("--record", "file/x/clip.mp4", "cannot write"),
        ("--trace", "n" * 300, "cannot write"),
    ],
)
def test_a_result_with_nowhere_to_go_is_found_before_the_run(tmp_path, option, name, said):
    (tmp_path / "file").write_text("kept")
    assert said in refused("run", "shopping", "--headless", option, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_port_in_use_is_found_before_anything_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        result = CliRunner().invoke(main, ["run", "shopping", "--serve", str(port)])
    assert result.exit_code == 2
    assert f"error: --serve 127.0.0.1:{port}: port {port} is in use" in result.stderr
    assert "reading networks" not in result.stderr


def test_a_cache_that_is_a_file_is_told_and_done_without(tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("kept")
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    model = tiny_model(tmp_path / "tiny.onnx")
    args = ["profile", str(model), "--device", "onnxruntime", "--json"]
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0
    assert result.stderr.count("is not used") == 1
    assert "HEIMDALL_CACHE" in result.stderr
    assert (tmp_path / "cache").read_text() == "kept"


# --- models -----------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [None, b"", b"junk"])
def test_a_file_that_is_no_model_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "m.onnx").write_bytes(content)
    assert "m.onnx" in refused("profile", tmp_path / "m.onnx")
    assert "m.onnx" in refused("partition", tmp_path / "m.onnx")


def test_a_truncated_model_is_refused(tmp_path, assets):
    whole = (assets / "models" / "seg_selfie_256.onnx").read_bytes()
    (tmp_path / "m.onnx").write_bytes(whole[: len(whole) // 2])
    assert "truncated" in refused("profile", tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"op": "Frobnicate"}, "Frobnicate"),
        ({"op": "Frobnicate", "domain": "strange"}, "strange"),
        ({"op": "Identity", "kind": TensorProto.STRING}, "text"),
    ],
)
def test_a_model_that_cannot_run_is_refused_naming_why(tmp_path, fault, said):
    assert said in refused("profile", tiny_model(tmp_path / "m.onnx", **fault))


def test_a_forced_fallback_that_names_nothing_is_refused(tmp_path):
    model = tiny_model(tmp_path / "tiny.onnx")
    args = ("--device", "onnxruntime", "--fallback", "Rleu")
    assert "'Rleu'" in refused("profile", model, *args)
    dnn = "DNN('seg', 'selfie', force_fallback=('Convolution',))"
    path = app_file(tmp_path, f"class A(App):\n    dnns = [{dnn}]")
    assert "'Convolution'" in refused("run", path, "--headless", "--frames", "1")


def test_a_damaged_profile_is_measured_again_and_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))
    model = tiny_model(tmp_path / "tiny.onnx")
    args = ["profile", str(model), "--device", "onnxruntime", "--json"]
    assert CliRunner().invoke(main, args).exit_code == 0
    (profile,) = (tmp_path / "cache").rglob("tiny*.json")
    for damage in ("", "[]", '{"a":', profile.read_text()[:200]):
        profile.write_text(damage)
        result = CliRunner().invoke(main, args)
        assert result.exit_code == 0, result.output
        assert "measuring again" in result.stderr
        json.loads(profile.read_text())


# --- app files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "must define one App subclass"),
        ("class A(App:", "line 3: SyntaxError"),
        ("import nothing_of_that_name", "line 3: ModuleNotFoundError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("class A(App):\n    dnns = 5", "must be a list"),
        ("class A(App):\n    dnns = DNN('a', 'selfie')", "must be a list"),
        ("class A(App):\n    dnns = ['selfie']", "must hold DNN"),
        ("class A(App):\n    dnns = [DNN('a', 'selfie'), DNN('a', 'selfie')]", "two DNNs"),
        ("class A(App):\n    dnns = [DNN('a', 'nothing')]", "nanodet"),
        ("class A(App):\n    dnns = [DNN('a', 'selfie', rate_hz='x')]", "line 4: DNN 'a': rate_hz"),
        ("class A(App):\n    dnns = [DNN('a', 'selfie', options={'x': 1})]", "no options"),
        ("class A(App):\n    dnns = [DNN('a', 'my.onnx')]", "preprocess and decode"),
        ("class A(App):\n    dnns = [DNN('a', OnnxPipeline('my.onnx', 1, 2))]", "no model file"),
        ("class A(App):\n    fps = '30'", "A.fps"),
        ("class A(App):\n    fps = 0", "A.fps"),
        ("class A(App):\n    size = (0, 5)", "A.size"),
        ("class A(App):\n    scheduler = 'best'", "max-total"),
        ("class A(App):\n    content = 'best'", "aging"),
        ("class A(App):\n    clip = 'nothing.mp4'", "nothing.mp4"),
        ("class A(App):\n    def __init__(self):\n        raise ValueError('no')", "line 5: A()"),
        ("class A(App):\n    def __init__(self, x):\n        pass", "missing 1 required"),
    ],
)
def test_a_mistake_in_an_app_file_is_refused(tmp_path, body, said):
    assert said in refused("run", app_file(tmp_path, body), "--headless", "--frames", "1")


def test_an_app_class_that_is_not_there_lists_those_that_are(tmp_path):
    path = app_file(tmp_path, "class A(App): pass\nclass B(App): pass")
    assert "A, B" in refused("run", path, "--headless")
    assert "choose one of: A, B" in refused("run", f"{path}:C", "--headless")


# --- devices ----------------------------------------------------------------------------------


def test_an_unknown_device_lists_those_that_exist():
    assert "quantum" in refused("run", "shopping", "--headless", "--device", "quantum")


def test_no_display_says_what_to_do(monkeypatch):
    if not sys.platform.startswith("linux"):
        pytest.skip("a display is part of the system")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert "--headless" in refused("run", "shopping", "--device", "onnxruntime")


def test_no_opengl_names_the_package_to_install(monkeypatch):
    import moderngl

    def fail(**_: object) -> None:
        raise Exception("libEGL.so.1: cannot open shared object file")

    monkeypatch.setattr(moderngl, "create_context", fail)
    error = refused("run", "shopping", "--headless", "--device", "onnxruntime")
    assert "libegl1" in error


# --- the app's own errors, while frames are drawn ------------------------------------------------


def summary_of(path: Path, **changes: object) -> dict:
    return run_app(str(path), RunOptions(**{**vars(SMALL), **changes}))


def test_callbacks_that_always_raise_are_disabled_and_frames_go_on(tmp_path):
    body = """
class A(App):
    dnns = [DNN("seg", "selfie")]
    def on_start(self): raise KeyError("start")
    def draw(self, scene): raise ValueError("draw")
    def on_result(self, *args): raise RuntimeError("result")
    def demo_events(self): raise OSError("script")
"""
    summary = summary_of(app_file(tmp_path, body), frames=20)
    assert summary["frames"] >= 20
    assert summary["dnns"]["seg"]["inferences"] > 0
    told = " ".join(summary["errors"])
    for callback in ("A.on_start", "A.draw", "A.on_result", "A.demo_events"):
        assert f"{callback} raised" in told
    assert "disabled" in told


@pytest.mark.parametrize("wait", ["'soon'", "float('nan')", "-1", "None"])
def test_a_script_that_yields_no_time_ends(tmp_path, wait):
    path = app_file(tmp_path, f"class A(App):\n    def demo_events(self):\n        yield {wait}")
    summary = summary_of(path)
    assert summary["frames"] >= 5
    assert len(summary["errors"]) == (wait != "None")


def test_a_script_may_ask_at_every_frame(tmp_path):
    body = """
class A(App):
    dnns = [DNN("seg", "selfie", on_event=True)]
    def demo_events(self):
        while True:
            self.request("seg")
            yield 0
"""
    summary = summary_of(app_file(tmp_path, body), frames=15)
    assert summary["dnns"]["seg"]["inferences"] >= 2
    assert summary["errors"] == []


BAD_TENSORS = {
    "None": "must return a mapping",
    "{'y': np.zeros((1, 3, 8, 8), np.float32)}": "has inputs ['x']",
    "{'x': np.zeros((1, 3, 8, 8))}": "must be float32",
    "{'x': np.zeros((3, 8, 8), np.float32)}": "of shape (3, 8, 8)",
    "exit()": "SystemExit",
}


def test_tensors_that_do_not_fit_are_the_apps_fault_not_the_gpus(tmp_path):
    model = tiny_model(tmp_path / "tiny.onnx")
    dnns = [
        f"DNN('d{i}', OnnxPipeline({str(model)!r}, lambda image: {made}, lambda *a: 1))"
        for i, made in enumerate(BAD_TENSORS)
    ]
    good = "lambda image: {'x': np.ones((1, 3, 8, 8), np.float32)}"
    dnns.append(f"DNN('decode', OnnxPipeline({str(model)!r}, {good}, lambda *a: 1 / 0))")
    dnns.append(f"DNN('good', OnnxPipeline({str(model)!r}, {good}, lambda *a: 1))")
    body = f"""
import numpy as np
from sys import exit
class A(App):
    dnns = [{", ".join(dnns)}]
"""
    summary = summary_of(app_file(tmp_path, body))
    told = "\n".join(summary["errors"])
    for i, said in enumerate(BAD_TENSORS.values()):
        (line,) = [
            line for line in summary["errors"] if line.startswith(f"d{i}: preprocess failed")
        ]
        assert said in line
    assert "decode: decode failed: ZeroDivisionError" in told
    assert "the GPU" not in told
    assert summary["dnns"]["good"]["gpu"] > 0


def test_a_gpu_that_fails_loses_its_dnns_to_the_cpu(tmp_path, monkeypatch):
    started: list[bool] = []
    run, begin = OnnxRuntimeNetwork.run, heimdall.runtime.loop.live.LiveRun.until_finished

    def fail(self, state, start, end):
        if started and threading.current_thread().name.startswith("gpu"):
            raise RuntimeError("CL_OUT_OF_RESOURCES")
        return run(self, state, start, end)

    def note(self):
        started.append(True)
        return begin(self)

    monkeypatch.setattr(OnnxRuntimeNetwork, "run", fail)
    monkeypatch.setattr(heimdall.runtime.loop.live.LiveRun, "until_finished", note)
    path = app_file(tmp_path, "class A(App):\n    dnns = [DNN('seg', 'selfie', rate_hz=4)]")
    summary = summary_of(path, frames=40)
    assert summary["frames"] >= 40
    assert summary["dnns"]["seg"]["cpu"] > 0
    assert summary["dnns"]["seg"]["gpu"] == 0
    assert any("its DNNs move to the CPU" in error for error in summary["errors"])


# --- extremes that must work ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "size"),
    [((1, 1, 3), (1, 1)), ((48, 64), (161, 91)), ((30, 41, 4), (160, 90)), ((1, 900, 3), (90, 3))],
)
def test_odd_pictures_and_sizes_are_drawn(tmp_path, shape, size):
    cv2.imwrite(str(tmp_path / "odd.png"), np.full(shape, 90, np.uint8))
    path = app_file(tmp_path, "class A(App): pass")
    summary = summary_of(path, source=str(tmp_path / "odd.png"), size=size, frames=1)
    assert summary["size"] == list(size)
    assert summary["errors"] == []


def test_a_slow_rate_does_not_warm_up_for_twenty_frames(tmp_path, monkeypatch):
    monkeypatch.setattr(heimdall.runtime.loop.live, "WARM_UP_LIMIT_S", 0.1)
    body = """
class A(App):
    drawn = 0
    def draw(self, scene):
        self.drawn += 1
        if self.drawn > 25:
            raise SystemExit("still warming up")
"""
    assert summary_of(app_file(tmp_path, body), fps=20.0, frames=1)["frames"] >= 1


# --- in a process of its own ----------------------------------------------------------------------


def start(*args: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "heimdall", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_without_opencl_onnxruntime_takes_over_with_a_warning(tmp_path):
    path = app_file(tmp_path, "class A(App):\n    dnns = [DNN('seg', 'selfie', rate_hz=4)]")
    args = ("run", path, "--headless", "--size", "160x90", "--frames", "20", "--json")
    process = start(*args, OCL_ICD_VENDORS=str(tmp_path))
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    summary = json.loads(out)
    assert summary["mode"] == "static"
    assert summary["dnns"]["seg"]["inferences"] > 0
    assert "onnxruntime instead" in err
    assert "Traceback" not in err


def recording(folder: Path) -> subprocess.Popen[str]:
    """A run that records clip.mp4; it has drawn 90 frames and then given the encoder a moment."""
    ready = folder / "ready"
    body = f"""
import pathlib, time
class A(App):
    frames = 0
    def draw(self, scene):
        self.frames += 1
        if self.frames == 90:
            time.sleep(1)
            pathlib.Path({str(ready)!r}).touch()
"""
    args = ("--headless", "--size", "160x90", "--device", "onnxruntime", "--json")
    process = start("run", app_file(folder, body), *args, "--record", folder / "clip.mp4")
    while not ready.exists() and process.poll() is None:
        time.sleep(0.05)
    return process


def seconds(video: Path) -> float:
    """When the last frame of a video is shown."""
    with av.open(str(video)) as container:
        return [frame.time for frame in container.decode(video=0)][-1]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are not sent to processes there")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_run_leaves_its_summary_and_a_video_that_plays(tmp_path, name):
    process = recording(tmp_path)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    summary = json.loads(out)
    assert summary["frames"] > 0
    assert summary["outputs"]["record"]["frames"] > 40
    assert "Traceback" not in err
    assert cv2.VideoCapture(str(tmp_path / "clip.mp4")).read()[0]
    assert seconds(tmp_path / "clip.mp4") > 2


def test_a_run_that_is_killed_leaves_a_video_that_plays_up_to_its_last_second(tmp_path):
    process = recording(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert cv2.VideoCapture(str(tmp_path / "clip.mp4")).read()[0]
    assert seconds(tmp_path / "clip.mp4") > 90 / 30 - 1 - 0.5  # some of the 90 measured the GPU


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit for files")
def test_a_disk_that_fills_up_ends_the_recording_and_costs_no_figures(tmp_path):
    """A limit for the size of files is the full disk; the picture still has room."""
    size = 16_000
    limited = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({size}, r.RLIM_INFINITY));"
    command = [sys.executable, "-c", f"{limited} from heimdall.cli import main; main()", "run"]
    args = ["--headless", "--size", "160x90", "--device", "onnxruntime", "--json", "--frames", 60]
    names = {"record": "clip.mp4", "screenshot": "last.jpg", "trace": "trace.json"}
    for option, name in names.items():
        args += [f"--{option}", tmp_path / name]
    path = app_file(tmp_path, "class A(App): ...")
    done = subprocess.run(
        [*command, *map(str, (path, *args))], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2, done.stderr
    summary = json.loads(done.stdout)
    assert summary["frames"] == 60
    outputs = summary["outputs"]
    assert outputs["screenshot"]["error"] is None
    assert cv2.imread(str(tmp_path / "last.jpg")).shape == (90, 160, 3)
    assert not (tmp_path / "trace.json").exists()
    assert 0 < outputs["record"]["frames"] < 60
    assert seconds(tmp_path / "clip.mp4") > 0
    for output, name in (("record", "clip.mp4"), ("trace", "trace.json")):
        error = outputs[output]["error"]
        assert name in error
        assert "File too large" in error
        assert error in summary["errors"]
        assert done.stderr.count(error) == 1
    assert "Traceback" not in done.stderr


# --- models of one's own ----------------------------------------------------------------------


def test_outputs_that_no_decoder_reads_are_explained_before_the_first_frame(tmp_path):
    tiny_model(tmp_path / "tiny.onnx")  # found beside the app, wherever the command runs
    path = app_file(
        tmp_path,
        "from heimdall.models import Boxes, ImageInput\n"
        "class Mine(App):\n"
        "    dnns = [DNN('parts', 'tiny.onnx', preprocess=ImageInput(), decode=Boxes('yolov8'))]\n",
    )
    line = refused("run", path, "--headless", "--frames", 1, "--device", "onnxruntime")
    assert "DNN 'parts': Boxes decodes yolov8 outputs, (1, 4 + classes, n) (80 labels)" in line
    assert "tiny has 'y' [1, 3, 8, 8]" in line


def test_preprocess_with_a_ready_pipeline_is_a_contradiction(tmp_path):
    path = app_file(
        tmp_path,
        "from heimdall.models import open_pipeline\n"
        "class Mine(App):\n"
        "    dnns = [DNN('a', open_pipeline('selfie'), decode=print)]\n",
    )
    assert "Selfie has its own" in refused("run", path, "--headless")
