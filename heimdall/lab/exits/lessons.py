"""What exits learn from, and what says whether they are right: the labels of pictures, or what the
whole network makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from heimdall.graph.graph import Graph
from heimdall.lab.exits import features, making
from heimdall.lab.exits.data import Dataset, open_dataset
from heimdall.lab.exits.distilled import Distilled, untrained, wanted
from heimdall.lab.exits.exit_points import ExitPoint, check_classifier, places
from heimdall.lab.exits.heads import Head, Progress
from heimdall.lab.exits.making import Recipe
from heimdall.lab.exits.observed import agreements
from heimdall.lab.exits.source import Source
from heimdall.lab.exits.unlabelled import open_views
from heimdall.models.image_input import ImageInput


@dataclass(frozen=True)
class Much:
    """How many places are tried (None: all), or after which tensors; from how many pictures heads
    learn (None: from all); how often each of those without a label is seen; and the seed of what is
    drawn."""

    places: int | None = None
    after: tuple[str, ...] = ()
    pictures: int | None = None
    copies: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Lesson:
    """``train`` gives a head for each of the ``places``; ``judge``, of a network with these heads,
    how often each exit is right, by its first output, and of how many samples that is. ``dataset``:
    where there are labels; ``views``: how many pictures are learnt from; ``judged_by``: in
    words."""

    graph: Graph
    places: Sequence[ExitPoint]
    dataset: Dataset | None
    views: int
    judged_by: str
    train: Callable[[Recipe, Progress], Sequence[Head | Distilled]]
    judge: Callable[[onnx.ModelProto, Recipe, Progress], tuple[Mapping[str, float], int]]


def from_labels(graph: Graph, data: Path, prepare: ImageInput, much: Much) -> Lesson:
    """The lesson of a classifier. Raises ModelError where it is none, or has exits or no place for
    one, ConfigError where the data have no labels, or other classes."""
    check_classifier(graph)
    dataset = open_dataset(data, much.seed, making.class_names(graph))
    making.check_fits(graph, dataset)
    dataset = dataset.fewer(much.pictures, much.seed)
    chosen = places(graph, much.places, much.after)

    def train(recipe: Recipe, progress: Progress) -> Sequence[Head]:
        return making.train_heads(graph, dataset, prepare, chosen, recipe, progress)

    def judge(
        model: onnx.ModelProto, recipe: Recipe, progress: Progress
    ) -> tuple[Mapping[str, float], int]:
        tell = making.telling(progress, "testing the exits")
        right = features.accuracies(model, prepare, dataset.test, tell, recipe.threads)
        return right, len(dataset.test)

    return Lesson(graph, chosen, dataset, len(dataset.train), "labels", train, judge)


def from_whole(source: Source, data: Path, test: Path | None, much: Much) -> Lesson:
    """The lesson of any network. Raises ModelError where no exit can make what it makes,
    ConfigError where there are no pictures."""
    graph, outputs = source.graph, wanted(source.graph)
    learnt, kept = open_views(data, test, copies=much.copies, most=much.pictures, seed=much.seed)
    chosen = places(graph, much.places, much.after)
    for place in chosen:
        untrained(graph.tensors[place.tensor], outputs)

    def train(recipe: Recipe, progress: Progress) -> Sequence[Distilled]:
        return making.teach_heads(source, learnt, chosen, recipe, progress)

    def judge(
        model: onnx.ModelProto, recipe: Recipe, progress: Progress
    ) -> tuple[Mapping[str, float], int]:
        tell = making.telling(progress, "testing the exits")
        return agreements(model, source, kept, tell, recipe.threads)

    return Lesson(graph, chosen, None, len(learnt), source.judged_by, train, judge)
