"""Requests wait by priority, and leave with their clients."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from heimdall.serve import Limits
from heimdall.serve.line import Line
from heimdall.serve.refusals import RefusedError
from heimdall.vocabulary.enums import Priority
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


def test_no_client_can_have_the_whole_line():
    """The one that has most of it loses its last place, and another one gets that."""

    async def main():
        line = Line(Limits(waiting=5, running=1))
        ended, free = [], asyncio.Event()

        async def ask(name, client):
            try:
                async with line.turn(Priority.NORMAL, client):
                    await free.wait()
                    ended.append(name)
            except RefusedError as error:
                ended.append(f"{name}: {error.reason.name}")

        tasks = [asyncio.create_task(ask(f"a{number}", "a")) for number in range(6)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ended == ["a5: BUSY"]  # it is its own line that is full
        tasks += [asyncio.create_task(ask(f"b{number}", "b")) for number in range(3)]
        for _ in range(4):
            await asyncio.sleep(0)
        assert ended == ["a5: BUSY", "b2: BUSY", "a4: BUSY", "a3: BUSY"]
        free.set()
        await asyncio.gather(*tasks)
        assert ended[4:] == ["a0", "a1", "a2", "b0", "b1"]
        assert (len(line), line.refused) == (0, 4)

    asyncio.run(main())
