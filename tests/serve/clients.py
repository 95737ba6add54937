"""The official clients, and requests that they would not send."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

import numpy as np
import pytest

from heimdall.serve import Server

triton_http = pytest.importorskip("tritonclient.http")
triton_grpc = pytest.importorskip("tritonclient.grpc")
Refused = triton_http.InferenceServerException

X = np.array([[1, -2, 3.5, 0]], np.float32)
ROWS = [[1, 2, 3], [4, 5, -6]]


def tensor(module: Any, name: str, array: np.ndarray, kind: str = "FP32") -> Any:
    made = module.InferInput(name, array.shape, kind)
    made.set_data_from_numpy(array)
    return made


def twice(client: Any, module: Any, array: np.ndarray = X, **more: Any) -> Any:
    return client.infer("twice", [tensor(module, "x", array)], **more)


def post(server: Server, body: bytes | str, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=60)
    connection.request("POST", "/v2/models/twice/infer", body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())["error"]


def body(data: Any, **more: Any) -> str:
    x = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": data, **more}
    return json.dumps({"inputs": [x]})


def until(there: Any) -> None:
    for _ in range(2000):
        if there():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")
