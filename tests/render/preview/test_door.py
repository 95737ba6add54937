"""Who is let in: real sockets at a small server, which answers slowly when it is asked to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from aiohttp import web

from heimdall.render.preview.address import listen
from heimdall.render.preview.door import Door

HEAD = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n"
WAIT_S = 60.0


class Served:
    """The server, and its port. What is asked for ``/slow`` is answered once ``free`` is set."""

    def __init__(self, door: Door, listening: socket.socket) -> None:
        self.door, self.port = door, int(listening.getsockname()[1])
        self.free = asyncio.Event()
        self._writers: list[Any] = []  # one that nobody holds closes its connection

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        with self.door.answering(request):
            if request.path == "/body":
                with self.door.reading(request):
                    await request.read()
            if request.path == "/slow":
                await self.free.wait()
            return web.Response(text="answer")

    async def connect(self, sent: bytes = b"") -> tuple[Any, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        writer.write(sent)
        await writer.drain()
        return reader, writer

    async def full(self, number: int) -> None:
        """Wait until so many connections are there."""
        await until(lambda: len(self.door) == number)

    async def get(self, path: bytes = b"") -> bytes:
        reader, _ = await self.connect(HEAD % path + b"Connection: close\r\n\r\n")
        return bytes(await asyncio.wait_for(reader.read(), WAIT_S))


@contextlib.asynccontextmanager
async def serving(most: int, tls: Any = None, **limits: float) -> AsyncIterator[Served]:
    door, listening = Door(most, **limits), listen(("127.0.0.1", 0))
    served = Served(door, listening)
    runner = web.AppRunner(web.Application(), access_log=None)
    await runner.setup()
    inner = web.Server(served.answer)
    async with door.open(inner, listening, tls):
        yield served
    await inner.shutdown(1)
    await runner.cleanup()


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


async def ended(reader: Any) -> bool:
    """Whether the other end closes the connection, whatever it says before."""
    with contextlib.suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), WAIT_S)
    return True


async def until(there: Callable[[], bool]) -> None:
    async def look() -> None:
        while not there():
            await asyncio.sleep(0.005)

    await asyncio.wait_for(look(), WAIT_S)


def test_the_connection_that_is_silent_longest_gives_way():
    async def body() -> None:
        async with serving(3) as served:
            readers = []
            for number in range(3):
                readers.append((await served.connect(HEAD % b"half"))[0])
                await served.full(number + 1)
            assert (await served.get()).endswith(b"answer")
            assert await ended(readers[0])
            assert served.door.closed["gave_way"] == 1
            assert not readers[1].at_eof()

    run(body)


def test_what_is_answered_stays_and_the_next_one_is_turned_away():
    async def body() -> None:
        async with serving(2) as served:
            slow = [asyncio.ensure_future(served.get(b"slow")) for _ in range(2)]
            await served.full(2)
            await asyncio.sleep(0.05)  # for both heads to be read
            assert await ended((await served.connect())[0])
            assert served.door.closed["full"] == 1
            served.free.set()
            assert all(answer.endswith(b"answer") for answer in await asyncio.gather(*slow))
            await served.full(0)

    run(body)


def test_a_body_that_does_not_come_gives_way_too():
    async def body() -> None:
        async with serving(1) as served:
            reader, _ = await served.connect(HEAD % b"body" + b"Content-Length: 9\r\n\r\nhalf")
            await served.full(1)
            await asyncio.sleep(0.05)
            assert (await served.get()).endswith(b"answer")
            assert await ended(reader)

    run(body)


@pytest.mark.parametrize("sent", [b"", HEAD % b"half"])
def test_a_head_that_does_not_come_ends_its_connection(sent):
    async def body() -> None:
        async with serving(2, header_s=0.1) as served:
            reader, _ = await served.connect(sent)
            assert await ended(reader)
            assert served.door.closed["silent"] == 1
            assert len(served.door) == 0

    run(body)


def test_so_does_a_long_rest_and_half_a_head_behind_an_answer():
    async def body() -> None:
        for limits, more in (({"idle_s": 0.1}, b""), ({"header_s": 0.1}, HEAD % b"half")):
            async with serving(2, **limits) as served:
                reader, writer = await served.connect(HEAD % b"" + b"\r\n")
                await reader.readuntil(b"answer")
                writer.write(more)
                assert await ended(reader)
                assert served.door.closed["silent"] == 1

    run(body)


def test_silence_before_a_handshake_gives_way_as_any(tmp_path):
    async def body() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        async with serving(2, tls, header_s=30) as served:
            readers = []
            for number in range(2):
                readers.append((await served.connect())[0])
                await served.full(number + 1)
            await served.connect(b"no handshake at all")
            assert await ended(readers[0])
            await until(lambda: len(served.door) == 1)  # nor does the last one stay

    run(body)


def test_without_a_handle_it_waits_for_one():
    async def body() -> None:
        async with serving(2) as served:
            loop = asyncio.get_running_loop()
            accept, failures = loop.sock_accept, iter([errno.EMFILE, errno.ECONNABORTED])

            async def failing(listening: socket.socket) -> Any:
                if (code := next(failures, None)) is not None:
                    raise OSError(code, "no")
                return await accept(listening)

            loop.sock_accept = failing  # type: ignore[method-assign,assignment]
            for _ in range(3):  # the first is under way already
                assert (await served.get()).endswith(b"answer")
            assert served.door.closed["no_handle"] == 1

    run(body)


def test_the_end_closes_what_listens():
    async def body() -> None:
        async with serving(2) as served:
            port = served.port
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)

    run(body)
