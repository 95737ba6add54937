"""Who is let in by gRPC: with the token, so many calls at once, and none that stays without asking.

A call begins before its request has come, and may wait for that for ever. Here it may not: it has
as long as a body by REST has, and when there are as many calls as may be, a new one takes the place
of the one that has been silent longest. Whatever is refused on the way is told with its reason.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from heimdall.serve.refusals import Reason, RefusedError, wrong
from heimdall.serve.service import Service
from heimdall.system.token import bearer, is_same

# Whether a server is there anybody may ask: those that start and stop it have no token.
_OPEN = tuple(f"/inference.GRPCInferenceService/Server{what}" for what in ("Live", "Ready"))
_GAVE_WAY = "the call said nothing, and another one needed its place: ask again"
_NO_MESSAGE = object()
_FULL = "{} calls are open, and each is being answered: try again later"


class Gate(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Stands before the calls of a servicer, which is added to it as to a server; interceptors are
    not asked about calls that are registered by name. For one event loop. ``closed`` counts the
    calls that it ended or did not let in, by the reason: ``silent`` (too long), ``gave_way`` (to a
    new one), ``full``."""

    def __init__(self, service: Service, token: str | None) -> None:
        self._service, self._limits, self._token = service, service.limits, token
        self._handler: grpc.GenericRpcHandler | None = None
        self._calls = 0
        self._silent: dict[asyncio.Future[Any], str] = {}  # and why it is ended, once it is
        self.closed = Counter[str](silent=0, gave_way=0, full=0)

    def __len__(self) -> int:
        """How many calls there are."""
        return self._calls

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """What the generated code asks of a server."""
        (self._handler,) = handlers

    def add_registered_method_handlers(self, *handlers: object) -> None:
        """The same ones by name, which newer generated code adds too."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """How a call is answered; None: there is no such call."""
        found = self._handler.service(details) if self._handler is not None else None
        if found is None:
            return None
        # Of any call the requests are read here, one by one: also where there is one at most.
        how = _forgiving(found.request_deserializer), found.response_serializer
        if not self._admits(details):
            return grpc.stream_unary_rpc_method_handler(self._turn_away, *how)
        if found.stream_stream is not None:
            return grpc.stream_stream_rpc_method_handler(self._stream(found.stream_stream), *how)
        return grpc.stream_unary_rpc_method_handler(self._single(found.unary_unary), *how)

    def _admits(self, details: grpc.HandlerCallDetails) -> bool:
        if self._token is None or details.method in _OPEN:
            return True
        given = dict(details.invocation_metadata or ()).get("authorization", "")
        return is_same(bearer(given if isinstance(given, str) else ""), self._token)

    async def _turn_away(self, requests: Any, context: grpc.aio.ServicerContext) -> None:
        refused = RefusedError(
            Reason.UNAUTHORIZED, "this server asks for a token: send authorization: Bearer TOKEN"
        )
        await self._tell(refused, "", context)

    def _single(self, answer: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(requests: AsyncIterator[Any], context: grpc.aio.ServicerContext) -> Any:
            model = ""
            try:
                with self._counted():
                    request = await self._next(requests, self._limits.body_s)
                    model = getattr(request, "model_name", "")
                    return await answer(request, context)
            except StopAsyncIteration:
                await self._tell(wrong("the call has no request"), model, context)
            except NotImplementedError:  # what Triton has besides
                none = RefusedError(Reason.UNSUPPORTED, "this server has no such call")
                await self._tell(none, model, context)
            except RefusedError as error:
                await self._tell(error, model, context)

        return call

    def _stream(self, answer: Callable[..., AsyncIterator[Any]]) -> Callable[..., Any]:
        async def call(
            requests: AsyncIterator[Any], context: grpc.aio.ServicerContext
        ) -> AsyncIterator[Any]:
            try:
                with self._counted():
                    async for each in answer(self._patiently(requests), context):
                        yield each
            except RefusedError as error:
                await self._tell(error, "", context)

        return call

    async def _patiently(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        limit_s = self._limits.body_s
        with contextlib.suppress(StopAsyncIteration):
            while True:
                request = await self._next(requests, limit_s)
                yield request
                limit_s = self._limits.idle_s

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """A call is open; where there are too many, a silent one ends for it."""
        most = self._limits.clients
        if self._calls >= most and not self._make_room():
            self.closed["full"] += 1
            raise RefusedError(Reason.BUSY, _FULL.format(most))
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    def _make_room(self) -> bool:
        for waiting, why in self._silent.items():  # the one that waits longest is the first
            if not why and self._end(waiting, "gave_way"):
                return True
        return False

    async def _next(self, requests: AsyncIterator[Any], limit_s: float) -> Any:
        """The next request. Refused where it does not come; raises StopAsyncIteration when there
        are no more."""
        waiting = asyncio.ensure_future(requests.__anext__())
        self._silent[waiting] = ""
        timer = asyncio.get_running_loop().call_later(limit_s, self._end, waiting, "silent")
        try:
            request = await waiting
            if request is _NO_MESSAGE:
                raise wrong("these bytes are no message of this call")
            return request
        except asyncio.CancelledError:
            if not (why := self._silent[waiting]):
                raise  # the client has gone
            if why == "silent":
                told = RefusedError(Reason.SLOW, f"no request came within {limit_s:g} s")
            else:
                told = RefusedError(Reason.BUSY, _GAVE_WAY)
            raise told from None
        finally:
            timer.cancel()
            del self._silent[waiting]

    def _end(self, waiting: asyncio.Future[Any], why: str) -> bool:
        """Whether it can still be ended: its request may just have come."""
        if self._silent[waiting] or not waiting.cancel():
            return False
        self._silent[waiting] = why
        self.closed[why] += 1
        return True

    async def _tell(
        self, error: RefusedError, model: str, context: grpc.aio.ServicerContext
    ) -> None:
        self._service.count_refusal(model, error.reason)
        await context.abort(grpc.StatusCode[error.reason.code], str(error))


def _forgiving(parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """What parses a request; grpcio would answer what it raises as a fault of the server's."""

    def parsed(raw: bytes) -> Any:
        try:
            return parse(raw)
        except DecodeError:
            return _NO_MESSAGE

    return parsed
