"""What the server does, whichever way it is asked: REST and gRPC only translate."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from heimdall.errors import HeimdallError, ModelError
from heimdall.graph.graph import Tensor
from heimdall.serve import tensors
from heimdall.serve.asked import Asked
from heimdall.serve.declared import FREE
from heimdall.serve.limits import Limits
from heimdall.serve.line import Line
from heimdall.serve.models import Models
from heimdall.serve.refusals import Reason, RefusedError, wrong
from heimdall.serve.shared_memory import Regions

log = logging.getLogger(__name__)

NAME = "heimdall"
PLATFORM = "onnx_heimdall"
EXTENSIONS = (
    "binary_tensor_data",
    "parameters",
    "statistics",
    "model_repository",
    "system_shared_memory",
)
VERSION = "1"  # of every model: a server's models are those that it was started with


# Latencies are counted up to each of these, and beyond the last.
LATENCIES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


@dataclass
class Count:
    """What became of a model's requests; ``ns``: of all that succeeded, from first to last;
    ``spread``: how many of them took up to which of ``LATENCIES_S``."""

    succeeded: int = 0
    failed: int = 0
    ns: int = 0
    last_ms: int = 0  # since 1970
    spread: list[int] = field(default_factory=lambda: [0] * (len(LATENCIES_S) + 1))

    def add(self, took_ns: int) -> None:
        """One has succeeded."""
        self.succeeded += 1
        self.ns += took_ns
        self.last_ms = time.time_ns() // 1_000_000
        self.spread[bisect_left(LATENCIES_S, took_ns / 1e9)] += 1


class Service:
    """The models, their line and the shared memory. For one event loop."""

    def __init__(self, models: Models, limits: Limits, *, local: bool) -> None:
        """``local``: all clients are on this machine."""
        self._models, self.limits = models, limits
        self.regions = Regions(limits, local=local)
        self.line = Line(limits)
        self.counts = {name: Count() for name in models.names()}
        self.refusals = Counter[tuple[str, Reason]]()  # by model; "": of none that is served

    @property
    def largest(self) -> int:
        """How many bytes the inputs of a request may have, of whichever model needs most."""
        inputs = [self._models.describe(name)[0] for name in self.names()]
        if any(tensor.bytes < 0 for each in inputs for tensor in each):  # a batch of any size
            return self.limits.request_bytes
        return max((sum(tensor.bytes for tensor in each) for each in inputs), default=0)

    def count_refusal(self, model: str, reason: Reason) -> None:
        """A request is refused. What a client calls a model that is none is not kept: such names
        have no end."""
        self.refusals[model if model in self.counts else "", reason] += 1

    def names(self) -> Sequence[str]:
        return self._models.names()

    def describe(self, name: str, version: str = "") -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        """Inputs and outputs. Refused for what is not served: a request names a model, and never
        says where one lies."""
        if name not in self._models.names():
            served = ", ".join(self._models.names())
            raise RefusedError(Reason.UNKNOWN, f"no model {name[:80]!r} here; there are: {served}")
        if version not in ("", VERSION):
            raise RefusedError(Reason.UNKNOWN, f"{name} has version {VERSION} only")
        return self._models.describe(name)

    # --- what is told of the models ------------------------------------------------------------

    def metadata(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's metadata: its tensors, by the protocol's names."""
        inputs, outputs = self.describe(name, version)
        return {
            "name": name,
            "versions": [VERSION],
            "platform": PLATFORM,
            "inputs": [_shown(tensor) for tensor in inputs],
            "outputs": [_shown(tensor) for tensor in outputs],
        }

    def configuration(self, name: str, version: str = "") -> dict[str, Any]:
        """A model's metadata as Triton's tools read it."""
        inputs, outputs = self.describe(name, version)
        return {
            "name": name,
            "platform": PLATFORM,
            "max_batch_size": 0,
            "input": [_configured(tensor) for tensor in inputs],
            "output": [_configured(tensor) for tensor in outputs],
        }

    def statistics(self, name: str = "", version: str = "") -> list[dict[str, Any]]:
        """For one model, or all: how many inferences, and how long they took."""
        if name:
            self.describe(name, version)
        return [self._statistics(each) for each in ([name] if name else self.names())]

    def _statistics(self, name: str) -> dict[str, Any]:
        count = self.counts[name]
        return {
            "name": name,
            "version": VERSION,
            "last_inference": count.last_ms,
            "inference_count": count.succeeded,
            "execution_count": count.succeeded,
            "inference_stats": {
                "success": {"count": count.succeeded, "ns": count.ns},
                "fail": {"count": count.failed, "ns": 0},
            },
        }

    def index(self) -> list[dict[str, str]]:
        """All models, as a repository lists them."""
        return [{"name": name, "version": VERSION, "state": "READY"} for name in self.names()]

    def refuse_to_load(self) -> None:
        """Whatever asks for another model, or for fewer."""
        raise RefusedError(
            Reason.FORBIDDEN, "the models are those that the server was started with (--model)"
        )

    # --- inference -------------------------------------------------------------------------------

    def check(self, asked: Asked) -> None:
        """Refuse an inference that cannot be carried out; its inputs have been checked singly."""
        inputs, outputs = self.describe(asked.model)
        missing = [tensor.name for tensor in inputs if tensor.name not in asked.inputs]
        if missing:
            raise wrong(f"{asked.model} also needs the input {missing[0]!r}")
        batches = {
            len(asked.inputs[tensor.name]) for tensor in inputs if tensor.shape[:1] == (FREE,)
        }
        if len(batches) > 1:
            raise wrong(
                f"{asked.model}: its inputs have batches of {sorted(batches)}: one is needed"
            )
        rows = next(iter(batches), 1)
        sizes = {each.name: each.bytes * (-rows if each.bytes < 0 else 1) for each in outputs}
        for each in asked.outputs:
            if each.name not in sizes:
                known = ", ".join(sizes)
                raise wrong(f"{asked.model} has no output {each.name[:80]!r}; it has: {known}")
            if each.place is not None:
                self.regions.of(asked.peer).check(each.place, sizes[each.name])

    async def infer(self, asked: Asked) -> dict[str, np.ndarray]:
        """The outputs that are asked for, in that order.

        Refused when the line is full or the inference fails. Cancelled, it leaves the line, and an
        inference that has not begun is not run."""
        self.check(asked)
        count, began_ns = self.counts[asked.model], time.perf_counter_ns()
        client = asked.peer.client_key if asked.peer is not None else None
        async with self.line.turn(asked.priority, client):
            try:
                found = await asyncio.wrap_future(self._submit(asked))
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                raise RefusedError(Reason.BUSY, "the server is closing") from None
            except Exception as error:
                count.failed += 1
                raise _failure(asked.model, error) from error
        count.add(time.perf_counter_ns() - began_ns)
        names = [each.name for each in asked.outputs] or list(found)
        return {name: found[name] for name in names}

    def _submit(self, asked: Asked) -> Any:
        return self._models.submit(
            asked.model, asked.inputs, slo_ms=asked.slo_ms, priority=str(asked.priority)
        )

    def input_tensor(self, model: str, name: object, given_type: object, shape: object) -> Tensor:
        """The model's input of that name, in the shape given. Refused where it has none, or another
        type or shape."""
        inputs, _ = self.describe(model)
        for tensor in inputs:
            if tensor.name == name:
                tensors.check(tensor, given_type, shape)
                given: Any = shape  # it is a list of numbers, then
                return replace(tensor, shape=tuple(given))
        known = ", ".join(tensor.name for tensor in inputs)
        raise wrong(f"{model} has no input {str(name)[:80]!r}; it has: {known}")


def _failure(model: str, error: Exception) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, ModelError):
        return wrong(str(error))
    if isinstance(error, HeimdallError):
        return RefusedError(Reason.BUSY, str(error))
    log.error("%s: an inference failed", model, exc_info=error)
    return RefusedError(Reason.FAILED, f"{model}: the inference failed ({type(error).__name__})")


def _shown(tensor: Tensor) -> dict[str, Any]:
    kind = tensors.datatype(tensor.dtype)
    return {"name": tensor.name, "datatype": kind, "shape": list(tensor.shape)}


def _configured(tensor: Tensor) -> dict[str, Any]:
    kind = f"TYPE_{tensors.datatype(tensor.dtype)}"
    return {"name": tensor.name, "data_type": kind, "dims": list(tensor.shape)}
