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

import grpc
from aiohttp import web
from tritonclient.grpc import service_pb2_grpc

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.preview import address
from heimdall.render.preview.door import Door
from heimdall.serve.gate import Gate
from heimdall.serve.limits import Limits
from heimdall.serve.metrics import Drawing, Entrance, Metrics
from heimdall.serve.models import Models, check_name
from heimdall.serve.rest import application
from heimdall.serve.rpc import Calls
from heimdall.serve.service import Service
from heimdall.system.handles import affordable
from heimdall.system.priority import lower_priority
from heimdall.system.token import checked

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
HTTP_PORT, GRPC_PORT = 8000, 8001  # those of Triton, which clients assume
_NICE = 5
_CLOSING_S = 2.0  # for requests in flight to be answered
_BESIDES = 1 << 20  # bytes of a request by gRPC that are not its tensors
_TOO_MUCH = 4  # times what a model takes: up to this a client is told which shape is wanted


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
    ``token``: what clients must know, but for asking whether it is there; other machines are not
    let in without one unless ``insecure`` says so. ``drawing``: the frames that ``/metrics`` tells
    of.

    ``http_port`` and ``grpc_port`` say where it listens. Raises DeviceError where it cannot,
    ConfigError for a model whose name no address can hold, for keys that are of no use, and for a
    token that is none, or is missing.
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
        token: str | None = None,
        insecure: bool = False,
        drawing: Drawing | None = None,
    ) -> None:
        if http_port is None and grpc_port is None:
            raise ConfigError("a server without a port cannot be reached: give it one")
        for name in models.names():
            check_name(name)
        if token is None and not insecure and not address.is_loopback(host):
            raise ConfigError(
                f"host {host}: other machines could use these models: give a token (--token-file, "
                "HEIMDALL_TOKEN), or say --insecure"
            )
        self._host, self._tls = host, tls
        self._token = None if token is None else checked(token)
        self._drawing = drawing
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
            stack.callback(service.regions.close)
            http_port, grpc_port = self._asked
            gate = Gate(service, self._token)
            if http_port is not None:
                self.http_port = await self._open_rest(service, gate, http_port, stack)
            if grpc_port is not None:
                self.grpc_port = await self._open_rpc(service, gate, grpc_port, stack)
            self._started.set_result(None)
            await self._ending.wait()

    async def _open_rest(
        self, service: Service, gate: Gate, port: int, stack: contextlib.AsyncExitStack
    ) -> int:
        listening = address.listen((self._host, port), "--http-port")
        stack.callback(listening.close)
        limits = self._limits
        if (fewer := affordable(limits.clients)) < limits.clients:
            log.warning(
                "%d connections at once, not %d: this process may open few files (ulimit -n)",
                fewer,
                limits.clients,
            )
        door = Door(limits.clients, header_s=limits.header_s, idle_s=limits.idle_s)
        entrances: dict[str, Entrance] = {"rest": door, "grpc": gate}
        metrics = Metrics(service, entrances, self._drawing)
        made = application(service, metrics, door, host=self._host, token=self._token)
        # What clients send wrongly is their business: no traceback on this side.
        runner = web.AppRunner(
            made,
            access_log=None,
            logger=_quiet(),
            handler_cancellation=True,
            shutdown_timeout=_CLOSING_S,
            auto_decompress=False,  # it would unpack whatever comes
            lingering_time=_CLOSING_S,  # for the rest of what is refused
        )
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None
        port = int(listening.getsockname()[1])
        context = self._tls.context() if self._tls is not None else None
        await stack.enter_async_context(door.open(runner.server, listening, context))
        return port

    async def _open_rpc(
        self, service: Service, gate: Gate, port: int, stack: contextlib.AsyncExitStack
    ) -> int:
        limits = self._limits
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", _most_by_rpc(service)),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),  # or two servers would share the port
                ("grpc.max_concurrent_streams", limits.clients),  # of one connection
                # More than calls, for those of them that are idle give way to nobody.
                ("grpc.max_allowed_incoming_connections", affordable(4 * limits.clients)),
                ("grpc.max_connection_idle_ms", round(1000 * limits.body_s)),
                ("grpc.server_handshake_timeout_ms", round(1000 * limits.header_s)),
            ],
        )
        # grpcio says "failed to bind", and no more; so the port is tried before.
        tried = address.listen((self._host, port), "--grpc-port")
        port = int(tried.getsockname()[1])
        tried.close()
        calls = Calls(service, (self._host, port))
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(calls, gate)
        server.add_generic_rpc_handlers((gate,))
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


def _most_by_rpc(service: Service) -> int:
    """How long a message may be. It is read in one piece, which stops every thread: none is read
    that is far beyond what any model takes."""
    return min(service.limits.request_bytes, _TOO_MUCH * service.largest + _BESIDES)


def _quiet() -> logging.Logger:
    logger = logging.Logger(f"{__name__}.http")
    logger.addHandler(logging.NullHandler())
    return logger
