"""JSON and raw tensors by REST, and whatever else is sent there."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import socket

import numpy as np
import pytest

from tests.serve.clients import (
    Refused,
    X,
    body,
    post,
    tensor,
    triton_grpc,
    triton_http,
    twice,
)
from tests.serve.networks import twice_network

grpc = pytest.importorskip("grpc")


def test_values_go_as_json_too(serve):
    server = serve()
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        given = triton_http.InferInput("x", X.shape, "FP32")
        given.set_data_from_numpy(X, binary_data=False)
        wanted = triton_http.InferRequestedOutput("y", binary_data=False)
        answer = client.infer("twice", [given], outputs=[wanted])
        assert answer.get_response()["outputs"][0]["data"] == [2, -4, 7, 0]
        for packed in ("gzip", "deflate"):
            answer = client.infer("twice", [given], request_compression_algorithm=packed)
            np.testing.assert_array_equal(answer.as_numpy("y"), 2 * X)


def test_values_that_json_lacks_are_named(serve):
    server = serve()
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        infinite = np.full((1, 4), np.inf, np.float32)
        wanted = triton_http.InferRequestedOutput("y", binary_data=False)
        with pytest.raises(Refused, match="binary") as refused:
            twice(client, triton_http, infinite, outputs=[wanted])
        assert refused.value.status() == "400"  # it is the client's to change


def test_what_unpacks_to_too_much_is_refused(serve):
    server = serve(request_bytes=20_000)
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        zeros = np.zeros((1, 1 << 20), np.float32)
        with pytest.raises(Refused, match="20000"):
            client.infer(
                "twice", [tensor(triton_http, "x", zeros)], request_compression_algorithm="gzip"
            )


def test_long_json_is_refused_before_it_is_read(serve):
    server = serve(json_bytes=1000)
    for headers in ({}, {"Inference-Header-Content-Length": "1001"}):
        status, error = post(server, body([1, 2, 3, 4] * 500), **headers)
        assert status == 413
        assert "1000 bytes" in error
        assert "binary_data_size" in error
    packed = gzip.compress(body([1, 2, 3, 4] * 5000).encode())
    assert len(packed) < 1000
    assert post(server, packed, **{"Content-Encoding": "gzip"})[0] == 413
    status, error = post(server, body([1, 2, 3, 4]), **{"Content-Encoding": "br"})
    assert (status, "'br'" in error) == (501, True)


def test_many_values_one_by_one_are_refused_by_grpc_too(serve):
    wire = pytest.importorskip("tritonclient.grpc.service_pb2")
    server = serve(json_bytes=16)
    asked = wire.ModelInferRequest(model_name="twice")
    given = asked.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}") as client:
        given.contents.fp32_contents.extend([1, 2, 3, 4])
        assert len(client._client_stub.ModelInfer(asked).raw_output_contents) == 2
        given.contents.fp32_contents.append(5)
        with pytest.raises(grpc.RpcError, match="send raw_input_contents"):
            client._client_stub.ModelInfer(asked)


def test_long_answers_are_whole(serve, models):
    x = np.arange(9001, dtype=np.float32)[None]
    models.networks["twice"] = twice_network(9001)
    server = serve()
    with triton_http.InferenceServerClient(f"127.0.0.1:{server.http_port}") as client:
        names = ("y", "z")
        wanted = [triton_http.InferRequestedOutput(name, binary_data=False) for name in names]
        answer = client.infer("twice", [tensor(triton_http, "x", x)], outputs=wanted)
        np.testing.assert_array_equal(answer.as_numpy("y"), 2 * x)
        np.testing.assert_array_equal(answer.as_numpy("z"), -2 * x)


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("", "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON"),
        ("[]", "object"),
        ("{}", "inputs"),
        ('{"inputs": 5}', "inputs"),
        (body([1, 2, 3]), "values do not fill"),
        (body([1, 2, 3, "4"]), "list of FP32"),
        (body([[1, 2], [3]]), "list of FP32"),
        (body([[1, 2], [3, 4]]), "shape"),
        (body([]), "shape"),
        (body(None), "neither"),
        (body([1, 2, 3, 4], shape=[-1, 4]), "shape"),
        (body([1, 2, 3, 4], shape=[1 << 60, 1 << 60]), "shape"),
        (body([1, 2, 3, 4], datatype="BYTES"), "BYTES"),
        (body(None, parameters={"binary_data_size": 16}), "binary_data_size"),
        (body(None, parameters={"binary_data_size": -1}), "binary_data_size"),
        (body(None, parameters={"shared_memory_region": 5}), "shared memory"),
        (json.dumps({"inputs": [], "parameters": {"priority": -1}}), "priority"),
    ],
)
def test_garbage_gets_a_reason(serve, sent, said):
    status, error = post(serve(), sent)
    assert status == 400
    assert said in error


def test_bytes_that_are_no_message_get_a_reason_by_grpc(serve):
    server = serve()
    with grpc.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel:
        for method in ("ModelMetadata", "ModelInfer", "ServerLive"):
            ask = channel.unary_unary(f"/inference.GRPCInferenceService/{method}")
            with pytest.raises(grpc.RpcError) as refused:
                ask(b"\xff", timeout=20)
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "no message of this call" in refused.value.details()


def test_a_length_that_is_not_the_jsons_is_refused(serve):
    server = serve()
    for length in ("-1", "99999", "9" * 400, "x"):
        status, error = post(
            server, body([1, 2, 3, 4]), **{"Inference-Header-Content-Length": length}
        )
        assert (status, "not the length" in error) == (400, True)
    sent = body([1, 2, 3, 4])
    assert (
        post(server, sent + "more", **{"Inference-Header-Content-Length": str(len(sent))})[0] == 400
    )


def test_pages_of_a_browser_are_refused(serve):
    server = serve()
    assert post(server, body([1, 2, 3, 4]), Origin="http://somewhere.example")[0] == 403
    assert post(server, body([1, 2, 3, 4]), Host="somewhere.example")[0] == 403


def test_other_protocols_and_addresses_leave_it_unharmed(serve, connect):
    server = serve()
    for port in (server.http_port, server.grpc_port):
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(os.urandom(5000))
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request("GET", "/v2/../../etc/passwd")
    assert connection.getresponse().status == 404
    client, module = connect(server)
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)
