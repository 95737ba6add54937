"""A server as a processor of a run: DNNs leave for it, come back when it goes, and leave again."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from heimdall.app import DNN
from heimdall.engine.null import NullEngine
from heimdall.engine.remote import RemoteEngine
from heimdall.errors import ConfigError, DeviceError, ModelError
from heimdall.graph.graph import Tensor, load_graph
from heimdall.runtime.session.session import Session
from heimdall.system import paths

pytest.importorskip("tritonclient.grpc")

from heimdall.serve import Server

NAME = "detect_nanodet_416"
FRAME = np.zeros((180, 320, 3), np.uint8)


class Zeros:
    """Serves one network of another name, or this one, and answers at once."""

    def __init__(self, name: str = NAME, shape: tuple[int, ...] | None = None) -> None:
        graph = load_graph(paths.ASSETS / "models" / f"{NAME}.onnx")
        self.name, self.outputs = name, graph.outputs
        (only,) = graph.inputs
        self.inputs = (Tensor(only.name, shape or only.shape, only.dtype),)

    def names(self) -> list[str]:
        return [self.name]

    def describe(self, name: str) -> Any:
        return self.inputs, self.outputs

    def submit(self, name: str, inputs: Any, **wishes: Any) -> Future[dict[str, np.ndarray]]:
        answer: Future[dict[str, np.ndarray]] = Future()
        answer.set_result({t.name: np.zeros(t.shape, t.dtype) for t in self.outputs})
        return answer


def serve(models: Zeros, port: int = 0) -> Server:
    return Server(models, http_port=None, grpc_port=port)


def crowded(**options: Any) -> Session:
    """Two DNNs on a GPU that has time for neither."""
    slow = NullEngine(op_ns=2_000_000, sleep=True)
    dnns = [DNN(name, model="nanodet") for name in ("a", "b")]
    return Session(dnns, device=slow, **options)


def step_until(session: Session, there: Callable[[], bool]) -> None:
    until = time.monotonic() + 90
    while not there():
        assert time.monotonic() < until, session.summary().errors
        session.push(FRAME)
        session.step(0.1)


def test_a_dnn_leaves_for_the_server_comes_back_and_leaves_again():
    server = serve(Zeros())
    port = server.grpc_port
    remote = RemoteEngine(f"grpc://127.0.0.1:{port}", timeout_s=60)  # it says so when it goes
    with crowded(remote=remote) as session:
        measured = server.service.counts[NAME].succeeded
        step_until(session, lambda: server.service.counts[NAME].succeeded > measured + 5)
        server.close()
        step_until(session, lambda: bool(session.summary().errors))
        assert "its DNNs run here until it answers again" in session.summary().errors[0]
        for dnn in ("a", "b"):  # both still have results
            session.push(FRAME)
            session.wait(session.result(dnn), 60)
        # One leaves for the CPU meanwhile, which must not keep it when the server is back.
        step_until(session, lambda: any(each.cpu > 3 for each in session.summary().dnns.values()))
        server = serve(Zeros(), port)
        step_until(session, lambda: server.service.counts[NAME].succeeded > 5)
        dnns = session.summary().dnns.values()
        assert sum(each.remote for each in dnns) > 5
        assert all(each.inferences == each.gpu + each.cpu + each.remote for each in dnns)
        assert session.summary().device.remote == remote.address
    server.close()


def test_what_is_wrong_with_a_server_is_said_at_the_start():
    with pytest.raises(ConfigError, match="no address"):
        crowded(remote="localhost:8001")
    with pytest.raises(DeviceError, match=r"cannot be reached|did not answer"):
        crowded(remote=RemoteEngine("grpc://127.0.0.1:9", patience_s=2)).open()
    for models, error, words in (
        (Zeros(name="other"), ConfigError, f"none of the networks.*serve {NAME}"),
        (Zeros(shape=(1, 3, 320, 320)), ModelError, "other inputs"),
    ):
        server = serve(models)
        with pytest.raises(error, match=words):
            crowded(remote=f"grpc://127.0.0.1:{server.grpc_port}").open()
        server.close()
