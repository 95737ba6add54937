"""The protocol by gRPC, with the classes that come with the official client."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2 as wire
from tritonclient.grpc import service_pb2_grpc

import heimdall
from heimdall.serve import tensors
from heimdall.serve.asked import Asked, Wanted, check_parameters, place_of, priority_of, slo_of
from heimdall.serve.refusals import RefusedError, wrong
from heimdall.serve.service import EXTENSIONS, NAME, VERSION, Service
from heimdall.serve.shared_memory import shown

# Where a tensor's values are that are not raw, by its datatype.
_CONTENTS = {
    "BOOL": "bool_contents",
    **{f"INT{bits}": "int_contents" for bits in (8, 16, 32)},
    "INT64": "int64_contents",
    **{f"UINT{bits}": "uint_contents" for bits in (8, 16, 32)},
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
}
Answer = Callable[["Calls", Any], Awaitable[Any]]


def _told(answer: Answer) -> Callable[[Calls, Any, grpc.aio.ServicerContext], Awaitable[Any]]:
    """Answer a call, or abort it with the reason of a refusal."""

    @functools.wraps(answer)
    async def call(calls: Calls, request: Any, context: grpc.aio.ServicerContext) -> Any:
        try:
            return await answer(calls, request)
        except RefusedError as error:
            await context.abort(grpc.StatusCode[error.reason.code], str(error))

    return call


class Calls(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """One method for each call of the protocol, by the protocol's names; those of Triton's that
    mean nothing here (logging, tracing) answer UNIMPLEMENTED, as the generated class has it."""

    # ruff: noqa: N802

    def __init__(self, service: Service) -> None:
        self._service = service

    # --- about the server and its models -------------------------------------------------------

    @_told
    async def ServerLive(self, request: Any) -> Any:
        return wire.ServerLiveResponse(live=True)

    @_told
    async def ServerReady(self, request: Any) -> Any:
        return wire.ServerReadyResponse(ready=True)

    @_told
    async def ServerMetadata(self, request: Any) -> Any:
        return wire.ServerMetadataResponse(
            name=NAME, version=heimdall.__version__, extensions=EXTENSIONS
        )

    @_told
    async def ModelReady(self, request: Any) -> Any:
        try:
            self._service.describe(request.name, request.version)
        except RefusedError:
            return wire.ModelReadyResponse(ready=False)
        return wire.ModelReadyResponse(ready=True)

    @_told
    async def ModelMetadata(self, request: Any) -> Any:
        return wire.ModelMetadataResponse(**self._service.metadata(request.name, request.version))

    @_told
    async def ModelConfig(self, request: Any) -> Any:
        found = self._service.configuration(request.name, request.version)
        return wire.ModelConfigResponse(config=found)

    @_told
    async def ModelStatistics(self, request: Any) -> Any:
        found = self._service.statistics(request.name, request.version)
        return wire.ModelStatisticsResponse(model_stats=found)

    @_told
    async def RepositoryIndex(self, request: Any) -> Any:
        return wire.RepositoryIndexResponse(models=self._service.index())

    @_told
    async def RepositoryModelLoad(self, request: Any) -> Any:
        self._service.refuse_to_load()

    @_told
    async def RepositoryModelUnload(self, request: Any) -> Any:
        self._service.refuse_to_load()

    # --- shared memory ---------------------------------------------------------------------------

    @_told
    async def SystemSharedMemoryStatus(self, request: Any) -> Any:
        found = self._service.regions.registered(request.name)
        return wire.SystemSharedMemoryStatusResponse(
            regions={each["name"]: each for each in map(shown, found)}
        )

    @_told
    async def SystemSharedMemoryRegister(self, request: Any) -> Any:
        asked = request.name, request.key, request.offset, request.byte_size
        self._service.regions.register(*asked)
        return wire.SystemSharedMemoryRegisterResponse()

    @_told
    async def SystemSharedMemoryUnregister(self, request: Any) -> Any:
        self._service.regions.unregister(request.name)
        return wire.SystemSharedMemoryUnregisterResponse()

    @_told
    async def CudaSharedMemoryStatus(self, request: Any) -> Any:
        return wire.CudaSharedMemoryStatusResponse()

    @_told
    async def CudaSharedMemoryUnregister(self, request: Any) -> Any:
        return wire.CudaSharedMemoryUnregisterResponse()

    # --- inference -------------------------------------------------------------------------------

    @_told
    async def ModelInfer(self, request: Any) -> Any:
        return await self._infer(request)

    async def ModelStreamInfer(
        self, requests: Any, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        """Requests of one stream are answered one after another, each by itself."""
        async for request in requests:
            try:
                answer = wire.ModelStreamInferResponse(infer_response=await self._infer(request))
            except RefusedError as error:
                answer = wire.ModelStreamInferResponse(error_message=str(error))
                answer.infer_response.id = request.id
            yield answer

    async def _infer(self, request: Any) -> Any:
        asked = self._asked(request)
        found = await self._service.infer(asked)
        answer = wire.ModelInferResponse(model_name=asked.model, model_version=VERSION, id=asked.id)
        for wanted in asked.outputs:
            array = found[wanted.name]
            kind = tensors.datatype(array.dtype)
            output = answer.outputs.add(name=wanted.name, datatype=kind, shape=array.shape)
            raw = tensors.to_bytes(array)
            if wanted.place is None:
                answer.raw_output_contents.append(raw)
                continue
            self._service.regions.write(wanted.place, raw)
            output.parameters["shared_memory_region"].string_param = wanted.place.region
            output.parameters["shared_memory_offset"].int64_param = wanted.place.offset
            output.parameters["shared_memory_byte_size"].int64_param = wanted.place.size
        return answer

    def _asked(self, request: Any) -> Asked:
        model = request.model_name
        self._service.describe(model, request.model_version)
        parameters = _plain(request.parameters)
        check_parameters(parameters)
        raw = list(request.raw_input_contents)
        inputs: dict[str, np.ndarray] = {}
        for each in request.inputs:
            if each.name in inputs:
                raise wrong(f"input {each.name[:80]!r} is given twice")
            inputs[each.name] = self._input(model, each, raw)
        if raw:
            raise wrong(f"{len(raw)} raw tensors are of no input")
        outputs = [
            Wanted(each.name, place=place_of(_plain(each.parameters))) for each in request.outputs
        ]
        return Asked(
            model,
            inputs,
            tuple(outputs) or tuple(Wanted(each.name) for each in self._service.describe(model)[1]),
            request.id,
            slo_of(parameters),
            priority_of(parameters),
        )

    def _input(self, model: str, given: Any, raw: list[bytes]) -> np.ndarray:
        """The tensor: in shared memory, the next of the ``raw`` ones, or in typed contents."""
        tensor = self._service.input_tensor(model, given.name, given.datatype, [*given.shape])
        if (place := place_of(_plain(given.parameters))) is not None:
            return tensors.from_bytes(tensor, self._service.regions.read(place))
        if raw:
            return tensors.from_bytes(tensor, raw.pop(0))
        field = _CONTENTS.get(given.datatype)
        if field is None:
            raise wrong(f"input {tensor.name!r}: {given.datatype} is sent in raw_input_contents")
        return tensors.from_list(tensor, [*getattr(given.contents, field)])


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as values: each has one, in the field of its type."""
    found = {}
    for name, parameter in parameters.items():
        field = parameter.WhichOneof("parameter_choice")
        found[name] = getattr(parameter, field) if field else None
    return found
