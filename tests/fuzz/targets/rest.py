"""Requests by REST: their bodies, and their heads."""

from __future__ import annotations

import json
import socket
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.serve import Limits, Server
from tests.fuzz.damage import in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target
from tests.serve.networks import EngineModels

BODY_S = 1.0  # for a body that never comes whole
PATIENCE_S = 15.0
_LENGTH = "Inference-Header-Content-Length"
_X = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1.0, -2.0, 3.5, 0.0]}
_RAW = {"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}
_ROWS = [[1, 2, 3], [4, 5, -6]]
_A, _B = ({"name": n, "shape": [2, 3], "datatype": "INT64", "data": _ROWS} for n in "ab")
_SLO = {"slo_ms": 500, "priority": "high", "timeout": 900_000}
_WANTED = [{"name": "y", "parameters": {"binary_data": True}}, {"name": "z"}]
_SHARED = {"shared_memory_region": "r", "shared_memory_offset": 0, "shared_memory_byte_size": 16}
_REGION = {"key": "/heimdall-fuzz", "offset": 0, "byte_size": 64}

REQUESTS: dict[str, tuple[str, dict[str, Any], bytes]] = {  # address, JSON, raw tensors
    "list": ("/v2/models/twice/infer", {"id": "1", "inputs": [_X], "outputs": _WANTED}, b""),
    "both": ("/v2/models/plus/infer", {"inputs": [_A, _B], "parameters": _SLO}, b""),
    "binary": ("/v2/models/twice/infer", {"inputs": [_RAW]}, bytes(range(16))),
    "shared": ("/v2/models/twice/infer", {"inputs": [{**_RAW, "parameters": _SHARED}]}, b""),
    "register": ("/v2/systemsharedmemory/region/r/register", _REGION, b""),
    "load": ("/v2/repository/models/twice/load", {"parameters": {"config": "{}"}}, b""),
    "stats": ("/v2/models/twice/versions/1/stats", {}, b""),
}


class Fuzzed(Target):
    """A server on this machine, which must answer each request, and the next one."""

    suffix = ".http"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._models = EngineModels()
        limits = Limits(header_s=BODY_S, body_s=BODY_S, request_bytes=1 << 20)
        self._server = Server(self._models, http_port=0, grpc_port=None, limits=limits)

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        name = pick(list(REQUESTS), random)
        address, value, tail = REQUESTS[name]
        head = in_json(value, random)
        if tail and random.random() < 0.3:
            tail = in_bytes(tail, random)
        lines = [f"POST {address} HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
        lines += [f"{_LENGTH}: {len(head)}"] if tail or random.random() < 0.1 else []
        lines += [f"Content-Length: {len(head) + len(tail)}"]
        top = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if random.random() < 0.2:
            top = in_bytes(top, random)
        return name, top + head + tail

    def run(self, name: str, raw: bytes) -> str:
        self.stage = "answer"
        status, said = self._asked(raw)
        if status >= 500:
            raise FindingError(f"the status is {status}: {said[:200]!r}")
        self.stage = "answer the next one"
        if (after := self._asked(_WHOLE))[0] != 200:
            raise FindingError(f"the status is {after}")
        return f"status {status}" if status else "closed"

    def _asked(self, raw: bytes) -> tuple[int, bytes]:
        """The status of the answer, and what it says; 0: the connection was closed without one."""
        assert self._server.http_port is not None
        with socket.create_connection(("127.0.0.1", self._server.http_port), PATIENCE_S) as client:
            try:
                client.sendall(raw)
                answer = HTTPResponse(client, method="POST")
                answer.begin()
                return answer.status, answer.read()
            except TimeoutError as error:
                raise FindingError("the server neither answers nor closes") from error
            except (ConnectionError, HTTPException):
                return 0, b""

    def close(self) -> None:
        self._server.close()
        self._models.close()


def _whole() -> bytes:
    address, value, _ = REQUESTS["both"]
    body = json.dumps(value).encode()
    head = f"POST {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


_WHOLE = _whole()
