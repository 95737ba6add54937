"""Faults of others that a run works with: the server that its DNNs may run on, and who looks at
it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from heimdall.errors import DeviceError
from heimdall.lab.faults.chunks import Call, around_networks, longer
from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.trial import Trial
from heimdall.system.extras import installed, line
from heimdall.vocabulary.processors import REMOTE

CROWDED = 4  # times as slow is the GPU that has no time for all DNNs
_SERVING_S = 60.0  # until a server has its networks


# --- a server --------------------------------------------------------------------------------


class _Server:
    """A server elsewhere with the networks of an app."""

    def __init__(self, app: str) -> None:
        self.port, self._app = _free_port(), app
        self.ready_ns: int | None = None  # when it answered
        self.start()

    def start(self) -> None:
        """Start it, on the same port each time."""
        command = [sys.executable, "-m", "heimdall.lab.faults.elsewhere"]
        self._process = subprocess.Popen(
            [*command, self._app, str(self.port)], stdout=subprocess.PIPE, text=True
        )
        self._ready, self.ready_ns = threading.Event(), None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline():
            self.ready_ns = time.perf_counter_ns()
            self._ready.set()

    def wait(self) -> None:
        """Return when it answers."""
        self._ready.wait(_SERVING_S)

    def kill(self) -> None:
        """End it without a word to its clients."""
        self._process.kill()
        self._process.wait()


def _free_port() -> int:
    """One that nobody listens on at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _serve(trial: Trial) -> None:
    trial.server = _Server(trial.request.app)
    trial.afterwards.callback(lambda: trial.server.kill())
    trial.server.wait()


def _remote(trial: Trial) -> Sequence[str]:
    return ("--remote", f"grpc://127.0.0.1:{trial.server.port}")


def _crowd(moment: Moment) -> None:
    """The GPU is slow all the time, so that DNNs leave for the server; it is known to be at fault
    when one of them finds it gone."""

    def slowly(dnn: str, run: Call) -> Any:
        began_s = time.perf_counter()
        found = run()
        more_s = (CROWDED - 1) * (time.perf_counter() - began_s)
        time.sleep(more_s)
        return longer(found, round(1e9 * more_s))

    def heard(dnn: str, run: Call) -> Any:
        try:
            return run()
        except DeviceError:
            moment.acted()
            raise

    around_networks(slowly)
    around_networks(heard, (REMOTE,))


@contextlib.contextmanager
def _server_gone(trial: Trial) -> Iterator[None]:
    trial.began(acted=False)
    trial.server.kill()
    trial.server.start()
    yield
    trial.server.wait()
    trial.ended_ns = trial.server.ready_ns


def _serving(request: Request) -> str:
    return "" if installed("aiohttp") and installed("tritonclient") else line("serve")


# --- a viewer --------------------------------------------------------------------------------


def _shown_in_a_page(trial: Trial) -> Sequence[str]:
    return ("--serve", "0")


@contextlib.contextmanager
def _slow_viewer(trial: Trial) -> Iterator[None]:
    """A page that asks for pictures, and takes next to none of what comes."""
    words = [word for line in trial.said for word in line.split()]
    page = next((word for word in words if word.startswith("http://")), None)
    if page is None:
        raise DeviceError("the run says no address of its page")
    over = threading.Event()

    async def view() -> None:
        import aiohttp

        async with aiohttp.ClientSession() as client, client.ws_connect(f"{page}socket") as socket:
            trial.began()
            while not over.is_set():
                await socket.receive()
                await asyncio.sleep(1.0)

    def look() -> None:
        with contextlib.suppress(Exception):  # it is sent away, which it may be
            asyncio.run(view())

    viewer = threading.Thread(target=look, daemon=True)
    viewer.start()
    try:
        yield
    finally:
        over.set()
        viewer.join(5.0)
        trial.ended()


FAULTS = (
    Fault(
        "server-gone",
        "The server that DNNs run on is killed, and started again.",
        _crowd,
        prepare=_serve,
        arguments=_remote,
        beside=_server_gone,
        needs=_serving,
    ),
    Fault(
        "viewer-slow",
        "A viewer of the page reads one message a second.",
        arguments=_shown_in_a_page,
        beside=_slow_viewer,
        told=False,
        needs=_serving,
    ),
)
