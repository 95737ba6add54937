"""A served network is what its file declares: half precision, and a batch of any size."""

from __future__ import annotations

import contextlib
import json
import urllib.error
import urllib.request
from concurrent.futures import Future

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from heimdall.engine.remote import RemoteEngine
from heimdall.errors import DeviceError
from heimdall.graph.graph import load_graph
from heimdall.serve.declared import FREE, declared
from tests.serve.clients import Refused, tensor, triton_grpc, triton_http
from tests.serve.test_hosting import _none_left, started  # noqa: F401

F16, F32 = TensorProto.FLOAT16, TensorProto.FLOAT


def file_of(folder, x=("n", 3, 1, 1), y=("n", 3, 1, 1), kind=F16, bias=None):
    """y = x + x, and + ``bias``, where that is a second input."""
    shown = helper.make_tensor_value_info
    nodes = [helper.make_node("Add", ["x", "x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])]
    inputs = [shown("x", kind, x)]
    if bias is not None:
        inputs.append(shown("bias", kind, bias))
        nodes[1] = helper.make_node("Add", ["t", "bias"], ["y"])
    graph = helper.make_graph(nodes, "twice", inputs, [shown("y", kind, y)])
    opset = [helper.make_opsetid("", 17)]
    path = folder / "twice.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def declared_by(path, shapes=None):
    graph = load_graph(path, shapes)
    return declared(path, graph.inputs, graph.outputs, shapes or ())


def said(tensors):
    return [(each.name, each.shape, str(each.dtype)) for each in tensors]


def test_a_free_batch_and_half_precision_are_said(tmp_path):
    found = declared_by(file_of(tmp_path))
    assert said(found.inputs) == [("x", (FREE, 3, 1, 1), "float16")]
    assert said(found.outputs) == [("y", (FREE, 3, 1, 1), "float16")]


@pytest.mark.parametrize(
    ("x", "y", "shapes"),
    [
        ((1, 3, 1, 1), (1, 3, 1, 1), {}),
        (("n", 3, 1, 1), ("m", 3, 1, 1), {}),
        (("n", 3, 1, 1), ("n", 3, 1, 1), {"x": (1, 3, 1, 1)}),
    ],
    ids=["fixed", "another dimension in the output", "a shape was asked for"],
)
def test_what_is_no_free_batch_stays_as_it_is(tmp_path, x, y, shapes):
    found = declared_by(file_of(tmp_path, x, y, F32), shapes)
    assert said(found.inputs) == [("x", (1, 3, 1, 1), "float32")]
    assert said(found.outputs) == [("y", (1, 3, 1, 1), "float32")]


def test_rows_are_inferences_that_share_what_has_no_batch(tmp_path):
    found = declared_by(file_of(tmp_path, bias=(1, 3, 1, 1)))
    given = {"x": np.arange(6, dtype="f2").reshape(2, 3, 1, 1), "bias": np.ones((1, 3, 1, 1), "f2")}
    assert found.rows(given) == 2
    row = found.row(given, 1)
    assert row["x"].dtype == row["bias"].dtype == np.float32
    assert row["x"].ravel().tolist() == [3, 4, 5]
    assert row["bias"].ravel().tolist() == [1, 1, 1]


def test_answers_are_joined_in_order_and_fail_and_end_together(tmp_path):
    found = declared_by(file_of(tmp_path))
    rows: list[Future] = [Future() for _ in range(2)]
    whole = found.gathered(rows)
    rows[1].set_result({"y": np.full((1, 3), 2, "f4")})
    assert not whole.done()
    rows[0].set_result({"y": np.full((1, 3), 1, "f4")})
    assert whole.result(0)["y"].tolist() == [[1] * 3, [2] * 3]
    assert whole.result(0)["y"].dtype == np.float16
    rows = [Future() for _ in range(3)]
    whole = found.gathered(rows)
    rows[1].set_exception(DeviceError("lost"))
    with pytest.raises(DeviceError, match="lost"):
        whole.result(0)
    assert rows[0].cancelled()
    assert rows[2].cancelled()
    rows = [Future() for _ in range(2)]
    found.gathered(rows).cancel()
    assert all(each.cancelled() for each in rows)


def test_clients_send_and_get_what_the_file_declares(tmp_path):
    path = file_of(tmp_path)
    _, places = started("--model", f"twice={path}")
    for module, scheme in ((triton_http, "http"), (triton_grpc, "grpc")):
        with module.InferenceServerClient(places[scheme]) as client:
            for rows in (1, 3):
                given = np.arange(3 * rows, dtype=np.float16).reshape(rows, 3, 1, 1)
                answer = client.infer("twice", [tensor(module, "x", given, "FP16")]).as_numpy("y")
                assert answer.dtype == np.float16
                assert answer.tolist() == (2 * given).tolist()
            with pytest.raises(Refused, match="FP16 of shape"):
                client.infer("twice", [tensor(module, "x", np.ones((2, 3, 1, 1), "f4"))])
    with contextlib.closing(RemoteEngine(f"grpc://{places['grpc']}")) as remote:
        network = remote.load(load_graph(path))
        found = network.infer(network.new_state(), {"x": np.ones((1, 3, 1, 1), "f4")})
        assert found["y"].ravel().tolist() == [2, 2, 2]


def test_health_has_bodies_that_kserve_reads():
    _, places = started("--model", "people=iris_64.onnx")
    for what in ("live", "ready"):
        with urllib.request.urlopen(f"http://{places['http']}/v2/health/{what}") as told:
            assert json.load(told) == {what: True}
            assert told.headers["Content-Type"] == "application/json"
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://{places['http']}/v2/models/nobody")
    assert refused.value.headers["Content-Type"] == "application/json"  # just so KServe reads it
    assert "no model 'nobody'" in json.load(refused.value)["error"]
