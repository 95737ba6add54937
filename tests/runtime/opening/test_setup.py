"""Start-up: mistakes are found before slow work begins, and everything is closed again."""

from __future__ import annotations

import logging
import threading

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.app import DNN, App
from heimdall.app.options import RunOptions
from heimdall.errors import AppError, DeviceError, HeimdallError, ModelError
from heimdall.models import OnnxPipeline
from heimdall.models.base import Pipeline
from heimdall.runtime.opening import canvas, setup
from heimdall.vocabulary.processors import GPU
from tests.networks import small_model

OPTIONS = RunOptions(headless=True, size=(160, 90), device="onnxruntime", realtime=False)
MS = 1_000_000


@pytest.fixture
def app(tmp_path):
    """``app(**attributes)``: a scenario of one small network."""
    shape = (1, 3, 8, 8)
    names = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node(op, [before], [after], name=after)
        for op, before, after in zip(("Relu", "Sin", "Neg"), names, names[1:], strict=False)
    ]
    path = tmp_path / "tiny.onnx"
    onnx.save(small_model(nodes, {"x": shape}, {"y": shape}, opset=13), path)

    def make(options=None, **attributes) -> App:
        pipeline = OnnxPipeline(
            str(path), lambda image: {"x": np.zeros(shape, np.float32)}, lambda *_: 1
        )
        dnns = (DNN("tiny", pipeline, **(options or {})),)
        return type("Mine", (App,), {"dnns": dnns, "clip": "cup.mp4", **attributes})()

    return make


def capturing() -> int:
    return sum(thread.name == "capture" for thread in threading.enumerate())


def test_what_a_run_needs_is_there_and_ends_with_it(app):
    before = capturing()
    with setup.start(app(fps=20.0), OPTIONS) as made:
        assert made.fps == 20
        assert made.source.describe().startswith("video cup.mp4")
        assert made.first_frame.image.shape == (480, 640, 3)
        assert made.lone_render_ns > 0
        assert capturing() == before + 1
        (deployment,) = made.deployments.values()
        (network,) = deployment.networks(GPU)
        (stage,) = deployment.plan.stages
        assert len(stage.op_ns) == len(network.ops) > 0
        assert stage.cpu_ns > 0
        described = made.describe_devices()
        assert described["gpu"] == made.gpu_name
        assert described["renderer"]
    assert capturing() == before


def test_onnxruntime_as_the_gpu_runs_the_static_chunks_and_says_so(app, caplog):
    with caplog.at_level(logging.WARNING), setup.start(app(), OPTIONS) as made:
        assert (made.chunk_mode, made.elastic) == ("static", False)
    assert "static partition" in caplog.text


def test_each_step_is_told_to_its_end_and_in_order(app):
    told: dict[str, list[tuple[int, int]]] = {}
    with setup.start(app(), OPTIONS, lambda what, *step: told.setdefault(what, []).append(step)):
        pass
    order = [what for what in told if not what.startswith("profiling")]
    assert order == ["reading networks", "measuring the renderer", "compiling networks"]
    for what, steps in told.items():
        assert steps == sorted(steps), what
        assert steps[-1][0] == steps[-1][1] > 0, what


class Unfinished(Pipeline):
    """A pipeline that names no network."""

    def prepare(self, stage, image, previous, options):
        raise NotImplementedError

    def decode(self, stage, outputs, context):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("attributes", "options", "error", "said"),
    [
        ({"dnns": (DNN("a", "nothing"),)}, {}, HeimdallError, "nanodet"),
        ({"dnns": (DNN("a", Unfinished()),)}, {}, AppError, "Unfinished.networks"),
        ({"dnns": (DNN("a", "my.onnx", preprocess=print, decode=print),)}, {}, ModelError, "my"),
        ({"dnns": (DNN("a", "selfie", force_fallback=("Rleu",)),)}, {}, ModelError, "'Rleu'"),
        ({}, {"source": "missing.mp4"}, HeimdallError, "missing.mp4"),
    ],
)
def test_a_mistake_is_found_before_any_device_is_opened(
    app, monkeypatch, attributes, options, error, said
):
    before = capturing()
    monkeypatch.setattr(setup, "open_processors", lambda *_: _Unopened())
    monkeypatch.setattr(setup, "open_canvas", lambda *_, **__: pytest.fail("opened"))
    changed = RunOptions(**{**vars(OPTIONS), **options})
    with pytest.raises(error, match=said), setup.start(app(**attributes), changed):
        pass
    assert capturing() == before


class _Unopened:
    def __enter__(self):
        pytest.fail("opened")

    def __exit__(self, *_):
        """Never reached."""


def test_a_source_without_a_picture_is_an_error_that_names_it(app, monkeypatch):
    monkeypatch.setattr(setup, "FIRST_FRAME_TIMEOUT_S", 0.01)
    monkeypatch.setattr("heimdall.capture.source.Source.wait_first", lambda *_: None)
    with pytest.raises(DeviceError, match=r"cup\.mp4.*no picture"), setup.start(app(), OPTIONS):
        pass


def test_frames_that_take_longer_than_allowed_are_warned_of_and_leave_one_op_a_gap(
    app, monkeypatch, caplog
):
    monkeypatch.setattr(canvas, "measure_render", lambda draw: 50 * MS)
    with caplog.at_level(logging.WARNING), setup.start(app(fps=30.0), OPTIONS) as made:
        (stage,) = made.deployments["tiny"].plan.stages
        assert all(end - start == 1 for start, end in stage.chunks)
    assert "a frame takes 50.0 ms to draw, more than 30 frames a second allow" in caplog.text


def test_an_app_that_cannot_draw_yet_is_no_reason_not_to_start(app):
    def draw(self, scene):
        raise ValueError("not yet")

    with setup.start(app(draw=draw), OPTIONS) as made:
        assert made.lone_render_ns > 0
