"""Requests by gRPC: protobuf messages that are damaged, in fields and in bytes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from tritonclient.grpc import service_pb2 as wire

from heimdall.serve import Limits, Server
from tests.fuzz.damage import in_bytes, in_json, pick
from tests.fuzz.target import FindingError, Target
from tests.serve.networks import EngineModels

PATIENCE_S = 15.0
_CODE = grpc.StatusCode
# INTERNAL is what grpcio itself says of bytes that are no such message.
REFUSALS: tuple[Any, ...] = (_CODE.INVALID_ARGUMENT, _CODE.NOT_FOUND, _CODE.INTERNAL)
REFUSALS += (_CODE.PERMISSION_DENIED, _CODE.UNIMPLEMENTED, _CODE.RESOURCE_EXHAUSTED)
REFUSALS += (_CODE.ALREADY_EXISTS, _CODE.OUT_OF_RANGE, _CODE.UNAUTHENTICATED)
_SERVICE = "/inference.GRPCInferenceService/"


class Fuzzed(Target):
    """A server on this machine, which must answer each request, and the next one."""

    suffix = ".bin"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._models = EngineModels()
        limits = Limits(request_bytes=1 << 20)
        self._server = Server(self._models, http_port=None, grpc_port=0, limits=limits)
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self._server.grpc_port}")

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        name = pick(list(_requests()), random)
        message = _requests()[name]
        if random.random() < 0.4:
            return name, in_bytes(message.SerializeToString(), random)
        raw = message.SerializeToString()
        for _ in range(20):  # most odd values do not fit their fields
            text = in_json(MessageToDict(message), random)
            try:
                raw = _parsed(type(message), text)
                break
            except (ParseError, ValueError, TypeError, RecursionError, SystemError):
                continue
        return name, raw

    def run(self, name: str, raw: bytes) -> str:
        method = name.partition("-")[0]
        self.stage = method
        code, said = self._asked(method, raw)
        if code not in (None, *REFUSALS) or "Unexpected" in said:
            raise FindingError(f"{code}: {said}")
        if code is _CODE.INTERNAL and "deserial" not in said.lower():
            raise FindingError(f"{code}: {said}")
        self.stage = "answer the next one"
        after, why = self._asked("ModelInfer", _requests()["ModelInfer-raw"].SerializeToString())
        if after is not None:
            raise FindingError(f"{after}: {why}")
        return "answered" if code is None else f"refused as {code.name}"

    def _asked(self, method: str, raw: bytes) -> tuple[Any, str]:
        """The status and what is said of it; None for an answer."""
        try:
            self._channel.unary_unary(_SERVICE + method)(raw, timeout=PATIENCE_S)
        except grpc.RpcError as error:
            return error.code(), str(error.details())
        return None, ""

    def close(self) -> None:
        self._channel.close()
        self._server.close()
        self._models.close()


def _parsed(kind: Any, text: bytes) -> bytes:
    found: bytes = ParseDict(
        json.loads(text), kind(), ignore_unknown_fields=True
    ).SerializeToString()
    return found


@cache
def _requests() -> dict[str, Any]:
    """By the name of the method, and a word."""
    tensor = wire.ModelInferRequest.InferInputTensor
    raw = wire.ModelInferRequest(
        model_name="twice",
        id="7",
        inputs=[tensor(name="x", datatype="FP32", shape=[1, 4])],
        raw_input_contents=[np.arange(4, dtype=np.float32).tobytes()],
        outputs=[wire.ModelInferRequest.InferRequestedOutputTensor(name="z")],
    )
    raw.parameters["priority"].int64_param = 1
    raw.parameters["slo_ms"].string_param = "500"
    listed = wire.ModelInferRequest(
        model_name="plus",
        inputs=[tensor(name=n, datatype="INT64", shape=[2, 3]) for n in "ab"],
    )
    for each in listed.inputs:
        each.contents.int64_contents.extend(range(6))
    shared = wire.ModelInferRequest(
        model_name="twice", inputs=[tensor(name="x", datatype="FP32", shape=[1, 4])]
    )
    shared.inputs[0].parameters["shared_memory_region"].string_param = "r"
    shared.inputs[0].parameters["shared_memory_byte_size"].int64_param = 16
    region = wire.SystemSharedMemoryRegisterRequest(name="r", key="/heimdall-fuzz", byte_size=64)
    return {
        "ModelInfer-raw": raw,
        "ModelInfer-listed": listed,
        "ModelInfer-shared": shared,
        "ModelMetadata": wire.ModelMetadataRequest(name="twice", version="1"),
        "ModelConfig": wire.ModelConfigRequest(name="twice"),
        "ModelStatistics": wire.ModelStatisticsRequest(name="twice"),
        "SystemSharedMemoryRegister": region,
        "SystemSharedMemoryStatus": wire.SystemSharedMemoryStatusRequest(name="r"),
        "RepositoryModelLoad": wire.RepositoryModelLoadRequest(model_name="twice"),
    }
