"""A recurrent network in an app: its state goes on from result to result, wherever it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from heimdall.app import DNN, App
from heimdall.app.options import RunOptions
from heimdall.capture.mcap_messages import RESULTS
from heimdall.capture.mcap_reader import as_json, read_messages
from heimdall.errors import AppError, ConfigError, ModelError
from heimdall.runtime.run import run_app
from heimdall.runtime.session.session import Session
from heimdall.system import paths
from tests.graph.models import model

GREY = np.full((48, 64, 3), 128, np.uint8)


def saved(path, last="Mul", number=1.0):
    """A file of: sum_out = sum_in + x; y = sum_out, for four numbers, as ``last`` lets it be."""
    nodes = [
        helper.make_node("Add", ["sum_in", "x"], ["sum_out"]),
        helper.make_node(last, ["sum_out", "number"], ["y"]),
    ]
    shapes = {"x": [1, 4], "sum_in": [1, 4]}
    onnx.save(model(nodes, shapes, ["y", "sum_out"], {"number": np.float32(number)}), path)
    return str(path)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("state") / "sum.onnx")


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


@pytest.mark.parametrize("device", ["onnxruntime", None])
@pytest.mark.parametrize(("last", "number"), [("Mul", 1.0), ("Min", 9.0)])
def test_a_sum_without_end_begins_anew_wherever_it_lies(tmp_path, caplog, device, last, number):
    """At once where another output shows it; the least of it and 9 does not."""

    def preprocess(image):
        return {"x": np.full((1, 4), 3e38 if image.max() == 255 else 1, np.float32)}

    dnn = replace(counting(saved(tmp_path / "sum.onnx", last, number)), preprocess=preprocess)
    with Session([dnn], device=device) as session:
        for image, times in ((np.full_like(GREY, 255), 2), (GREY, 40)):
            session.push(image)
            found = [session.wait(session.request("count"), 30) for _ in range(times)]
    assert "output 'sum_out' has values that are no numbers" in caplog.text
    begun = found.index(1)
    assert begun == 0 or last == "Min"
    assert found[begun : begun + 9] == [*range(1, 10)]


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


REPLAYED = """
import numpy as np
from heimdall import DNN, App

class Counting(App):
    dnns = (DNN("count", model={model!r}, rate_hz=10, state={{"sum_out": "sum_in"}},
                preprocess=lambda image: {{"x": np.ones((1, 4), np.float32)}},
                decode=lambda outputs, context: float(outputs["y"][0, 0])),)
"""


def test_a_session_begins_with_zeros_and_so_does_a_run_on_it(file, tmp_path):
    app = tmp_path / "counting.py"
    app.write_text(REPLAYED.format(model=file))
    usual: dict[str, Any] = {
        "headless": True,
        "size": (64, 48),
        "device": "onnxruntime",
        "frames": 60,
    }
    source = str(paths.ASSETS / "media" / "cup.mp4")
    for name in ("first.mcap", "again.mcap"):
        kept = tmp_path / name
        run_app(str(app), RunOptions(source=source, capture=kept, **usual))
        found = [as_json(each)["value"] for each in read_messages(kept) if each.topic == RESULTS]
        assert found == [*range(1, len(found) + 1)]
        assert len(found) > 1
        source = str(kept)
