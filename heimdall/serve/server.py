"""A server on a thread of its own: REST by aiohttp, gRPC by grpcio, both in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from aiohttp import web
from tritonclient.grpc import service_pb2_grpc

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.preview import address
from heimdall.serve.limits import Limits
from heimdall.serve.models import Models, check_name
from heimdall.serve.rest import application
from heimdall.serve.rpc import Calls
from heimdall.serve.service import Service
from heimdall.system.priority import lower_priority

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
HTTP_PORT, GRPC_PORT = 8000, 8001  # those of Triton, which clients assume
_NICE = 5
_CLOSING_S = 2.0  # for requests in flight to be answered


@dataclass(frozen=True)
class Tls:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path

    def read(self) -> tuple[bytes, bytes]:
        """Both. Raises ConfigError where they cannot be read or do not belong together."""
        try:
            found = self.certificate.read_bytes(), self.key.read_bytes()
            self.context()
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors
            raise ConfigError(f"TLS: {self.certificate} with {self.key}: {error}") from error
        return found

    def context(self) -> ssl.SSLContext:
        """For REST."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Server:
    """Serves ``models`` from its making until ``close``, on ``host`` (a name or number; default:
    only programs of this machine). Port 0: any that is free; None: not that way at all.

    ``http_port`` and ``grpc_port`` say where it listens. Raises DeviceError where it cannot,
    ConfigError for a model whose name no address can hold, and for keys that are of no use.
    """

    def __init__(
        self,
        models: Models,
        *,
        host: str = LOOPBACK,
        http_port: int | None = HTTP_PORT,
        grpc_port: int | None = GRPC_PORT,
        limits: Limits | None = None,
        tls: Tls | None = None,
    ) -> None:
        if http_port is None and grpc_port is None:
            raise ConfigError("a server without a port cannot be reached: give it one")
        for name in models.names():
            check_name(name)
        self._host, self._tls = host, tls
        self._keys = tls.read() if tls is not None else None
        self._models, self._limits = models, limits or Limits()
        self._asked = http_port, grpc_port
        self.http_port, self.grpc_port = http_port, grpc_port
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="server", daemon=True)
        self._thread.start()
        self._started.result()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Where the server listens, as a client on another machine would type it, if it can reach
        it."""
        safe = "s" if self._tls is not None else ""
        ports = (("http", self.http_port), ("grpc", self.grpc_port))
        return tuple(
            address.origin((self._host, port)).replace("http", scheme + safe, 1)
            for scheme, port in ports
            if port is not None
        )

    def close(self) -> None:
        """Let requests in flight be answered for a moment, and end. Closing twice is allowed."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- below, everything runs on the server's thread -------------------------------------------

    def _run(self) -> None:
        lower_priority(_NICE)
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            if self._started.done():
                log.exception("the server has ended")
            else:
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        local = address.is_loopback(self._host)
        service = self.service = Service(self._models, self._limits, local=local)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(service.regions.unregister)
            http_port, grpc_port = self._asked
            if http_port is not None:
                self.http_port = await self._open_rest(service, http_port, stack)
            if grpc_port is not None:
                self.grpc_port = await self._open_rpc(service, grpc_port, stack)
            self._started.set_result(None)
            await self._ending.wait()

    async def _open_rest(
        self, service: Service, port: int, stack: contextlib.AsyncExitStack
    ) -> int:
        listening = address.listen((self._host, port), "--http-port")
        stack.callback(listening.close)
        made = application(service, self._host)
        # What clients send wrongly is their business: no traceback on this side.
        runner = web.AppRunner(
            made,
            access_log=None,
            logger=_quiet(),
            handler_cancellation=True,
            shutdown_timeout=_CLOSING_S,
        )
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None
        door = _Door(runner.server, self._limits)
        context = self._tls.context() if self._tls is not None else None
        opened = await self._loop.create_server(door, sock=listening, ssl=context)
        stack.callback(opened.close)
        return int(listening.getsockname()[1])

    async def _open_rpc(self, service: Service, port: int, stack: contextlib.AsyncExitStack) -> int:
        most = self._limits.request_bytes
        server = grpc.aio.server(
            maximum_concurrent_rpcs=self._limits.clients,
            options=[
                ("grpc.max_receive_message_length", most),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # or two servers would share the port
            ],
        )
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Calls(service), server)
        # grpcio says "failed to bind", and no more; so the port is tried before.
        tried = address.listen((self._host, port), "--grpc-port")
        port = int(tried.getsockname()[1])
        tried.close()
        place = f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"
        try:
            if self._keys is None:
                server.add_insecure_port(place)
            else:
                certificate, key = self._keys
                pair = grpc.ssl_server_credentials([(key, certificate)])
                server.add_secure_port(place, pair)
        except RuntimeError as error:
            raise DeviceError(f"--grpc-port {place}: cannot listen there ({error})") from error
        await server.start()
        stack.push_async_callback(server.stop, _CLOSING_S)
        return port


class _Door:
    """Lets in so many connections at once. (aiohttp closes those that ask nothing.)"""

    def __init__(self, server: web.Server, limits: Limits) -> None:
        self._server, self._limits = server, limits

    def __call__(self) -> asyncio.BaseProtocol:
        if len(self._server.connections) >= self._limits.clients:
            return _Turned()
        return self._server()


class _Turned(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: Any) -> None:
        transport.abort()


def _quiet() -> logging.Logger:
    logger = logging.Logger(f"{__name__}.http")
    logger.addHandler(logging.NullHandler())
    return logger
