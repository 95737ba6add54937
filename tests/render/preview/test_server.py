"""The server over real sockets: who may come in, what is refused, and that it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from heimdall.errors import ConfigError
from heimdall.render.encoder import Drawn
from heimdall.render.events import Key, Pointer
from heimdall.render.preview import server as module
from heimdall.render.preview import viewer
from heimdall.render.preview.inbox import Inbox
from heimdall.render.preview.jpegs import Picture
from heimdall.render.preview.server import ENDED, MOST_VIEWERS, STALLED, Server

KEY = {"type": "key", "key": "s", "code": "KeyS", "down": True, "mods": []}
WAIT_S = 60.0  # the machine may be busy: only a failure takes so long


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.005)
    return value


def picture(size: int = 100) -> Picture:
    return Picture(bytes(size), (320, 180), Drawn(time.perf_counter_ns()))


@pytest.fixture
def server():
    inbox = Inbox()
    opened = Server(("127.0.0.1", 0), "Test", {"s": "sell"}, inbox)
    opened.inbox = inbox  # type: ignore[attr-defined]
    yield opened
    opened.close()
    assert "preview-server" not in {thread.name for thread in threading.enumerate()}


def talk(body):
    """Runs ``body(client)`` against a server."""

    async def run():
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(WAIT_S)) as client:
            return await body(client)

    return asyncio.run(run())


def get(url: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    async def body(client):
        async with client.get(url, headers=headers, allow_redirects=False) as answer:
            return answer.status, await answer.text(), dict(answer.headers)

    return talk(body)


async def connect(client, server, **more):
    """A viewer's socket, once it has been greeted."""
    socket = await client.ws_connect(f"{server.url}socket", **more)
    greeting = await socket.receive(WAIT_S)
    assert json.loads(greeting.data)["title"] == "Test"
    return socket


async def closing(socket) -> tuple[int, str]:
    """The code and reason with which the server closes; pictures on the way are passed over."""
    while (message := await socket.receive(WAIT_S)).type is not aiohttp.WSMsgType.CLOSE:
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), message
    return message.data, message.extra


# --- who may come in ----------------------------------------------------------------------------


def test_the_page_needs_nothing_from_elsewhere(server):
    status, page, headers = get(server.url)
    assert status == 200
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "//" not in page.replace("//-->", "")
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript")):
        status, _, headers = get(server.url + name)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert name in page


@pytest.mark.parametrize(
    "path", ["", "x", "x/", "x/page.js", "x/socket", "%ff/", "..%2f", "%00/", "token/../../"]
)
def test_without_the_token_there_is_one_sentence(server, path):
    base = server.url.rsplit("/", 2)[0]
    status, text, headers = get(f"{base}/{path}")
    assert (status, text.count("\n")) == (403, 1)
    assert "the whole address" in text
    assert "Content-Security-Policy" in headers


def test_with_it_only_what_exists_is_found(server):
    assert get(server.url + "server.py")[0] == 404
    assert get(server.url + "../preview/server.py")[0] == 403
    assert get(server.url.rstrip("/"))[0] == 302


def test_every_server_has_a_token_of_its_own(server):
    other = Server(("127.0.0.1", 0), "", {}, Inbox())
    other.close()
    assert urlsplit(other.url).path != urlsplit(server.url).path


def test_the_token_is_the_environments_where_there_is_one(monkeypatch):
    monkeypatch.setenv("HEIMDALL_TOKEN", "a-token-of-my-own")
    opened = Server(("127.0.0.1", 0), "Test", {}, Inbox())
    try:
        assert opened.url.endswith("/a-token-of-my-own/")
        assert opened.told.endswith("/$HEIMDALL_TOKEN/")
        assert get(opened.url)[0] == 200
        assert get(opened.url.replace("-own", "-one"))[0] == 403
    finally:
        opened.close()
    monkeypatch.setenv("HEIMDALL_TOKEN", "short")
    with pytest.raises(ConfigError, match="16 to 256"):
        Server(("127.0.0.1", 0), "", {}, Inbox())


def test_silent_connections_keep_nobody_out(server):
    where = urlsplit(server.url)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            raw = socket.create_connection((where.hostname, where.port), timeout=WAIT_S)
            stack.enter_context(raw).sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert get(server.url)[0] == 200


def test_silent_connections_are_few_at_a_time(server):
    where = urlsplit(server.url)
    with contextlib.ExitStack() as stack:
        place = where.hostname, where.port
        raws = [stack.enter_context(socket.create_connection(place)) for _ in range(200)]
        until(lambda: [is_closed(raw) for raw in raws] == [True] * 168 + [False] * 32)


def is_closed(raw: socket.socket) -> bool:
    """Whether the other end has closed it, as far as is known now."""
    raw.setblocking(False)
    try:
        return raw.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_name_that_leads_here_by_somebody_elses_doing_is_refused(server):
    status, text, _ = get(server.url, Host="evil.example")
    assert status == 403
    assert "this machine's address" in text


def test_a_page_of_somebody_elses_cannot_connect(server):
    async def body(client):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await connect(client, server, origin="http://evil.example")
        return refused.value.status

    assert talk(body) == 403


def test_the_next_viewer_is_told_that_there_are_too_many(server):
    async def body(client):
        sockets = [await connect(client, server) for _ in range(MOST_VIEWERS)]
        reason = f"{MOST_VIEWERS} viewers are watching already: close one of their pages"
        refused = await client.ws_connect(f"{server.url}socket")
        assert await closing(refused) == (1013, reason)
        async with client.get(server.url) as answer:
            assert (answer.status, await answer.text()) == (503, reason + "\n")
        await sockets[0].close()
        await asyncio.to_thread(until, lambda: get(server.url)[0] == 200)
        await connect(client, server)

    talk(body)


# --- pictures -----------------------------------------------------------------------------------


def test_pictures_are_wanted_only_while_somebody_can_take_one(server):
    assert not server.wanted

    async def body(client):
        socket = await connect(client, server)
        await asyncio.to_thread(until, lambda: server.wanted)
        server.publish(Picture(b"one", (4, 3), Drawn(time.perf_counter_ns())))
        message = await socket.receive(WAIT_S)
        assert message.data == b"\x00\x00\x00\x01\x00\x00one"
        await asyncio.to_thread(until, lambda: not server.wanted)
        await socket.send_json({"type": "shown", "number": 1, "took": 1})
        await asyncio.to_thread(until, lambda: server.wanted)
        await socket.send_json({"type": "watch", "on": False})
        await asyncio.to_thread(until, lambda: not server.wanted)

    talk(body)
    until(lambda: not server.wanted)


def test_a_viewer_that_stalls_is_closed_with_a_reason_and_others_go_on(server, monkeypatch):
    monkeypatch.setattr(viewer, "STALLED_S", 1.5)

    async def body(client):
        stalled, good = await connect(client, server), await connect(client, server)
        await asyncio.to_thread(until, lambda: server.wanted)
        server.publish(picture())
        for number in (1, 2):
            message = await good.receive(WAIT_S)
            assert message.type is aiohttp.WSMsgType.BINARY
            await good.send_json({"type": "shown", "number": number, "took": 1})
            if number == 1:
                code, reason = await closing(stalled)
                assert code == STALLED
                assert "no picture was shown for" in reason
                await asyncio.to_thread(until, lambda: server.wanted)
                server.publish(picture())

    talk(body)


def test_viewers_that_do_not_even_read_are_dropped(server, monkeypatch):
    monkeypatch.setattr(viewer, "STALLED_S", 0.2)
    where = urlsplit(server.url)
    hello = (
        f"GET {where.path}socket HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        "Sec-WebSocket-Version: 13\r\n\r\n"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_VIEWERS):
            deaf = socket.create_connection((where.hostname, where.port))
            stack.enter_context(deaf).sendall(hello.encode())
        until(lambda: get(server.url)[0] == 503)
        server.publish(picture(50_000_000))  # more than the system keeps for them
        until(lambda: get(server.url)[0] == 200)


def test_progress_is_told_to_those_who_come_later_too(server):
    async def body(client):
        first = await connect(client, server)
        server.progress("compiling", 0.25)
        told = json.loads((await first.receive(WAIT_S)).data)
        assert told == {"type": "progress", "what": "compiling", "share": 0.25}
        later = await connect(client, server)
        assert json.loads((await later.receive(WAIT_S)).data) == told

    talk(body)


# --- input --------------------------------------------------------------------------------------


def test_keys_and_pointer_arrive_in_pixels_of_the_picture(server):
    async def body(client):
        socket = await connect(client, server)
        await asyncio.to_thread(until, lambda: server.wanted)
        server.publish(picture())
        await socket.receive(WAIT_S)
        await socket.send_json(KEY)
        await socket.send_json({"type": "pointer", "x": 1, "y": 0, "buttons": 1})
        found: list[Any] = []
        while len(found) < 2:
            found += server.inbox.take()
            await asyncio.sleep(0.005)
        assert found == [Key("s", True), Pointer(319, 0, frozenset({"left"}))]

    talk(body)
    until(lambda: server.inbox.take() == [Key("s", False), Pointer(319, 0)])  # it has gone


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        ("nonsense", 1008, "not JSON"),
        ('{"type": "quit"}', 1008, "must have a type"),
        ('{"type": "shown", "number": 9, "took": 1}', 1008, "no picture of this number"),
        (b"\x00\x01", 1008, "not a text"),
        ("x" * 600, 1009, ""),
    ],
)
def test_a_message_out_of_shape_closes_its_sender_and_does_nothing_else(server, said, code, reason):
    async def body(client):
        good, bad = await connect(client, server), await connect(client, server)
        await (bad.send_bytes(said) if isinstance(said, bytes) else bad.send_str(said))
        closed, why = await closing(bad)
        assert closed == code
        assert reason in (why or "")
        assert server.inbox.take() == []
        await good.send_json(KEY)
        await asyncio.to_thread(until, lambda: server.inbox.take() == [Key("s", True)])

    talk(body)


def test_a_flood_closes_its_sender(server):
    async def body(client):
        socket = await connect(client, server)
        for _ in range(viewer.MOST_MESSAGES + 1):
            await socket.send_json({"type": "blur"})
        code, reason = await closing(socket)
        assert code == 1008
        assert "messages a second" in reason

    talk(body)


def test_noise_instead_of_http_is_no_concern_of_the_servers(server, caplog):
    where = urlsplit(server.url)
    with socket.create_connection((where.hostname, where.port)) as noise:
        noise.sendall(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
        noise.recv(100)
    assert get(server.url)[0] == 200
    assert not caplog.records


# --- the end ------------------------------------------------------------------------------------


def test_viewers_are_told_of_the_end():
    server = Server(("127.0.0.1", 0), "Test", {}, Inbox())

    async def body(client):
        socket = await connect(client, server)
        ending = asyncio.create_task(asyncio.to_thread(server.close))
        assert await closing(socket) == (ENDED, "the run has ended")
        await ending

    talk(body)
    assert "preview-server" not in {thread.name for thread in threading.enumerate()}
    server.close()
    server.publish(picture())
    server.progress("late", 1)
    where = urlsplit(server.url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((where.hostname, where.port))


def test_one_that_hangs_does_not_keep_the_run_from_ending(monkeypatch, caplog):
    monkeypatch.setattr(module, "_END_S", 0.05)
    server = Server(("127.0.0.1", 0), "Test", {}, Inbox())
    go_on = threading.Event()
    server._call(go_on.wait, WAIT_S)  # its loop hangs
    server.close()
    assert "did not end within" in caplog.text
    go_on.set()
    server._thread.join(WAIT_S)
    assert not server._thread.is_alive()
