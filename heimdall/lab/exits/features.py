"""Labelled pictures through a network, once, by onnxruntime: what its heads are trained with, and
how often each of its outputs is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.engine.submodels import PROVIDERS, session_options
from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, graph_from_model
from heimdall.lab.exits.data import Pictures
from heimdall.lab.exits.heads import pool
from heimdall.models.image_input import ImageInput

BATCH = 64
_LARGEST = float(np.finfo(np.float16).max)
Report = Callable[[int, int], None]  # pictures done, pictures in all


class Batched:
    """A classifier of one picture, run over many: as batches where its shapes allow that."""

    def __init__(
        self, graph: Graph, prepare: ImageInput, pooled: Sequence[str] = (), threads: int = 1
    ) -> None:
        """``pooled``: tensors whose averages are wanted, too (see ``heads.pool``)."""
        prepare.bind(graph)
        self._prepare, self._name = prepare, graph.inputs[0].name
        model = graph.model
        nodes = [pool(graph.tensors[name], f"{name}/pooled") for name in pooled]
        model.graph.node.extend(nodes)
        model.graph.output.extend(onnx.ValueInfoProto(name=node.output[0]) for node in nodes)
        self._outputs = [*(each.name for each in graph.outputs), *(n.output[0] for n in nodes)]
        self._shapes = {each.name: each.shape[1:] for each in graph.outputs}
        self._batch, self._session = self._opened(model, threads)

    def _opened(self, model: onnx.ModelProto, threads: int) -> tuple[int, ort.InferenceSession]:
        wide = onnx.ModelProto()
        wide.CopyFrom(model)
        for value in [*wide.graph.input, *wide.graph.output]:
            if value.type.tensor_type.shape.dim:
                value.type.tensor_type.shape.dim[0].dim_value = BATCH
        del wide.graph.value_info[:]
        for batch, each in ((BATCH, wide), (1, model)):
            try:
                session = opened(each, threads)
                self._check(session, batch)
            except Exception:  # onnxruntime raises a dozen types of its own
                if batch == 1:
                    raise
                continue
            return batch, session
        raise AssertionError("unreachable")

    def _check(self, session: ort.InferenceSession, batch: int) -> None:
        given = session.get_inputs()[0]
        zeros = np.zeros((batch, *given.shape[1:]), np.float32)
        made = session.run(list(self._shapes), {self._name: zeros})
        for shape, array in zip(self._shapes.values(), made, strict=True):
            if array.shape != (batch, *shape):
                raise ModelError(f"a batch of {batch} becomes {array.shape}")

    def run(self, pictures: Pictures, report: Report) -> Iterator[tuple[slice, list[np.ndarray]]]:
        """For each few of the pictures: which, and the outputs, then the pooled tensors."""
        for first in range(0, len(pictures), self._batch):
            chosen = slice(first, min(first + self._batch, len(pictures)))
            tensors = [
                self._prepare(pictures.read(index)).inputs[self._name]
                for index in range(chosen.start, chosen.stop)
            ]
            tensors += [tensors[-1]] * (self._batch - len(tensors))
            made = self._session.run(self._outputs, {self._name: np.concatenate(tensors)})
            yield chosen, [array[: chosen.stop - chosen.start] for array in made]
            report(chosen.stop, len(pictures))


def opened(model: onnx.ModelProto, threads: int) -> ort.InferenceSession:
    """A session on so many cores."""
    options = session_options(threads, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    return ort.InferenceSession(model.SerializeToString(), options, PROVIDERS)


def pooled_features(
    graph: Graph,
    tensors: Sequence[str],
    prepare: ImageInput,
    pictures: Pictures,
    report: Report,
    threads: int = 1,
) -> dict[str, np.ndarray]:
    """The averages of each tensor for all pictures, (n, c, h, w) float16."""
    found: dict[str, np.ndarray] = {}
    for chosen, made in Batched(graph, prepare, tensors, threads).run(pictures, report):
        for name, array in zip(tensors, made[len(graph.outputs) :], strict=True):
            if name not in found:
                found[name] = np.empty((len(pictures), *array.shape[1:]), np.float16)
            found[name][chosen] = np.clip(array, -_LARGEST, _LARGEST)
    return found


def accuracies(
    model: onnx.ModelProto,
    prepare: ImageInput,
    pictures: Pictures,
    report: Report,
    threads: int = 1,
) -> Mapping[str, float]:
    """By output: the share of pictures whose largest score is that of their label."""
    graph = graph_from_model(model, "exits")
    names = [each.name for each in graph.outputs]
    right = dict.fromkeys(names, 0)
    for chosen, made in Batched(graph, prepare, threads=threads).run(pictures, report):
        for name, scores in zip(names, made, strict=True):
            right[name] += int((scores.argmax(axis=1) == pictures.labels[chosen]).sum())
    return {name: count / len(pictures) for name, count in right.items()}
