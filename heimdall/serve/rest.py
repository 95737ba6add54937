"""The protocol by REST: JSON, or JSON followed by raw tensors (Triton's binary extension)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import heimdall
from heimdall.render.preview.address import is_own_host
from heimdall.render.preview.door import Door
from heimdall.serve import bodies, tensors
from heimdall.serve.asked import Asked, Wanted, check_parameters, place_of, priority_of, slo_of
from heimdall.serve.metrics import CONTENT_TYPE, Metrics
from heimdall.serve.peers import Peer, of_transport
from heimdall.serve.refusals import Reason, RefusedError, wrong
from heimdall.serve.service import EXTENSIONS, NAME, VERSION, Service
from heimdall.serve.shared_memory import shown
from heimdall.system.token import bearer, is_same

_LENGTH = "Inference-Header-Content-Length"
_MOST_TENSORS = 64  # that a request may list
_SLICE = 2048  # values of an answer that are written as JSON at a time, in under 1 ms
_HEALTH = "/v2/health/"  # whether a server is there anybody may ask
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Body(BaseModel):
    """Unknown keys are let through, as the protocol asks for."""

    model_config = ConfigDict(extra="ignore")


class _Input(_Body):
    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] = {}
    data: list[Any] | None = None


class _Output(_Body):
    name: str
    parameters: dict[str, Any] = {}


class _Inference(_Body):
    id: str = ""
    parameters: dict[str, Any] = {}
    inputs: list[_Input] = Field(max_length=_MOST_TENSORS)
    outputs: list[_Output] = Field(default=[], max_length=_MOST_TENSORS)


class _Region(_Body):
    key: str
    offset: int = 0
    byte_size: int


_BodyT = TypeVar("_BodyT", bound=_Body)


def application(
    service: Service, metrics: Metrics, door: Door, *, host: str, token: str | None
) -> web.Application:
    """Every address of the protocol, and ``/metrics``. ``host``: where the server listens."""
    rest = _Rest(service, metrics, door, host, token)
    made = web.Application(middlewares=[rest.guard])
    get, post = made.router.add_get, made.router.add_post
    get("/metrics", rest.metrics)
    get("/v2", rest.metadata)
    get(f"{_HEALTH}{{what:live|ready}}", rest.health)
    get("/v2/models/stats", rest.statistics)
    for model in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        get(model, rest.model)
        get(f"{model}/ready", rest.model_ready)
        get(f"{model}/config", rest.configuration)
        get(f"{model}/stats", rest.statistics)
        post(f"{model}/infer", rest.infer)
    post("/v2/repository/index", rest.index)
    post("/v2/repository/models/{model:.*}/{what:load|unload}", rest.load)
    for path in ("/v2/systemsharedmemory", "/v2/systemsharedmemory/region/{region}"):
        get(f"{path}/status", rest.regions)
        post(f"{path}/unregister", rest.unregister)
    post("/v2/systemsharedmemory/region/{region}/register", rest.register)
    get("/v2/cudasharedmemory{rest:.*}/status", rest.no_cuda)
    post("/v2/cudasharedmemory{rest:.*}/unregister", rest.healthy)
    return made


class _Rest:
    def __init__(
        self, service: Service, metrics: Metrics, door: Door, host: str, token: str | None
    ) -> None:
        self._service, self._metrics, self._door = service, metrics, door
        self._host, self._token = host, token

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every refusal is JSON with its reason; pages of a browser's are not served at all."""
        try:
            with self._door.answering(request):
                self._admit(request)
                return await handler(request)
        except RefusedError as error:
            self._service.count_refusal(request.match_info.get("model", ""), error.reason)
            asks = {"WWW-Authenticate": "Bearer"} if error.reason is Reason.UNAUTHORIZED else None
            answer = {"error": str(error)}
            return _said(answer, status=error.reason.status, headers=asks)
        except web.HTTPException as error:
            return _said({"error": error.reason}, status=error.status)

    def _admit(self, request: web.Request) -> None:
        own = is_own_host(request.headers.get("Host", ""), self._host)
        if not own or "Origin" in request.headers:
            raise RefusedError(Reason.FORBIDDEN, "this server is not for pages of a browser")
        if self._token is None or request.path.startswith(_HEALTH):
            return
        if not is_same(bearer(request.headers.get("Authorization")), self._token):
            raise RefusedError(
                Reason.UNAUTHORIZED, "this server asks for a token: send Authorization: Bearer ..."
            )

    # --- about the server and its models -------------------------------------------------------

    async def metadata(self, request: web.Request) -> web.Response:
        known = {"name": NAME, "version": heimdall.__version__, "extensions": list(EXTENSIONS)}
        return _said(known)

    async def metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def health(self, request: web.Request) -> web.Response:
        """Triton's clients look at the status, KServe's at the body."""
        return _said({request.match_info["what"]: True})

    async def healthy(self, request: web.Request) -> web.Response:
        return web.Response()

    async def model(self, request: web.Request) -> web.Response:
        return _said(self._service.metadata(*_named(request)))

    async def model_ready(self, request: web.Request) -> web.Response:
        self._service.describe(*_named(request))
        return web.Response()

    async def configuration(self, request: web.Request) -> web.Response:
        return _said(self._service.configuration(*_named(request)))

    async def statistics(self, request: web.Request) -> web.Response:
        return _said({"model_stats": self._service.statistics(*_named(request))})

    async def index(self, request: web.Request) -> web.Response:
        return _said(self._service.index())

    async def load(self, request: web.Request) -> web.Response:
        self._service.refuse_to_load()
        raise AssertionError("refused")

    # --- shared memory ---------------------------------------------------------------------------

    async def regions(self, request: web.Request) -> web.Response:
        own = self._service.regions.of(of_transport(request.transport))
        found = own.registered(request.match_info.get("region", ""))
        return _said([shown(each) for each in found])

    async def register(self, request: web.Request) -> web.Response:
        asked = _parsed(_Region, await self._read(request, self._service.limits.json_bytes))
        own = self._service.regions.of(of_transport(request.transport))
        own.register(request.match_info["region"], asked.key, asked.offset, asked.byte_size)
        return web.Response()

    async def unregister(self, request: web.Request) -> web.Response:
        own = self._service.regions.of(of_transport(request.transport))
        own.unregister(request.match_info.get("region", ""))
        return web.Response()

    async def no_cuda(self, request: web.Request) -> web.Response:
        return _said([])

    # --- inference -------------------------------------------------------------------------------

    async def infer(self, request: web.Request) -> web.Response:
        model, version = _named(request)
        self._service.describe(model, version)
        length = request.headers.get(_LENGTH)
        raw = await self._read(request, self._most(length))
        head, rest = _split(raw, length)
        given = _parsed(_Inference, head)
        asked = self._asked(model, given, rest, of_transport(request.transport))
        found = await self._service.infer(asked)
        return await self._answer(asked, found)

    def _most(self, length: str | None) -> int:
        """How many bytes a request may have whose JSON has this ``length``; None: it is all JSON.
        Refused where the JSON is too long: it is read in one piece, and stops every thread."""
        limits = self._service.limits
        if length is None:
            return min(limits.json_bytes, limits.request_bytes)
        if length.isdecimal() and len(length) <= 12 and int(length) > limits.json_bytes:
            raise _long_json(limits.json_bytes)
        return limits.request_bytes

    async def _read(self, request: web.Request, most: int) -> bytearray:
        limits = self._service.limits
        try:
            with self._door.reading(request):
                return await asyncio.wait_for(bodies.read(request, most), limits.body_s)
        except TimeoutError:
            raise RefusedError(
                Reason.SLOW, f"the request did not come within {limits.body_s:g} s"
            ) from None
        except RefusedError as error:
            if error.reason is Reason.TOO_LARGE and most < limits.request_bytes:
                raise _long_json(most) from None
            raise

    def _asked(self, model: str, given: _Inference, rest: memoryview, peer: Peer | None) -> Asked:
        check_parameters(given.parameters)
        inputs = {}
        for each in given.inputs:
            if each.name in inputs:
                raise wrong(f"input {each.name[:80]!r} is given twice")
            inputs[each.name], rest = self._input(model, each, rest, peer)
        if rest:
            raise wrong(f"{len(rest)} bytes follow the last tensor")
        binary = given.parameters.get("binary_data_output", False)
        return Asked(
            model,
            inputs,
            peer,
            tuple(
                Wanted(
                    each.name,
                    bool(each.parameters.get("binary_data", binary)),
                    place_of(each.parameters),
                )
                for each in given.outputs
            )
            or tuple(Wanted(each.name, bool(binary)) for each in self._service.describe(model)[1]),
            given.id,
            slo_of(given.parameters),
            priority_of(given.parameters),
        )

    def _input(
        self, model: str, given: _Input, rest: memoryview, peer: Peer | None
    ) -> tuple[np.ndarray, memoryview]:
        tensor = self._service.input_tensor(model, given.name, given.datatype, given.shape)
        if (place := place_of(given.parameters)) is not None:
            return tensors.from_bytes(tensor, self._service.regions.of(peer).read(place)), rest
        if "binary_data_size" in given.parameters:
            size = given.parameters["binary_data_size"]
            if type(size) is not int or not 0 <= size <= len(rest):
                raise wrong(f"input {given.name!r}: binary_data_size is not what has come")
            return tensors.from_bytes(tensor, rest[:size]), rest[size:]
        if given.data is None:
            raise wrong(f"input {given.name!r} has neither data nor binary_data_size")
        return tensors.from_list(tensor, given.data), rest

    async def _answer(self, asked: Asked, found: Mapping[str, np.ndarray]) -> web.Response:
        head: dict[str, Any] = {"model_name": asked.model, "model_version": VERSION}
        if asked.id:
            head["id"] = asked.id
        described: list[bytes] = []
        tail = []
        for wanted in asked.outputs:
            array = found[wanted.name]
            kind = tensors.datatype(array.dtype)
            output: dict[str, Any] = {
                "name": wanted.name,
                "datatype": kind,
                "shape": list(array.shape),
            }
            if wanted.place is not None:
                own = self._service.regions.of(asked.peer)
                own.write(wanted.place, tensors.to_bytes(array))
                region, offset, size = wanted.place
                output["parameters"] = {
                    "shared_memory_region": region,
                    "shared_memory_offset": offset,
                    "shared_memory_byte_size": size,
                }
            elif wanted.binary:
                tail.append(tensors.to_bytes(array))
                output["parameters"] = {"binary_data_size": len(tail[-1])}
            said = json.dumps(output).encode()
            if wanted.place is None and not wanted.binary:
                values = b"".join([each async for each in _listed(wanted.name, array)])
                said = said[:-1] + b', "data": [' + values + b"]}"
            described.append(said)
        raw = json.dumps(head).encode()[:-1] + b', "outputs": [' + b", ".join(described) + b"]}"
        if not tail:
            return web.Response(body=raw, content_type="application/json")
        return web.Response(
            body=b"".join([raw, *tail]),
            content_type="application/octet-stream",
            headers={_LENGTH: str(len(raw))},
        )


def _said(
    answer: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """JSON, without a charset in its type: KServe's client reads errors of just that type."""
    raw = json.dumps(answer).encode()
    return web.Response(body=raw, status=status, headers=headers, content_type="application/json")


def _named(request: web.Request) -> tuple[str, str]:
    """The model and its version in an address; each may be left out."""
    return request.match_info.get("model", ""), request.match_info.get("version", "")


async def _listed(name: str, array: np.ndarray) -> AsyncIterator[bytes]:
    """An output's values as JSON, without the list's ends; between slices other threads run."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise wrong(f"output {name!r} has values that JSON has not: ask for binary data")
    values = array.ravel()
    for start in range(0, len(values), _SLICE):
        yield (
            b", " * (start > 0) + json.dumps(values[start : start + _SLICE].tolist()).encode()[1:-1]
        )
        await asyncio.sleep(0)


def _long_json(most: int) -> RefusedError:
    return RefusedError(
        Reason.TOO_LARGE,
        f"JSON may have {most} bytes here, for reading it stops the frames: send tensors as binary "
        f"data ({_LENGTH}, binary_data_size), by gRPC, or in shared memory",
    )


def _split(raw: bytearray, length: str | None) -> tuple[bytearray, memoryview]:
    """The JSON, and the raw tensors behind it."""
    if length is None:
        return raw, memoryview(b"")
    if not length.isdecimal() or len(length) > 12 or int(length) > len(raw):
        raise wrong(f"{_LENGTH} {length[:40]!r} is not the length of the JSON")
    return raw[: int(length)], memoryview(raw)[int(length) :]


def _parsed(kind: type[_BodyT], raw: bytes | bytearray) -> _BodyT:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise wrong(f"{where[:80]}: {first['msg'][:200]}") from error
