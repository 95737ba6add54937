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
from heimdall.capture.mcap_messages import PICTURES, RESULTS, STATES, read_array
from heimdall.capture.mcap_reader import as_json, read_messages
from heimdall.errors import AppError, ConfigError, ModelError
from heimdall.runtime.run import run_app
from heimdall.runtime.session.session import Session
from heimdall.system import paths
from tests.fuzz.targets.mcap import session_file
from tests.graph.models import model

GREY = np.full((48, 64, 3), 128, np.uint8)


def saved(path, last="Mul", number=1.0, size=4):
    """A file of: sum_out = sum_in + x; y = sum_out, for some numbers, as ``last`` lets it be."""
    nodes = [
        helper.make_node("Add", ["sum_in", "x"], ["sum_out"]),
        helper.make_node(last, ["sum_out", "number"], ["y"]),
    ]
    shapes = {"x": [1, size], "sum_in": [1, size]}
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
                preprocess=lambda image: {{"x": np.ones((1, {size}), np.float32)}},
                decode=lambda outputs, context: float(outputs["y"][0, 0])),)
"""


USUAL: dict[str, Any] = {"headless": True, "size": (64, 48), "device": "onnxruntime", "frames": 60}


CLIP = paths.ASSETS / "media" / "cup.mp4"


@pytest.fixture(scope="module")
def app(file, tmp_path_factory):
    path = tmp_path_factory.mktemp("app") / "counting.py"
    path.write_text(REPLAYED.format(model=file, size=4))
    return str(path)


def kept(app, path, source, **options):
    """What a run on ``source``, kept as ``path``, has found."""
    run_app(app, RunOptions(source=str(source), capture=path, **{**USUAL, **options}))
    return [as_json(each)["value"] for each in read_messages(path) if each.topic == RESULTS]


def test_a_session_begins_with_zeros_and_so_does_a_run_on_it(app, tmp_path):
    source = CLIP
    for name in ("first.mcap", "again.mcap"):
        found = kept(app, tmp_path / name, source)
        assert found == [*range(1, len(found) + 1)]
        assert len(found) > 1
        source = tmp_path / name


def part(path, of, state=None):
    """The rest of a session from the middle on, as tools for MCAP files cut it: its pictures, and
    the states of its networks, or ``state`` instead."""
    there = [each for each in read_messages(of) if each.topic in (PICTURES, STATES)]
    rest = there[len(there) // 2 :]
    if state is not None:
        rest = [replace(each, data=state) if each.topic == STATES else each for each in rest]
    path.write_bytes(session_file(rest))


@pytest.mark.parametrize("device", ["onnxruntime", None])
def test_a_run_on_a_part_of_a_session_goes_on_from_the_state_it_had(app, tmp_path, device):
    found = kept(app, tmp_path / "whole.mcap", CLIP, device=device, frames=90)
    states = [
        as_json(each) for each in read_messages(tmp_path / "whole.mcap") if each.topic == STATES
    ]
    assert states[0] == {}
    had = [read_array(each["count"]["sum_in"]).max() for each in states[1:]]
    assert 1 < had[-1] <= found[-1]
    part(tmp_path / "part.mcap", tmp_path / "whole.mcap")
    again = kept(app, tmp_path / "again.mcap", tmp_path / "part.mcap", device=device)
    assert again[0] - 1 in had
    assert again == [*range(int(again[0]), int(again[0]) + len(again))]


def test_a_large_state_is_left_out_and_told(tmp_path, caplog):
    app, size = tmp_path / "large.py", 1 << 19
    app.write_text(REPLAYED.format(model=saved(tmp_path / "large.onnx", size=size), size=size))
    kept(str(app), tmp_path / "run.mcap", CLIP)
    topics = [each.topic for each in read_messages(tmp_path / "run.mcap")]
    assert topics.count(STATES) == 1
    assert caplog.text.count("the state of count is left out: 2.1 MB, over 1.0") == 1


@pytest.fixture(scope="module")
def whole(app, tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "whole.mcap"
    kept(app, path, CLIP)
    return path


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            b'{"count": {"sum_in": {"dtype": "<f4", "shape": [1, 3], "zlib": "eNpjYMAEAAAQAAE="}}}',
            "sum_in",
        ),
        (b'{"count": {"sum_in": {"dtype": "<f4", "shape": [1, 4], "zlib": "?"}}}', "is none"),
        (b'{"count": {}, "other": {}}', ""),
        (b'{"count": {"other": 5}}', "is none"),
        (b'{"count": 5}', "int"),
    ],
)
def test_a_state_that_makes_no_sense_is_left_out_and_told(
    app, whole, tmp_path, caplog, state, said
):
    part(tmp_path / "part.mcap", whole, state)
    assert kept(app, tmp_path / "again.mcap", tmp_path / "part.mcap")[0] == 1
    told = [each for each in caplog.messages if "begins with zeros" in each]
    assert bool(told) == bool(said)
    assert all(said in each for each in told)
