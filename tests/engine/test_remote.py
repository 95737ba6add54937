"""Networks on a server: our own, one that misbehaves, and MLServer where it is installed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heimdall.engine.remote import RemoteEngine, parse_address
from heimdall.errors import ArgumentError, ConfigError, DeviceError, ModelError
from heimdall.graph.graph import Graph
from heimdall.serve import Server
from heimdall.serve.server import Tls
from tests.serve.networks import EngineModels

grpc = pytest.importorskip("grpc")
wire = pytest.importorskip("tritonclient.grpc.service_pb2")
services = pytest.importorskip("tritonclient.grpc.service_pb2_grpc")

GONE = r"cannot be reached|did not answer"
X = np.array([[1, -2, 3.5, 0]], np.float32)


@pytest.fixture
def models() -> Iterator[EngineModels]:
    made = EngineModels()
    yield made
    made.close()


@pytest.fixture
def server(models: EngineModels) -> Iterator[Server]:
    with Server(models, http_port=0, grpc_port=0) as opened:
        yield opened


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Any:
    """``engine(port, ...)``: one that is closed after the test."""
    with contextlib.ExitStack() as stack:

        def connect(port: Any, *, scheme: str = "grpc", **more: Any) -> RemoteEngine:
            more.setdefault("timeout_s", 20)
            more.setdefault("patience_s", more["timeout_s"])
            made = RemoteEngine(f"{scheme}://localhost:{port}", **more)
            return stack.enter_context(contextlib.closing(made))

        yield connect


def graph(models: EngineModels, name: str = "twice") -> Graph:
    return models.networks[name].graph


def infer(network: Any, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    return network.infer(network.new_state(), inputs or {"x": X})


def test_outputs_are_the_networks(server, models, engine):
    connected = engine(server.grpc_port)
    network = connected.load(graph(models))
    assert [op.kind for op in network.ops] == ["Remote"]
    state = network.new_state()
    network.write(state, {"x": X})
    assert network.run(state, 0, 1) > 0
    found = network.read(state)
    np.testing.assert_array_equal(found["y"], 2 * X)
    np.testing.assert_array_equal(found["z"], -2 * X)
    found["y"][0] = 5  # they are the caller's
    whole = np.arange(6).reshape(2, 3)
    found = infer(connected.load(graph(models, "plus")), a=whole, b=whole)
    np.testing.assert_array_equal(found["sum"], 2 * whole)


def test_wrong_inputs_and_ranges_are_refused_as_everywhere(server, models, engine):
    network = engine(server.grpc_port).load(graph(models))
    state = network.new_state()
    with pytest.raises(ModelError, match="shape"):
        network.write(state, {"x": X.T})
    with pytest.raises(ValueError, match="next"):
        network.run(state, 0, 1)
    network.write(state, {"x": X})
    with pytest.raises(ValueError, match="next"):
        network.read(state)
    with pytest.raises(ValueError, match="outside"):
        network.run(state, 0, 2)


def test_a_model_may_have_another_name_there(server, models, engine):
    loaded = graph(models)
    with pytest.raises(ModelError, match="no model 'other'"):
        engine(server.grpc_port, names={"twice": "other"}).load(loaded)
    models.networks["other"] = models.networks.pop("twice")
    network = engine(server.grpc_port, names={"twice": "other"}).load(loaded)
    server.service.counts["other"] = server.service.counts["twice"]
    np.testing.assert_array_equal(infer(network)["y"], 2 * X)


def test_a_model_of_another_shape_is_refused(server, models, engine):
    with pytest.raises(ModelError, match="has other inputs for 'plus' than twice: 'x' is FP32"):
        engine(server.grpc_port, names={"twice": "plus"}).load(graph(models))


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "localhost:8001",
        "http://localhost:8000",
        "grpc://",
        "grpc://a:b",
        "grpc://a/b",
        "grpc://[::1",
        "grpc://a:99999",
    ],
)
def test_what_is_no_address_is_refused(address):
    with pytest.raises(ConfigError, match="no address of a server"):
        RemoteEngine(address)


def test_addresses_are_understood():
    assert parse_address("grpc://a.example") == ("a.example:8001", False)
    assert parse_address("grpcs://[::1]:9") == ("[::1]:9", True)
    with pytest.raises(ArgumentError, match="timeout_s"):
        RemoteEngine("grpc://a", timeout_s=0)
    with pytest.raises(ConfigError, match="no such file"):
        RemoteEngine("grpcs://a", certificate="nowhere.pem")


# --- servers that misbehave ---------------------------------------------------------------------


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as found:
        return int(found.getsockname()[1])


def test_a_server_that_is_not_there(models, engine):
    connected = engine(free_port(), timeout_s=2)
    with pytest.raises(DeviceError, match=GONE):
        connected.load(graph(models))
    assert not connected.ready


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n\r\n{}", os.urandom(4000)])
def test_a_server_of_something_else(models, engine, said):
    with socket.create_server(("localhost", 0)) as listening:
        kept = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    kept.append(listening.accept()[0])
                    kept[-1].sendall(said)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        connected = engine(listening.getsockname()[1], timeout_s=1)
        with pytest.raises(DeviceError, match=GONE):
            connected.load(graph(models))
        for each in kept:
            each.close()


def test_rest_is_not_grpc(server, models, engine):
    with pytest.raises(DeviceError, match=GONE):
        engine(server.http_port, timeout_s=2).load(graph(models))


def test_an_answer_that_is_too_late(server, models, engine):
    network = engine(server.grpc_port, timeout_s=0.3, patience_s=20).load(graph(models))
    models.free.clear()
    with pytest.raises(DeviceError, match=r"did not answer within 0\.3 s"):
        infer(network)
    models.free.set()
    patient = engine(server.grpc_port).load(graph(models))
    np.testing.assert_array_equal(infer(patient)["y"], 2 * X)


def test_a_token_is_sent_and_a_missing_one_is_named(models, engine, monkeypatch):
    token = "0123456789abcdef"
    with Server(models, http_port=None, grpc_port=0, token=token) as server:
        monkeypatch.delenv("HEIMDALL_TOKEN", raising=False)
        with pytest.raises(DeviceError, match="set HEIMDALL_TOKEN"):
            engine(server.grpc_port).has(graph(models))
        assert engine(server.grpc_port, token=token).has(graph(models))
        monkeypatch.setenv("HEIMDALL_TOKEN", token)
        network = engine(server.grpc_port).load(graph(models))
        state = network.new_state()
        network.infer(state, {"x": X})
        np.testing.assert_array_equal(network.read(state)["y"], 2 * X)
    with pytest.raises(ConfigError, match="16 to 256"):
        engine(1, token="short")


def test_a_failure_over_there_is_told(server, models, engine):
    network = engine(server.grpc_port).load(graph(models))
    models.failure = ModelError("y overflows")
    with pytest.raises(ModelError, match="refuses 'twice': y overflows"):
        infer(network)


class Liar(services.GRPCInferenceServiceServicer):  # type: ignore[name-defined]
    """Says that it has the model, and answers ``outputs`` (name, type, shape, bytes)."""

    def __init__(self) -> None:
        self.outputs: list[tuple[str, str, list[int], bytes]] = []

    def ModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        return wire.ModelMetadataResponse(name=request.name)

    def ModelInfer(self, request: Any, context: Any) -> Any:  # noqa: N802
        answer = wire.ModelInferResponse(model_name=request.model_name, id=request.id)
        for name, kind, shape, raw in self.outputs:
            answer.outputs.add(name=name, datatype=kind, shape=shape)
            answer.raw_output_contents.append(raw)
        return answer


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [("y", "FP32", [1, 4], bytes(16))],
        [("y", "FP32", [1, 4], bytes(16)), ("z", "FP32", [1, 4], bytes(3))],
        [("y", "FP32", [1, 4], bytes(16)), ("z", "FP32", [4, 1], bytes(16))],
        [("y", "FP32", [1, 4], bytes(16)), ("z", "INT32", [1, 4], bytes(16))],
        [("y", "FP32", [1, 4], bytes(16)), ("z", "NONSENSE", [1, 4], bytes(16))],
    ],
)
def test_garbage_is_no_result(models, engine, outputs):
    liar = Liar()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    services.add_GRPCInferenceServiceServicer_to_server(liar, server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        network = engine(port).load(graph(models))
        liar.outputs = outputs
        with pytest.raises(ModelError, match="answers no float32 of shape"):
            infer(network)
        liar.outputs = [(name, "FP32", [1, 4], bytes(16)) for name in "yz"]
        np.testing.assert_array_equal(infer(network)["z"], 0 * X)
    finally:
        server.stop(None)


def test_a_server_that_goes_and_comes_back(models, engine):
    port = free_port()
    with Server(models, host="localhost", http_port=None, grpc_port=port):
        connected = engine(port, timeout_s=2)
        network = connected.load(graph(models))
        np.testing.assert_array_equal(infer(network)["y"], 2 * X)
    with pytest.raises(DeviceError, match=GONE):
        infer(network)
    with Server(models, host="localhost", http_port=None, grpc_port=port):
        until = time.monotonic() + 60
        while not connected.ready and time.monotonic() < until:
            time.sleep(0.1)
        np.testing.assert_array_equal(infer(network)["y"], 2 * X)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make a certificate")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return Tls(certificate, key)


def test_tls_where_it_is_asked_for(models, engine, tls, server):
    with Server(models, host="localhost", http_port=None, grpc_port=0, tls=tls) as safe:
        secured = engine(safe.grpc_port, scheme="grpcs", certificate=tls.certificate)
        np.testing.assert_array_equal(infer(secured.load(graph(models)))["y"], 2 * X)
        for bad in (
            engine(safe.grpc_port, timeout_s=2),  # without TLS
            engine(safe.grpc_port, scheme="grpcs", timeout_s=2),  # its certificate is not signed
            engine(server.grpc_port, scheme="grpcs", timeout_s=2),  # a server without
        ):
            with pytest.raises(DeviceError, match=GONE):
                bad.load(graph(models))


# --- somebody else's server ---------------------------------------------------------------------


MLSERVER = shutil.which(os.environ.get("HEIMDALL_MLSERVER", "mlserver"))
RUNTIME = """
from mlserver import MLModel, types

class Twice(MLModel):
    async def predict(self, request):
        from mlserver.codecs import NumpyCodec
        x = NumpyCodec.decode_input(request.inputs[0])
        outputs = [NumpyCodec.encode_output("y", 2 * x), NumpyCodec.encode_output("z", -2 * x)]
        return types.InferenceResponse(model_name=self.name, id=request.id, outputs=outputs)
"""


@pytest.mark.skipif(MLSERVER is None, reason="MLServer is not installed")
def test_mlserver(models, engine, tmp_path):
    ports = {"http_port": free_port(), "grpc_port": free_port(), "metrics_port": free_port()}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, "metrics_dir": str(tmp_path), **ports}
    (tmp_path / "settings.json").write_text(json.dumps(settings))

    def tensors(*names: str) -> list[dict[str, Any]]:
        return [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in names]

    described: dict[str, Any] = {"name": "twice", "implementation": "runtime.Twice"}
    described |= {"inputs": tensors("x"), "outputs": tensors("y", "z")}
    (tmp_path / "model-settings.json").write_text(json.dumps(described))
    (tmp_path / "runtime.py").write_text(RUNTIME)
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with open(tmp_path / "log", "w") as log:
        started = subprocess.Popen(
            [MLSERVER, "start", str(tmp_path)], cwd=tmp_path, env=clean, stdout=log, stderr=log
        )
    try:
        connected = engine(ports["grpc_port"])
        until = time.monotonic() + 120
        while not connected.ready and time.monotonic() < until and started.poll() is None:
            time.sleep(0.2)
        assert connected.ready, (tmp_path / "log").read_text()
        found = infer(connected.load(graph(models)))
        np.testing.assert_array_equal(found["y"], 2 * X)
        np.testing.assert_array_equal(found["z"], -2 * X)
        with pytest.raises(ModelError, match="nothing"):
            engine(ports["grpc_port"], names={"twice": "nothing"}).load(graph(models))
    finally:
        started.terminate()
        started.wait()
