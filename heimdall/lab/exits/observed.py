"""What a network makes of pictures, by onnxruntime: what heads are taught with, and how often those
say the same as the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from heimdall.errors import ConfigError
from heimdall.graph.graph import graph_from_model
from heimdall.lab.exits.features import Report, opened
from heimdall.lab.exits.source import Source
from heimdall.lab.exits.unlabelled import Views
from heimdall.models.walk import Tensors

MOST_BYTES = 6 << 30  # of what is kept
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Observed:
    """By name, tensors on the way and outputs of all samples, (n, ...) float16."""

    tensors: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.outputs.values())))


def observe(
    source: Source, tensors: Sequence[str], views: Views, report: Report, threads: int = 1
) -> Observed:
    """The outputs, and these ``tensors``, of all that comes of the pictures. Raises ConfigError
    where nothing comes of them, or more than fits into memory."""
    model = source.graph.model
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors)
    names = [*tensors, *(each.name for each in source.graph.outputs)]
    session, found = opened(model, threads), dict[str, list[np.ndarray]]()
    for index in range(len(views)):
        for task in source.prepare(views.read(index)):
            for name, array in zip(names, session.run(names, dict(task.inputs)), strict=True):
                kept = np.clip(array[0], -_LARGEST, _LARGEST).astype(np.float16)
                found.setdefault(name, []).append(kept)
        _check_size(found, index + 1, len(views))
        report(index + 1, len(views))
    if not found:
        raise ConfigError(
            f"nothing in the pictures is for {source.graph.name}: an earlier stage found nothing"
        )
    stacked = {name: np.stack(found.pop(name)) for name in names}
    return Observed({name: stacked.pop(name) for name in tensors}, stacked)


def _check_size(found: Mapping[str, list[np.ndarray]], done: int, total: int) -> None:
    size = sum(each[0].nbytes * len(each) for each in found.values())
    if size * total / done > MOST_BYTES and done >= min(total, 10):
        raise ConfigError(
            f"what the network makes of {total} pictures takes {size * total / done / 1e9:.0f} GB: "
            "learn from fewer (--pictures, --copies), smaller ones (--size) or at fewer places "
            "(--exits)"
        )


def agreements(
    model: onnx.ModelProto, source: Source, views: Views, report: Report, threads: int = 1
) -> tuple[dict[str, float], int]:
    """By the first output of each exit, how much it says what the whole network says, on average
    over the samples that tell something; and how many these are. Raises ConfigError where none
    does."""
    exits = graph_from_model(model).exits
    whole, names = exits[-1].outputs, [name for each in exits for name in each.outputs]
    session = opened(model, threads)
    found: dict[str, list[float]] = {each.outputs[0]: [] for each in exits}
    told = 0
    for index in range(len(views)):
        for task in source.prepare(views.read(index)):
            made = dict(zip(names, session.run(names, dict(task.inputs)), strict=True))
            truth: Tensors = {name: made[name] for name in whole}
            told += source.alike(truth, truth, task.context) is not None
            for each in exits:
                answer = {name: made[own] for name, own in zip(whole, each.outputs, strict=True)}
                alike = source.alike(answer, truth, task.context)
                if alike is not None:
                    found[each.outputs[0]].append(alike)
        report(index + 1, len(views))
    if not told:
        raise ConfigError(
            f"{source.graph.name} finds nothing in the test pictures: give others by --test"
        )
    return {name: float(np.mean(each)) for name, each in found.items()}, told
