"""What the server does, by REST and by gRPC, for the official client."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.errors import DeviceError, ModelError
from tests.serve.clients import ROWS, Refused, X, tensor, triton_grpc, twice


def test_answers_are_the_networks(serve, connect):
    client, module = connect(serve())
    answer = twice(client, module, request_id="seven")
    np.testing.assert_array_equal(answer.as_numpy("y"), 2 * X)
    np.testing.assert_array_equal(answer.as_numpy("z"), -2 * X)
    whole = np.array(ROWS, np.int64)
    both = [tensor(module, name, whole, "INT64") for name in ("b", "a")]
    answer = client.infer("plus", both, outputs=[module.InferRequestedOutput("sum")])
    np.testing.assert_array_equal(answer.as_numpy("sum"), 2 * whole)


def test_the_answer_has_the_requests_id(serve, connect):
    client, module = connect(serve())
    answer = twice(client, module, request_id="seven").get_response()
    assert (answer["id"] if isinstance(answer, dict) else answer.id) == "seven"


def test_only_outputs_that_are_asked_for_come(serve, connect):
    client, module = connect(serve())
    answer = twice(client, module, outputs=[module.InferRequestedOutput("z")])
    assert answer.as_numpy("y") is None
    np.testing.assert_array_equal(answer.as_numpy("z"), -2 * X)


def test_server_and_models_are_described(serve, connect):
    client, module = connect(serve())
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("plus")
    assert not client.is_model_ready("other")
    as_json = {"as_json": True} if module is triton_grpc else {}
    assert client.get_server_metadata(**as_json)["name"] == "heimdall"
    found = client.get_model_metadata("plus", **as_json)
    assert [each["name"] for each in found["inputs"]] == ["a", "b"]
    assert [int(n) for n in found["outputs"][0]["shape"]] == [2, 3]
    assert found["outputs"][0]["datatype"] == "INT64"
    found = client.get_model_config("plus", **as_json)
    assert found.get("config", found)["input"][0]["data_type"] == "TYPE_INT64"


def test_slo_and_priority_reach_the_models(serve, connect, models):
    client, module = connect(serve())
    twice(client, module, priority=1, parameters={"slo_ms": 25})
    twice(client, module, timeout=40_000)
    twice(client, module, priority=3)
    assert models.asked == [
        ("twice", 25, "high"),
        ("twice", 40, "normal"),
        ("twice", None, "low"),
    ]


@pytest.mark.parametrize("slo_ms", [0, -5, "soon", True, "nan", "inf"])
def test_an_slo_that_is_none_is_refused(serve, connect, models, slo_ms):
    client, module = connect(serve())
    with pytest.raises(Refused, match="slo_ms"):
        twice(client, module, parameters={"slo_ms": slo_ms})
    assert models.asked == []


def test_statistics_count_what_came_of_requests(serve, connect, models):
    client, module = connect(serve())
    twice(client, module)
    twice(client, module)
    models.failure = RuntimeError("broken")
    with pytest.raises(Refused, match="failed"):
        twice(client, module)
    as_json = {"as_json": True} if module is triton_grpc else {}
    found = client.get_inference_statistics("twice", **as_json)["model_stats"][0]
    assert int(found["inference_count"]) == 2
    assert int(found["inference_stats"]["fail"]["count"]) == 1


def test_wrong_requests_are_refused_one_by_one(serve, connect, models):
    client, module = connect(serve())
    with pytest.raises(Refused, match=r"no model 'other'.*twice, plus"):
        client.infer("other", [tensor(module, "x", X)])
    with pytest.raises(Refused, match="no input 'w'"):
        client.infer("twice", [tensor(module, "w", X)])
    with pytest.raises(Refused, match=r"FP32 of shape \[1, 4\].*\[4, 1\]"):
        twice(client, module, X.T.copy())
    with pytest.raises(Refused, match="given was INT32"):
        client.infer("twice", [tensor(module, "x", X.astype(np.int32), "INT32")])
    with pytest.raises(Refused, match="also needs the input 'b'"):
        client.infer("plus", [tensor(module, "a", np.array(ROWS, np.int64), "INT64")])
    with pytest.raises(Refused, match="no output 'w'"):
        twice(client, module, outputs=[module.InferRequestedOutput("w")])
    with pytest.raises(Refused, match="twice"):
        client.infer("twice", [tensor(module, "x", X)] * 2)
    with pytest.raises(Refused, match="sequence"):
        twice(client, module, sequence_id=5)
    with pytest.raises(Refused, match="version 1 only"):
        twice(client, module, model_version="2")
    assert models.asked == []
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)


def test_no_request_loads_a_model(serve, connect, tmp_path, models):
    client, _ = connect(serve())
    model = tmp_path / "m.onnx"
    model.write_bytes(b"")
    for name in (str(model), "../m.onnx", "twice"):
        with pytest.raises(Refused, match=r"started with|Not Found"):
            client.load_model(name)
    with pytest.raises(Refused, match="started with"):
        client.unload_model("twice")
    with pytest.raises(Refused, match="started with"):
        client.load_model("new", config="{}", files={"file:1/model.onnx": b"onnx"})
    assert client.is_model_ready("twice")


def test_large_requests_are_refused(serve, connect):
    client, module = connect(serve(request_bytes=2000))
    large = np.zeros((1, 4000), np.float32)
    with pytest.raises(Refused, match=r"2000|larger than max"):
        twice(client, module, large)
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)


def test_a_failure_is_told_and_the_next_request_answered(serve, connect, models):
    client, module = connect(serve())
    models.failure = DeviceError("the GPU is lost: it is being opened again")
    with pytest.raises(Refused, match="the GPU is lost"):
        twice(client, module)
    models.failure = ModelError("y overflows")
    with pytest.raises(Refused, match="overflows"):
        twice(client, module)
    models.failure = None
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)
