"""From a network to one with early exits: heads are trained, measured and placed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from heimdall.engine.base import Engine
from heimdall.errors import ConfigError
from heimdall.graph.graph import Graph, graph_from_model
from heimdall.graph.samples import sample_inputs
from heimdall.lab.exits import distilled, features, heads, teaching
from heimdall.lab.exits.data import Dataset
from heimdall.lab.exits.distilled import Distilled
from heimdall.lab.exits.exit_points import ExitPoint, check_classifier
from heimdall.lab.exits.heads import Head, Progress
from heimdall.lab.exits.observed import observe
from heimdall.lab.exits.placement import Exit, place
from heimdall.lab.exits.source import Source
from heimdall.lab.exits.unlabelled import Views
from heimdall.lab.exits.written import CLASSES
from heimdall.models.image_input import ImageInput

ROUNDS = 30  # of measuring delays


@dataclass(frozen=True)
class Recipe:
    """How heads are trained: passes over the data, the seed of all that is drawn, and threads."""

    epochs: int = 20
    seed: int = 0
    threads: int = 1


@dataclass(frozen=True)
class Variant:
    """One exit as measured: the share of test pictures it got right, or how much it says what the
    whole network says, and what it takes from the
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
    graph: Graph,
    dataset: Dataset,
    prepare: ImageInput,
    chosen: Sequence[ExitPoint],
    recipe: Recipe,
    progress: Progress,
) -> list[Head]:
    """A head for each place, on the frozen network."""
    heads.load_torch().set_num_threads(recipe.threads)
    names = [place.tensor for place in chosen]
    tell = telling(progress, "running the network over the data")
    kept = features.pooled_features(graph, names, prepare, dataset.train, tell, recipe.threads)
    return [
        heads.train(
            kept.pop(name),
            dataset.train.labels,
            len(dataset.classes),
            epochs=recipe.epochs,
            seed=recipe.seed,
            progress=telling(progress, f"training exit {number} of {len(names)}"),
        )
        for number, name in enumerate(names, 1)
    ]


def teach_heads(
    source: Source, views: Views, chosen: Sequence[ExitPoint], recipe: Recipe, progress: Progress
) -> list[Distilled]:
    """A head for each place that gives what the whole network gives, on the frozen network."""
    heads.load_torch().set_num_threads(recipe.threads)
    outputs = distilled.wanted(source.graph)
    names = [place.tensor for place in chosen]
    blank = [distilled.untrained(source.graph.tensors[name], outputs) for name in names]
    tell = telling(progress, "running the network over the data")
    seen = observe(source, names, views, tell, recipe.threads)
    return [
        teaching.teach(
            head,
            seen.tensors[name],
            seen.outputs,
            epochs=recipe.epochs,
            seed=recipe.seed,
            progress=telling(progress, f"training exit {number} of {len(names)}"),
        )
        for number, (name, head) in enumerate(zip(names, blank, strict=True), 1)
    ]


def measure(
    model: onnx.ModelProto,
    made: Mapping[ExitPoint, Head | Distilled],
    right: Mapping[str, float],
    engine: Engine,
    progress: Progress,
) -> list[Variant]:
    """Each exit, the whole network last: how often it is ``right``, by its first output, and its
    delay on ``engine``."""
    graph = graph_from_model(model)
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
    tell = telling(progress, "measuring delays")
    for number in range(ROUNDS + 2):
        for exit, found in zip(network.exits, times, strict=True):
            network.write(state, inputs)
            found.append([network.run_any(state, start, end) for start, end in exit.ranges])
        tell(number + 1, ROUNDS + 2)
    network.close()
    return [np.array(each[2:]) for each in times]  # the first two warm up


def _chunk_bytes(graph: Graph, chosen: Sequence[ExitPoint]) -> list[int]:
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


def telling(progress: Progress, what: str) -> Callable[[int, int], None]:
    """Progress of one thing that is done."""
    return lambda done, total: progress(what, done, total)
