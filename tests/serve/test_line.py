"""Requests wait by priority, and leave with their clients."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.serve.clients import Refused, X, body, twice, until


def test_a_full_line_refuses_and_urgent_requests_overtake(serve, connect, models):
    server = serve(waiting=4, running=1)
    models.free.clear()
    client, module = connect(server)
    made = [connect(server)[0] for _ in range(4)]
    answers = []
    with ThreadPoolExecutor(4) as pool:
        for waiting, priority in enumerate([2, 3, 2, 1]):
            answers.append(pool.submit(twice, made[waiting], module, priority=priority))
            until(lambda n=waiting: len(server.service.line) == n + 1)
        with pytest.raises(Refused, match="4 requests are waiting"):
            twice(client, module)
        models.free.set()
        for answer in answers:
            np.testing.assert_array_equal(answer.result().as_numpy("y"), 2 * X)
    assert [priority for _, _, priority in models.asked] == ["normal", "high", "normal", "low"]
    assert server.service.line.refused == 1


def test_a_client_that_dies_leaves_the_line(serve, connect, models):
    server = serve(running=1)
    models.free.clear()
    sent = body([1, 2, 3, 4]).encode()
    head = f"POST /v2/models/twice/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(sent)}"
    raws = [socket.create_connection(("127.0.0.1", server.http_port)) for _ in range(3)]
    for number, raw in enumerate(raws):
        raw.sendall(f"{head}\r\n\r\n".encode() + sent)
        until(lambda n=number: len(server.service.line) == n + 1)
    for raw in raws[1:]:  # two that wait
        raw.close()
    until(lambda: len(server.service.line) == 1)
    raws[0].close()  # and the one that runs
    until(lambda: len(server.service.line) == 0)
    models.free.set()
    client, module = connect(server)
    np.testing.assert_array_equal(twice(client, module).as_numpy("y"), 2 * X)
    assert len(models.asked) == 2  # those that waited were never run


def test_a_grpc_client_that_is_killed_leaves_the_line(serve, models):
    server = serve(running=1)
    models.free.clear()
    code = f"""
        import numpy as np, tritonclient.grpc as triton
        x = triton.InferInput("x", (1, 4), "FP32")
        x.set_data_from_numpy(np.zeros((1, 4), np.float32))
        triton.InferenceServerClient("127.0.0.1:{server.grpc_port}").infer("twice", [x])
    """
    client = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    until(lambda: len(server.service.line) == 1)
    client.kill()
    client.wait()
    until(lambda: len(server.service.line) == 0)
