"""The protocol by gRPC, with the classes that come with the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import numpy as np
from tritonclient.grpc import service_pb2 as wire
from tritonclient.grpc import service_pb2_grpc

import heimdall
from heimdall.serve import tensors
from heimdall.serve.asked import Asked, Wanted, check_parameters, place_of, priority_of, slo_of
from heimdall.serve.peers import Peer, of_call
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


class Calls(service_pb2_grpc.GRPCInferenceServiceServicer):  # type: ignore[misc]
    """One method for each call of the protocol, by the protocol's names; those of Triton's that
    mean nothing here (logging, tracing) answer UNIMPLEMENTED, as the generated class has it.
    ``place``: where the server listens. What is refused is told by the gate before it."""

    # ruff: noqa: N802

    def __init__(self, service: Service, place: tuple[str, int]) -> None:
        self._service, self._place = service, place

    def _peer(self, context: grpc.aio.ServicerContext) -> Peer | None:
        return of_call(context.peer(), self._place)

    # --- about the server and its models -------------------------------------------------------

    async def ServerLive(self, request: Any, context: Any) -> Any:
        return wire.ServerLiveResponse(live=True)

    async def ServerReady(self, request: Any, context: Any) -> Any:
        return wire.ServerReadyResponse(ready=True)

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        return wire.ServerMetadataResponse(
            name=NAME, version=heimdall.__version__, extensions=EXTENSIONS
        )

    async def ModelReady(self, request: Any, context: Any) -> Any:
        try:
            self._service.describe(request.name, request.version)
        except RefusedError:
            return wire.ModelReadyResponse(ready=False)
        return wire.ModelReadyResponse(ready=True)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        return wire.ModelMetadataResponse(**self._service.metadata(request.name, request.version))

    async def ModelConfig(self, request: Any, context: Any) -> Any:
        found = self._service.configuration(request.name, request.version)
        return wire.ModelConfigResponse(config=found)

    async def ModelStatistics(self, request: Any, context: Any) -> Any:
        found = self._service.statistics(request.name, request.version)
        return wire.ModelStatisticsResponse(model_stats=found)

    async def RepositoryIndex(self, request: Any, context: Any) -> Any:
        return wire.RepositoryIndexResponse(models=self._service.index())

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        self._service.refuse_to_load()

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        self._service.refuse_to_load()

    # --- shared memory ---------------------------------------------------------------------------

    async def SystemSharedMemoryStatus(self, request: Any, context: Any) -> Any:
        found = self._service.regions.of(self._peer(context)).registered(request.name)
        return wire.SystemSharedMemoryStatusResponse(
            regions={each["name"]: each for each in map(shown, found)}
        )

    async def SystemSharedMemoryRegister(self, request: Any, context: Any) -> Any:
        asked = request.name, request.key, request.offset, request.byte_size
        self._service.regions.of(self._peer(context)).register(*asked)
        return wire.SystemSharedMemoryRegisterResponse()

    async def SystemSharedMemoryUnregister(self, request: Any, context: Any) -> Any:
        self._service.regions.of(self._peer(context)).unregister(request.name)
        return wire.SystemSharedMemoryUnregisterResponse()

    async def CudaSharedMemoryStatus(self, request: Any, context: Any) -> Any:
        return wire.CudaSharedMemoryStatusResponse()

    async def CudaSharedMemoryUnregister(self, request: Any, context: Any) -> Any:
        return wire.CudaSharedMemoryUnregisterResponse()

    # --- inference -------------------------------------------------------------------------------

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        return await self._infer(request, self._peer(context))

    async def ModelStreamInfer(
        self, requests: Any, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Any]:
        """Requests of one stream are answered one after another, each by itself."""
        peer = self._peer(context)
        async for request in requests:
            try:
                found = await self._infer(request, peer)
                answer = wire.ModelStreamInferResponse(infer_response=found)
            except RefusedError as error:
                self._service.count_refusal(request.model_name, error.reason)
                answer = wire.ModelStreamInferResponse(error_message=str(error))
                answer.infer_response.id = request.id
            yield answer

    async def _infer(self, request: Any, peer: Peer | None) -> Any:
        asked = self._asked(request, peer)
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
            self._service.regions.of(peer).write(wanted.place, raw)
            output.parameters["shared_memory_region"].string_param = wanted.place.region
            output.parameters["shared_memory_offset"].int64_param = wanted.place.offset
            output.parameters["shared_memory_byte_size"].int64_param = wanted.place.size
        return answer

    def _asked(self, request: Any, peer: Peer | None) -> Asked:
        model = request.model_name
        self._service.describe(model, request.model_version)
        parameters = _plain(request.parameters)
        check_parameters(parameters)
        if len(request.raw_input_contents) > len(request.inputs):
            raise wrong(f"{len(request.raw_input_contents)} raw tensors, of fewer inputs")
        raw = list(request.raw_input_contents)
        inputs: dict[str, np.ndarray] = {}
        for each in request.inputs:
            if each.name in inputs:
                raise wrong(f"input {each.name[:80]!r} is given twice")
            inputs[each.name] = self._input(model, each, raw, peer)
        if raw:
            raise wrong(f"{len(raw)} raw tensors are of no input")
        outputs = [
            Wanted(each.name, place=place_of(_plain(each.parameters))) for each in request.outputs
        ]
        return Asked(
            model,
            inputs,
            peer,
            tuple(outputs) or tuple(Wanted(each.name) for each in self._service.describe(model)[1]),
            request.id,
            slo_of(parameters),
            priority_of(parameters),
        )

    def _input(self, model: str, given: Any, raw: list[bytes], peer: Peer | None) -> np.ndarray:
        """The tensor: in shared memory, the next of the ``raw`` ones, or in typed contents."""
        tensor = self._service.input_tensor(model, given.name, given.datatype, [*given.shape])
        if (place := place_of(_plain(given.parameters))) is not None:
            return tensors.from_bytes(tensor, self._service.regions.of(peer).read(place))
        if raw:
            return tensors.from_bytes(tensor, raw.pop(0))
        field = _CONTENTS.get(given.datatype)
        if field is None:
            raise wrong(f"input {tensor.name!r}: {given.datatype} is sent in raw_input_contents")
        values = getattr(given.contents, field)
        if len(values) > (most := self._service.limits.json_bytes // 4):
            raise wrong(
                f"input {tensor.name!r}: {len(values)} values one by one, of {most} at most, for "
                "reading them stops the frames: send raw_input_contents"
            )
        return tensors.from_list(tensor, [*values])


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as values: each has one, in the field of its type."""
    found = {}
    for name, parameter in parameters.items():
        field = parameter.WhichOneof("parameter_choice")
        found[name] = getattr(parameter, field) if field else None
    return found
