"""From a classifier to one with early exits: heads are trained, measured, placed and written."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from heimdall.analyzer.exits import features, heads
from heimdall.analyzer.exits.data import Dataset
from heimdall.analyzer.exits.heads import Head, Progress
from heimdall.analyzer.exits.places import Place, check_classifier
from heimdall.engine.base import Engine
from heimdall.errors import ConfigError
from heimdall.graph import half
from heimdall.graph.exits import METADATA, DeclaredExit, order_nodes
from heimdall.graph.graph import Graph, graph_from_model
from heimdall.graph.samples import sample_inputs
from heimdall.models.image_input import ImageInput

WHOLE = "whole"  # the name of the variant without an early exit
CLASSES = "classes"  # the metadata that name the classes, a JSON list
ROUNDS = 30  # of measuring delays


@dataclass(frozen=True)
class Recipe:
    """How heads are trained: passes over the data, the seed of all that is drawn, and threads."""

    epochs: int = 20
    seed: int = 0
    threads: int = 1
    prepare: ImageInput = field(default_factory=lambda: ImageInput(fit="stretch"))


@dataclass(frozen=True)
class Variant:
    """One exit as measured: the share of test pictures it got right, and what it takes from the
    first op on, head included: the median, and the 10th and 90th of a hundred, in ns."""

    name: str
    output: str
    bytes: int  # of what its head adds: weights in float32
    accuracy: float = 0.0
    delay_ns: int = 0
    delays_ns: tuple[int, int] = (0, 0)


def check_fits(graph: Graph, dataset: Dataset) -> None:
    """Raise ModelError unless the network is a classifier without exits, ConfigError where it has
    another number of classes than the data."""
    classes, found = check_classifier(graph), len(dataset.classes)
    if classes != found:
        raise ConfigError(f"{graph.name} tells {classes} classes apart, and the data have {found}")


def class_names(graph: Graph) -> tuple[str, ...]:
    """The names of a classifier's classes, where its file tells them."""
    try:
        found = json.loads(graph.metadata.get(CLASSES, "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def train_heads(
    graph: Graph, dataset: Dataset, chosen: Sequence[Place], recipe: Recipe, progress: Progress
) -> list[Head]:
    """A head for each place, on the frozen network."""
    heads.load_torch().set_num_threads(recipe.threads)
    names = [place.tensor for place in chosen]
    tell = _telling(progress, "running the network over the data")
    kept = features.pooled_features(
        graph, names, recipe.prepare, dataset.train, tell, recipe.threads
    )
    return [
        heads.train(
            kept.pop(name),
            dataset.train.labels,
            len(dataset.classes),
            epochs=recipe.epochs,
            seed=recipe.seed,
            progress=_telling(progress, f"training exit {number} of {len(names)}"),
        )
        for number, name in enumerate(names, 1)
    ]


def with_exits(
    graph: Graph,
    made: Mapping[Place, Head],
    dataset: Dataset,
    *,
    accuracy: Mapping[str, float] | None = None,
) -> onnx.ModelProto:
    """The network with a head at each place, its nodes in the order of ``heimdall.graph.exits``.

    ``accuracy`` by output. Where the network's weights are halves, so are those of the heads, and
    all are kept in float16 (``heimdall.graph.half``).
    """
    model = graph.model
    last = graph.outputs[0].name
    softmax = graph.producers[last].op_type == "Softmax"
    outputs = [f"exit{number}" for number in range(1, len(made) + 1)]
    for output, (place, head) in zip(outputs, made.items(), strict=True):
        nodes, weights = heads.nodes(head, graph.tensors[place.tensor], output, softmax=softmax)
        model.graph.node.extend(nodes)
        model.graph.initializer.extend(weights)
        shape = (1, len(dataset.classes))
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        model.graph.output.append(value)
    names = [*outputs, WHOLE]
    declared = [
        DeclaredExit(name, output, round((accuracy or {}).get(output, 0.0), 4))
        for name, output in zip(names, [*outputs, last], strict=True)
    ]
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    metadata[METADATA] = json.dumps([vars(each) for each in declared])
    metadata[CLASSES] = json.dumps(dataset.classes)
    helper.set_model_props(model, metadata)
    order_nodes(Path(graph.name), model)
    del model.graph.value_info[:]  # sizes that readers infer
    if _in_half(graph):
        half.narrow(model)
    onnx.checker.check_model(model)
    return model


def _in_half(graph: Graph) -> bool:
    weights = [each for each in graph.constants.values() if each.dtype == np.float32]
    large = [each for each in weights if each.size >= half.LEAST_VALUES]
    with np.errstate(over="ignore"):
        return all(np.array_equal(each, each.astype(np.float16)) for each in large)


def measure(
    model: onnx.ModelProto,
    made: Mapping[Place, Head],
    dataset: Dataset,
    engine: Engine,
    recipe: Recipe,
    progress: Progress,
) -> list[Variant]:
    """Accuracy on the test pictures and delay on ``engine`` of each exit, the whole network
    last."""
    graph = graph_from_model(model)
    tell = _telling(progress, "testing the exits")
    right = features.accuracies(model, recipe.prepare, dataset.test, tell, recipe.threads)
    sizes = [*(head.bytes for head in made.values()), 0]
    return [
        Variant(
            exit.name,
            exit.output,
            size,
            right[exit.output],
            int(statistics.median(times)),
            (int(np.quantile(times, 0.1)), int(np.quantile(times, 0.9))),
        )
        for exit, size, times in zip(
            graph.exits, sizes, _delays(graph, engine, progress), strict=True
        )
    ]


def _delays(graph: Graph, engine: Engine, progress: Progress) -> list[list[int]]:
    """What each exit takes on an engine, in ns, in rounds in which all take turns."""
    network = engine.load(graph)
    state, inputs = network.new_state(), sample_inputs(graph, 0)
    times: list[list[int]] = [[] for _ in network.exits]
    tell = _telling(progress, "measuring delays")
    for number in range(ROUNDS + 2):
        for exit, found in zip(network.exits, times, strict=True):
            network.write(state, inputs)
            found.append(sum(network.run_any(state, start, end) for start, end in exit.ranges))
        tell(number + 1, ROUNDS + 2)
    network.close()
    return [each[2:] for each in times]  # the first two warm up


def _telling(progress: Progress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(what, done, total)
