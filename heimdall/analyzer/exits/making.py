"""From a classifier to one with early exits: heads are trained, measured, placed and written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from heimdall.analyzer.exits import features, heads
from heimdall.analyzer.exits.data import Dataset
from heimdall.analyzer.exits.heads import Head, Progress
from heimdall.analyzer.exits.placement import Exit, place
from heimdall.analyzer.exits.places import Place, check_classifier
from heimdall.analyzer.exits.written import CLASSES
from heimdall.engine.base import Engine
from heimdall.errors import ConfigError
from heimdall.graph.graph import Graph, graph_from_model
from heimdall.graph.samples import sample_inputs
from heimdall.models.image_input import ImageInput

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
    head_bytes: int  # weights of its head, in float32; of the whole network's end: 0
    chunk_bytes: int  # of the chunk before it
    accuracy: float
    delay_ns: int
    delays_ns: tuple[int, int]
    chunk_ns: int  # the chunk before it alone


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
    heads_bytes = [*(head.bytes for head in made.values()), 0]
    times = _delays(graph, engine, progress)
    chunks_ns = np.median(times[-1], axis=0)  # the whole network runs chunk by chunk
    found = zip(
        graph.exits, heads_bytes, _chunk_bytes(graph, list(made)), times, chunks_ns, strict=True
    )
    return [
        Variant(
            name=exit.name,
            output=exit.outputs[0],
            head_bytes=head_bytes,
            chunk_bytes=chunk_bytes,
            accuracy=right[exit.outputs[0]],
            delay_ns=int(np.median(ranges.sum(axis=1))),
            delays_ns=(
                int(np.quantile(ranges.sum(axis=1), 0.1)),
                int(np.quantile(ranges.sum(axis=1), 0.9)),
            ),
            chunk_ns=int(chunk_ns),
        )
        for exit, head_bytes, chunk_bytes, ranges, chunk_ns in found
    ]


def _delays(graph: Graph, engine: Engine, progress: Progress) -> list[np.ndarray]:
    """What each range of each exit takes on an engine, in ns (rounds, ranges); in each round all
    exits take turns."""
    network = engine.load(graph)
    state, inputs = network.new_state(), sample_inputs(graph, 0)
    times: list[list[list[int]]] = [[] for _ in network.exits]
    tell = _telling(progress, "measuring delays")
    for number in range(ROUNDS + 2):
        for exit, found in zip(network.exits, times, strict=True):
            network.write(state, inputs)
            found.append([network.run_any(state, start, end) for start, end in exit.ranges])
        tell(number + 1, ROUNDS + 2)
    network.close()
    return [np.array(each[2:]) for each in times]  # the first two warm up


def _chunk_bytes(graph: Graph, chosen: Sequence[Place]) -> list[int]:
    """The weights of each chunk of the network, in bytes of float32; the last ends the network."""
    places = {place.tensor: number for number, place in enumerate(chosen)}
    whole = graph.exits[-1].outputs
    found, number, makers = [0] * (len(chosen) + 1), 0, graph.producers
    own, pending = set[str](), list(whole)
    while pending:
        node = makers.get(pending.pop())
        if node is not None and node.name not in own:
            own.add(node.name)
            pending += node.inputs
    for node in graph.nodes:
        if node.name in own:
            weights = (graph.constants[n] for n in node.inputs if n in graph.constants)
            found[number] += sum(each.nbytes for each in weights)
            number = max([number, *(places[n] + 1 for n in node.outputs if n in places)])
    return found


def choose(found: Sequence[Variant], alpha: float, budget_bytes: float) -> tuple[int, ...]:
    """Which exits to keep, from 0 (Pantheon, Eqs. 3-6; see ``placement``): none loses more than
    ``alpha`` of accuracy, and all weights take ``budget_bytes`` at most. Raises ConfigError where
    that cannot be."""
    exits = [
        Exit(each.delay_ns, each.accuracy, each.chunk_bytes, each.head_bytes, each.chunk_ns)
        for each in found
    ]
    (chosen,) = place([exits], alpha, budget_bytes)
    return chosen.kept


def _telling(progress: Progress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(what, done, total)
