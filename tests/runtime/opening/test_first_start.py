"""The first start of an app on a machine that has compiled nothing, for real, and the next one."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.networks import small_model

APP = """
import numpy as np
from heimdall import DNN, App, OnnxPipeline


class Mine(App):
    pipeline = OnnxPipeline(
        {model!r}, lambda image: {{"x": half(image)}}, lambda outputs, context: outputs["y"]
    )
    dnns = [DNN("edges", pipeline)]
    wrong = 0

    def on_result(self, dnn, result, frame):
        x = half(frame.image)[0]
        wanted = np.maximum(x[:, 1:-1, 2:] - x[:, 1:-1, :-2], 0)
        self.wrong += not np.allclose(result[0, :, 1:-1, 1:-1], wanted, atol=1e-4)


def half(image):
    small = image[:64, :64, :3].astype(np.float32) / 255
    return np.ascontiguousarray(small.transpose(2, 0, 1)[np.newaxis])
"""

RUN = """
import json, sys
from pathlib import Path
from heimdall import RunOptions, run
from heimdall.app import load_app
from heimdall.runtime.run import open_run

app = load_app({app!r})()
told = []
options = RunOptions(headless=True, size=(160, 90), frames=30, source={clip!r}, {more})
with open_run(app, options, lambda *step: told.append(step)) as run:
    summary = run.until_finished()
    kept = Path({cache!r}) / "kernels"
    while {wait} and not list(kept.glob("*.bin")):  # binaries come last
        run.turn()
summary["wrong"], summary["told"] = app.wrong, told
print(json.dumps(summary))
"""


@pytest.fixture(scope="module")
def start(run_python, tmp_path_factory, assets):
    """``start(more, wait)``: the summary of a run whose caches are those of the run before."""
    folder = tmp_path_factory.mktemp("first")
    model = folder / "edges.onnx"
    weights = np.zeros((3, 3, 3, 3), np.float32)
    for channel in range(3):
        weights[channel, channel, 1] = -1, 0, 1
    shape = [1, 3, 64, 64]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    onnx.save(small_model(nodes, {"x": shape}, {"y": shape}, {"w": weights}, opset=13), model)
    (folder / "mine.py").write_text(APP.format(model=str(model)))

    def start(more="", wait=False):
        cache = folder / "cache"
        code = RUN.format(
            app=str(folder / "mine.py"),
            clip=str(assets / "media" / "cup.mp4"),
            cache=str(cache),
            more=more,
            wait=wait,
        )
        environment = {
            **os.environ, "HEIMDALL_CACHE": str(cache), "POCL_CACHE_DIR": str(folder / "pocl")
        }  # fmt: skip
        (folder / "pocl").mkdir(exist_ok=True)
        cache.mkdir(exist_ok=True)
        return run_python(code, env=environment, timeout=600)

    return start


def test_a_first_start_draws_at_once_and_moves_its_networks_as_they_are_built(start):
    first = start(wait=True)
    if not first["device"]["software_gpu"] and first["start"] is None:
        pytest.skip("no OpenCL device that needs a compiler")
    assert first["errors"] == []
    assert first["wrong"] == 0
    assert first["startup_s"] == first["start"]["first_frame_s"] < first["start"]["on_gpu_s"]
    before, after = first["start"]["dnns"]["edges"], first["dnns"]["edges"]
    assert before["cpu"] > 0
    assert after["gpu"] > 0
    assert after["cpu"] == 0
    assert first["frames"] == 30
    assert first["start"]["frames"] > 0
    assert ["building networks for the GPU", 1, 1] in first["told"]

    later = start()
    assert later["start"] is None
    assert later["wrong"] == 0
    assert later["dnns"]["edges"]["cpu"] == 0


def test_networks_may_be_built_before_the_first_frame(start):
    assert start("build_first=True")["start"] is None
