"""A recurrent network in an app: its state goes on from result to result, wherever it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.app import DNN, App
from heimdall.errors import AppError, ConfigError, ModelError
from heimdall.runtime.session.session import Session
from tests.graph.models import model

GREY = np.full((48, 64, 3), 128, np.uint8)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """y = sum_out = sum_in + x, for four numbers."""
    nodes = [
        helper.make_node("Add", ["sum_in", "x"], ["sum_out"]),
        helper.make_node("Mul", ["sum_out", "one"], ["y"]),
    ]
    shapes = {"x": [1, 4], "sum_in": [1, 4]}
    path = tmp_path_factory.mktemp("state") / "sum.onnx"
    onnx.save(model(nodes, shapes, ["y", "sum_out"], {"one": np.float32(1)}), path)
    return str(path)


def counting(file, **more):
    """A DNN whose result is how many inferences there were."""
    return DNN(
        "count",
        model=file,
        preprocess=lambda image: {"x": np.ones((1, 4), np.float32)},
        decode=lambda outputs, context: float(outputs["y"][0, 0]),
        state={"sum_out": "sum_in"},
        on_event=True,
        **more,
    )


@pytest.mark.parametrize("device", ["onnxruntime", None])
def test_each_result_goes_on_from_the_one_before(file, device):
    with Session([counting(file)], device=device) as session:
        session.push(GREY)
        found = [session.wait(session.request("count"), 30) for _ in range(4)]
        session.reset("count")
        found.append(session.wait(session.request("count"), 30))
    assert found == [1, 2, 3, 4, 1]


def test_reset_begins_anew(file):
    class Counting(App):
        dnns = (counting(file),)

    with Session(Counting, size=(64, 48), overlay="off", device="onnxruntime") as session:
        session.push(GREY)
        found = [session.wait(session.request("count"), 30) for _ in range(3)]
        session.app.reset("count")
        session.step()
        found.append(session.wait(session.request("count"), 30))
    assert found == [1, 2, 3, 1]


def test_only_one_with_state_is_reset(file):
    app = type("Still", (App,), {"dnns": (DNN("people", model="selfie"),)})()
    with pytest.raises(AppError, match="'people' has no state"):
        app.reset("people")


def test_a_state_that_the_file_lacks_is_refused(file):
    dnn = replace(counting(file), state={"h": "sum_in"})
    with pytest.raises(ModelError, match="no output 'h'"):
        Session([dnn], device="onnxruntime").open()


def test_a_catalogue_name_takes_no_state():
    with pytest.raises(ConfigError, match="state"):
        Session([DNN("people", model="selfie", state={"a": "b"})], device="onnxruntime").open()
