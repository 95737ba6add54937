"""The protocol by REST: JSON, or JSON followed by raw tensors (Triton's binary extension)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

import heimdall
from heimdall.render.preview.address import is_own_host
from heimdall.serve import tensors
from heimdall.serve.asked import Asked, Wanted, check_parameters, place_of, priority_of, slo_of
from heimdall.serve.refusals import Reason, RefusedError, wrong
from heimdall.serve.service import EXTENSIONS, NAME, VERSION, Service
from heimdall.serve.shared_memory import shown

_LENGTH = "Inference-Header-Content-Length"
_MOST_TENSORS = 64  # that a request may list
_DEEPEST = 64  # lists within lists: no tensor has as many axes
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


def application(service: Service, host: str) -> web.Application:
    """Every address of the protocol. ``host``: where the server listens."""
    rest = _Rest(service, host)
    made = web.Application(middlewares=[rest.guard], client_max_size=service.limits.request_bytes)
    get, post = made.router.add_get, made.router.add_post
    get("/v2", rest.metadata)
    get("/v2/health/live", rest.healthy)
    get("/v2/health/ready", rest.healthy)
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
    def __init__(self, service: Service, host: str) -> None:
        self._service, self._host = service, host

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every refusal is JSON with its reason; pages of a browser's are not served at all."""
        try:
            own = is_own_host(request.headers.get("Host", ""), self._host)
            if not own or "Origin" in request.headers:
                raise RefusedError(Reason.FORBIDDEN, "this server is not for pages of a browser")
            return await handler(request)
        except RefusedError as error:
            return web.json_response({"error": str(error)}, status=error.reason.status)
        except web.HTTPRequestEntityTooLarge:
            most = self._service.limits.request_bytes
            text = f"a request may have {most} bytes: use shared memory for more"
            return web.json_response({"error": text}, status=Reason.TOO_LARGE.status)
        except web.HTTPException as error:
            return web.json_response({"error": error.reason}, status=error.status)

    # --- about the server and its models -------------------------------------------------------

    async def metadata(self, request: web.Request) -> web.Response:
        known = {"name": NAME, "version": heimdall.__version__, "extensions": list(EXTENSIONS)}
        return web.json_response(known)

    async def healthy(self, request: web.Request) -> web.Response:
        return web.Response()

    async def model(self, request: web.Request) -> web.Response:
        return web.json_response(self._service.metadata(*_named(request)))

    async def model_ready(self, request: web.Request) -> web.Response:
        self._service.describe(*_named(request))
        return web.Response()

    async def configuration(self, request: web.Request) -> web.Response:
        return web.json_response(self._service.configuration(*_named(request)))

    async def statistics(self, request: web.Request) -> web.Response:
        return web.json_response({"model_stats": self._service.statistics(*_named(request))})

    async def index(self, request: web.Request) -> web.Response:
        return web.json_response(self._service.index())

    async def load(self, request: web.Request) -> web.Response:
        self._service.refuse_to_load()
        raise AssertionError("refused")

    # --- shared memory ---------------------------------------------------------------------------

    async def regions(self, request: web.Request) -> web.Response:
        found = self._service.regions.registered(request.match_info.get("region", ""))
        return web.json_response([shown(each) for each in found])

    async def register(self, request: web.Request) -> web.Response:
        asked = _parsed(_Region, await self._read(request))
        name = request.match_info["region"]
        self._service.regions.register(name, asked.key, asked.offset, asked.byte_size)
        return web.Response()

    async def unregister(self, request: web.Request) -> web.Response:
        self._service.regions.unregister(request.match_info.get("region", ""))
        return web.Response()

    async def no_cuda(self, request: web.Request) -> web.Response:
        return web.json_response([])

    # --- inference -------------------------------------------------------------------------------

    async def infer(self, request: web.Request) -> web.Response:
        model, version = _named(request)
        self._service.describe(model, version)
        raw = await self._read(request)
        head, rest = _split(raw, request.headers.get(_LENGTH))
        given = _parsed(_Inference, head)
        asked = self._asked(model, given, rest)
        found = await self._service.infer(asked)
        return self._answer(asked, found)

    async def _read(self, request: web.Request) -> bytes:
        limits = self._service.limits
        try:
            return await asyncio.wait_for(request.read(), limits.body_s)
        except asyncio.TimeoutError:
            raise RefusedError(
                Reason.SLOW, f"the request did not come within {limits.body_s:g} s"
            ) from None

    def _asked(self, model: str, given: _Inference, rest: memoryview) -> Asked:
        check_parameters(given.parameters)
        inputs = {}
        for each in given.inputs:
            if each.name in inputs:
                raise wrong(f"input {each.name[:80]!r} is given twice")
            inputs[each.name], rest = self._input(model, each, rest)
        if rest:
            raise wrong(f"{len(rest)} bytes follow the last tensor")
        binary = given.parameters.get("binary_data_output", False)
        return Asked(
            model,
            inputs,
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

    def _input(self, model: str, given: _Input, rest: memoryview) -> tuple[np.ndarray, memoryview]:
        tensor = self._service.input_tensor(model, given.name, given.datatype, given.shape)
        if (place := place_of(given.parameters)) is not None:
            return tensors.from_bytes(tensor, self._service.regions.read(place)), rest
        if "binary_data_size" in given.parameters:
            size = given.parameters["binary_data_size"]
            if type(size) is not int or not 0 <= size <= len(rest):
                raise wrong(f"input {given.name!r}: binary_data_size is not what has come")
            return tensors.from_bytes(tensor, rest[:size]), rest[size:]
        if given.data is None:
            raise wrong(f"input {given.name!r} has neither data nor binary_data_size")
        return tensors.from_list(tensor, given.data), rest

    def _answer(self, asked: Asked, found: Mapping[str, np.ndarray]) -> web.Response:
        head: dict[str, Any] = {"model_name": asked.model, "model_version": VERSION}
        if asked.id:
            head["id"] = asked.id
        described: list[dict[str, Any]] = []
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
                self._service.regions.write(wanted.place, tensors.to_bytes(array))
                region, offset, size = wanted.place
                output["parameters"] = {
                    "shared_memory_region": region,
                    "shared_memory_offset": offset,
                    "shared_memory_byte_size": size,
                }
            elif wanted.binary:
                tail.append(tensors.to_bytes(array))
                output["parameters"] = {"binary_data_size": len(tail[-1])}
            else:
                output["data"] = _listed(wanted.name, array)
            described.append(output)
        head["outputs"] = described
        raw = json.dumps(head, allow_nan=False).encode()
        if not tail:
            return web.Response(body=raw, content_type="application/json")
        return web.Response(
            body=b"".join([raw, *tail]),
            content_type="application/octet-stream",
            headers={_LENGTH: str(len(raw))},
        )


def _named(request: web.Request) -> tuple[str, str]:
    """The model and its version in an address; each may be left out."""
    return request.match_info.get("model", ""), request.match_info.get("version", "")


def _listed(name: str, array: np.ndarray) -> list[Any]:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise RefusedError(
            Reason.FAILED, f"output {name!r} has values that JSON has not: ask for binary data"
        )
    return array.ravel().tolist()


def _split(raw: bytes, length: str | None) -> tuple[bytes, memoryview]:
    """The JSON, and the raw tensors behind it."""
    if length is None:
        return raw, memoryview(b"")
    if not length.isdecimal() or len(length) > 12 or int(length) > len(raw):
        raise wrong(f"{_LENGTH} {length[:40]!r} is not the length of the JSON")
    return raw[: int(length)], memoryview(raw)[int(length) :]


def _parsed(kind: type[_BodyT], raw: bytes) -> _BodyT:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise wrong(f"{where[:80]}: {first['msg'][:200]}") from error
