"""A server of two small networks, and the official clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from heimdall.serve import Limits, Server
from tests.serve.clients import triton_grpc, triton_http
from tests.serve.networks import EngineModels


@pytest.fixture
def models() -> Iterator[EngineModels]:
    made = EngineModels()
    yield made
    made.close()


@pytest.fixture
def serve(models: EngineModels) -> Iterator[Callable[..., Server]]:
    """``serve(**limits)``: a server of both networks on free ports, closed after the test."""
    servers = []

    def open_server(
        *, tls: Any = None, token: str | None = None, drawing: Any = None, **limits: Any
    ) -> Server:
        place: dict[str, Any] = {"http_port": 0, "grpc_port": 0, "limits": Limits(**limits)}
        server = Server(models, **place, tls=tls, token=token, drawing=drawing)
        servers.append(server)
        return server

    yield open_server
    for server in servers:
        server.close()


@pytest.fixture(params=["rest", "grpc"])
def connect(request: pytest.FixtureRequest) -> Any:
    """``connect(server)``: a client, and the module that its tensors come from."""
    clients = []

    def by(server: Server) -> tuple[Any, Any]:
        module = triton_http if request.param == "rest" else triton_grpc
        port = server.http_port if request.param == "rest" else server.grpc_port
        clients.append(module.InferenceServerClient(f"127.0.0.1:{port}"))
        return clients[-1], module

    yield by
    for client in clients:
        client.close()
