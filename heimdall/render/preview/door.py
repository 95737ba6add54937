"""Who is let in by HTTP: so many connections at once, and none that stays without asking.

A client has a few seconds for the head of its request. When there are as many connections as may
be, a new one takes the place of the one that has been silent longest; what is being answered stays.
Sockets are taken from the system one by one, so that it never has more of them open than that:
handles are the whole process's, and files of the app must still open.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from heimdall.system.handles import affordable

HEADER_S = 5.0
IDLE_S = 300.0
_QUEUE = 128  # clients that the system keeps until they are let in: they cost no handles
_PAUSE_S = 0.1  # before the system is asked again that had no handle
_GONE = (errno.ECONNABORTED, errno.EPROTO)  # the client, while it waited at the door


class Door:
    """The connections of one server. ``closed`` counts those that it ended or did not let in, by
    the reason: ``silent`` (too long), ``gave_way`` (to a new one), ``full``, ``no_handle``."""

    def __init__(self, most: int, *, header_s: float = HEADER_S, idle_s: float = IDLE_S) -> None:
        self._most, self.header_s, self.idle_s = affordable(most), header_s, idle_s
        self._connections: dict[asyncio.Protocol, _Connection] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self.closed = Counter[str](silent=0, gave_way=0, full=0, no_handle=0)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._connections)

    @contextlib.asynccontextmanager
    async def open(
        self, server: web.Server, listening: socket.socket, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[None]:
        """Let clients in from here to the end of the block, which closes ``listening``."""
        listening.setblocking(False)
        listening.listen(_QUEUE)
        accepting = asyncio.ensure_future(self._accept(server, listening, tls))
        try:
            yield
        finally:
            for task in (accepting, *self._arriving):
                task.cancel()
            await asyncio.gather(accepting, *self._arriving, return_exceptions=True)
            listening.close()

    @contextlib.contextmanager
    def answering(self, request: web.BaseRequest) -> Iterator[None]:
        """The head of a request has come: its connection stays until the block's end."""
        with self._marked(request, True):
            yield

    @contextlib.contextmanager
    def reading(self, request: web.BaseRequest) -> Iterator[None]:
        """Within ``answering``: the client is to send more, and can be waited for in vain."""
        with self._marked(request, False):
            yield

    @contextlib.contextmanager
    def _marked(self, request: web.BaseRequest, answered: bool) -> Iterator[None]:
        connection = self._connections.get(request.protocol)
        if connection is None:  # it is closed already
            yield
            return
        before, connection.answered = connection.answered, answered
        connection.stop_waiting()
        try:
            yield
        finally:
            connection.answered = before
            if not before:
                connection.rest()

    async def _accept(
        self, server: web.Server, listening: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                arrived, _ = await loop.sock_accept(listening)
            except OSError as error:
                if error.errno not in _GONE:
                    self.closed["no_handle"] += 1
                    await asyncio.sleep(_PAUSE_S)
                continue
            if not self._make_room():
                self.closed["full"] += 1
                arrived.close()
                continue
            inner = server()
            self._connections[inner] = connection = _Connection(self, inner, arrived)
            task = asyncio.ensure_future(self._connect(connection, arrived, tls))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    async def _connect(
        self, connection: _Connection, arrived: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        limit_s = None if tls is None else self.header_s
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, arrived, ssl=tls, ssl_handshake_timeout=limit_s
            )
        except OSError:  # TimeoutError too: it has gone, or speaks no TLS
            connection.connection_lost(None)

    def _make_room(self) -> bool:
        """Whether one more may come in; the connection that is silent longest goes for it."""
        if len(self._connections) < self._most:
            return True
        silent = [each for each in self._connections.values() if not each.answered]
        if not silent:
            return False
        min(silent, key=lambda each: each.heard_s).close("gave_way")
        return True

    def forget(self, inner: asyncio.Protocol) -> None:
        """A connection has ended."""
        self._connections.pop(inner, None)


class _Connection(asyncio.Protocol):
    """Passes on what comes to ``inner``, which is aiohttp's, and keeps an eye on the time."""

    def __init__(self, door: Door, inner: asyncio.Protocol, arrived: socket.socket) -> None:
        self.answered = False
        self._door, self._inner, self._socket = door, inner, arrived
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._resting = False  # between a request and the next
        self.heard_s = self._loop.time()
        self._due = self._loop.call_later(door.header_s, self.close, "silent")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self.heard_s = self._loop.time()
        if self._resting:
            self._resting = False
            self._wait(self._door.header_s)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.stop_waiting()
        self._door.forget(self._inner)
        if self._transport is not None:
            self._inner.connection_lost(error)

    def rest(self) -> None:
        """A request has been answered."""
        self._resting = True
        self._wait(self._door.idle_s)

    def stop_waiting(self) -> None:
        self._due.cancel()
        self._resting = False

    def close(self, why: str) -> None:
        self._door.closed[why] += 1
        self._door.forget(self._inner)
        if self._transport is not None:
            self._transport.abort()
        else:  # in the middle of a handshake, which fails by this
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _wait(self, limit_s: float) -> None:
        """Give the client so long for what it is to send next."""
        self.heard_s = self._loop.time()
        self._due.cancel()
        self._due = self._loop.call_later(limit_s, self.close, "silent")
