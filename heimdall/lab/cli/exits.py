"""The command that gives a network early exits."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    SIZE,
    cores_option,
    device_option,
    json_option,
    model_argument,
    options,
    show,
)
from heimdall.errors import ConfigError

if TYPE_CHECKING:
    from heimdall.graph.graph import Graph
    from heimdall.lab.exits.lessons import Lesson, Much
    from heimdall.lab.exits.making import Variant
    from heimdall.models.image_input import ImageInput


@click.command(cls=console.Command)
@model_argument
@options(
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        required=True,
        help="Pictures. With labels: a folder with a sub-folder a class, or the idx files of "
        "Fashion-MNIST. Without: a clip, or a folder of pictures and clips.",
    ),
    click.option(
        "--test",
        type=click.Path(path_type=Path),
        help="Without labels: test with these. By default a fifth of the files, or of the clip.",
    ),
    click.option("--out", type=FILE, help="Write the network with exits here."),
    click.option(
        "--beside",
        is_flag=True,
        help="OUT lies beside the file of the network, and reads the weights from there.",
    ),
    click.option("--exits", "count", type=click.IntRange(1), help="Places to try; all by default."),
    click.option(
        "--after", multiple=True, help="Try the place after this tensor; may be given repeatedly."
    ),
    click.option(
        "--epochs",
        type=click.IntRange(1),
        default=20,
        show_default=True,
        help="Passes over the pictures, for each exit.",
    ),
    click.option(
        "--pictures",
        type=click.IntRange(1),
        help="Learn from so many of them; from all by default.",
    ),
    click.option(
        "--copies",
        type=click.IntRange(1),
        default=4,
        show_default=True,
        help="Without labels: each is seen so many times, varied.",
    ),
    click.option(
        "--stage",
        type=click.IntRange(1),
        help="Which network of MODEL, a name of the catalogue that has several.",
    ),
    click.option("--size", type=SIZE, help="Of MODEL's input, where its name leaves the choice."),
    click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn."),
    click.option(
        "--max-drop",
        type=click.FloatRange(0, 100),
        default=10.0,
        show_default=True,
        help="No exit is less accurate than the network by more, in percent (Eq. 3).",
    ),
    click.option(
        "--budget-mb",
        type=click.FloatRange(0, min_open=True),
        help="What all weights may take in float32 (Eq. 5); no limit by default.",
    ),
    click.option(
        "--mean", type=(float,) * 3, metavar="R G B", help="Of the network's input, as 0..1."
    ),
    click.option(
        "--std", type=(float,) * 3, metavar="R G B", help="Of the network's input, as 0..1."
    ),
    device_option,
    cores_option,
    json_option,
)
def exits(
    model: str,
    data: Path,
    test: Path | None,
    out: Path | None,
    beside: bool,
    count: int | None,
    after: tuple[str, ...],
    epochs: int,
    pictures: int | None,
    copies: int,
    stage: int | None,
    size: tuple[int, int] | None,
    seed: int,
    max_drop: float,
    budget_mb: float | None,
    mean: tuple[float, ...] | None,
    std: tuple[float, ...] | None,
    device: str | None,
    gpu_cores: int | None,
    as_json: bool,
) -> None:
    """Give MODEL early exits, trained on pictures.

    Exits are put behind chunks, trained while the rest is frozen, and measured: how often each is
    right on pictures that it has not seen, and how long it takes on this machine's engine. Those
    are kept that a job is soonest at one of, wherever it is (Pantheon, Eqs. 3-6). Of pictures with
    labels the exits of a classifier learn those. Of pictures without, the exits of any network
    learn to say what the whole network says, and are right as far as they do. Needs PyTorch: the
    extra learn.
    """
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.exits import making
        from heimdall.lab.exits.heads import load_torch
        from heimdall.lab.exits.lessons import Much
        from heimdall.lab.exits.storing import refer
        from heimdall.lab.exits.written import with_exits
        from heimdall.models.image_input import ImageInput
        from heimdall.runtime.execution.processors import open_processors
        from heimdall.system import softgpu
        from heimdall.system.paths import replace_file

        check_writable("out", out, (".onnx",))
        prepare = ImageInput(mean=mean or 0.0, std=std or 1.0, fit="stretch")
        much = Much(count, after, pictures, copies, seed)
        own = _beside(model, stage, out) if beside else None
        lesson = _lesson(model, data, test, stage, size, prepare, much)
        recipe = making.Recipe(epochs, seed, load_torch().get_num_threads())
        made = dict(zip(lesson.places, lesson.train(recipe, progress), strict=True))
        first = with_exits(lesson.graph, made, lesson.dataset)
        right, tested = lesson.judge(first, recipe, progress)
        with open_processors(device, softgpu.plan(cores=gpu_cores)) as there:
            found = making.measure(first, made, right, there.gpu, progress)
            machine = dict(there.gpu.describe())
        budget = math.inf if budget_mb is None else budget_mb * 1e6
        kept = making.choose(found, max_drop / 100, budget)
        final = with_exits(lesson.graph, made, lesson.dataset, accuracy=right, kept=kept)
        if own is not None:
            refer(final, own)
        content = final.SerializeToString(deterministic=True)
        if out is not None:
            replace_file(out, content)
    result = {
        "schema": 1,
        "model": model,
        "file": None if out is None else str(out),
        "size_kb": len(content) / 1000,
        "sha256": hashlib.sha256(content).hexdigest(),
        "judged_by": lesson.judged_by,
        "classes": list(lesson.dataset.classes) if lesson.dataset else [],
        "trained_on": lesson.views,
        "tested_on": tested,
        "epochs": epochs,
        "seed": seed,
        "engine": machine,
        "exits": [
            _described(each, place) | {"kept": number in kept}
            for number, (each, place) in enumerate(zip(found, [*lesson.places, None], strict=True))
        ],
    }
    show(as_json, result, "heimdall.lab.cli.tables:exits_report")


def _lesson(
    model: str,
    data: Path,
    test: Path | None,
    stage: int | None,
    size: tuple[int, int] | None,
    prepare: ImageInput,
    much: Much,
) -> Lesson:
    """What there is to learn from these pictures."""
    from heimdall.graph.graph import load_graph
    from heimdall.inspection import load_networks
    from heimdall.lab.exits import lessons
    from heimdall.lab.exits.source import File, PipelineStage
    from heimdall.lab.exits.unlabelled import is_unlabelled
    from heimdall.models.catalog import CATALOG, open_pipeline

    if not is_unlabelled(data):
        if test or stage or size:
            raise ConfigError("--test, --stage and --size are for pictures without labels")
        return lessons.from_labels(_only(model, load_networks(model)), data, prepare, much)
    if model not in CATALOG:
        if stage or size:
            raise ConfigError("--stage and --size are for a name of the catalogue, not for a file")
        source = File(_only(model, load_networks(model)), prepare)
        return lessons.from_whole(source, data, test, much)
    pipeline = open_pipeline(model, **({"size": size[::-1]} if size else {}))
    graphs = [load_graph(each.path, each.shapes) for each in pipeline.networks]
    if stage is None:
        _only(model, graphs)
    return lessons.from_whole(PipelineStage(pipeline, graphs, (stage or 1) - 1), data, test, much)


def _beside(model: str, stage: int | None, out: Path | None) -> Path:
    """The file of the network, in whose folder OUT lies."""
    from heimdall.models.catalog import CATALOG, open_pipeline

    path = Path(model)
    if model in CATALOG:
        path = open_pipeline(model).networks[(stage or 1) - 1].path
    if out is None or out.resolve().parent != path.resolve().parent:
        raise ConfigError(f"--beside needs --out FILE in the folder of the network, {path.parent}")
    if out.resolve() == path.resolve():
        raise ConfigError(f"--beside: {out} is the file of the network itself: give another name")
    return path


def _only(model: str, graphs: Sequence[Graph]) -> Graph:
    """The one network of MODEL."""
    if len(graphs) != 1:
        names = ", ".join(graph.name for graph in graphs)
        raise ConfigError(
            f"{model} has {len(graphs)} networks ({names}): give the file of one, or, for pictures "
            "without labels, its number by --stage"
        )
    return graphs[0]


def _described(variant: Variant, place: Any) -> dict[str, Any]:
    low, high = variant.delays_ns
    return {
        "name": variant.name,
        "after": None if place is None else place.tensor,
        "accuracy": variant.accuracy,
        "delay_ms": variant.delay_ns / 1e6,
        "delay_p10_ms": low / 1e6,
        "delay_p90_ms": high / 1e6,
        "head_kb": variant.head_bytes / 1000,
        "chunk_kb": variant.chunk_bytes / 1000,
    }
