"""The command that gives a network early exits."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import FILE, cores_option, device_option, json_option, options, show
from heimdall.errors import ConfigError

if TYPE_CHECKING:
    from heimdall.analyzer.exits.making import Variant
    from heimdall.graph.graph import Graph


@click.command(cls=console.Command)
@click.argument("model")
@options(
    click.option(
        "--data",
        type=click.Path(path_type=Path),
        required=True,
        help="Labelled pictures: a folder with a sub-folder a class, or the idx files of "
        "Fashion-MNIST.",
    ),
    click.option("--out", type=FILE, help="Write the network with exits here."),
    click.option("--exits", "count", type=click.IntRange(1), help="Places to try; all by default."),
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
    out: Path | None,
    count: int | None,
    epochs: int,
    pictures: int | None,
    seed: int,
    max_drop: float,
    budget_mb: float | None,
    mean: tuple[float, ...] | None,
    std: tuple[float, ...] | None,
    device: str | None,
    gpu_cores: int | None,
    as_json: bool,
) -> None:
    """Give the classifier MODEL early exits, trained on labelled pictures.

    Exits are put behind chunks, trained while the rest is frozen, and measured: how often each is
    right on pictures that it has not seen, and how long it takes on this machine's engine. Those
    are kept that a job is soonest at one of, wherever it is (Pantheon, Eqs. 3-6). Needs PyTorch:
    the extra learn.
    """
    with console.work(as_json), console.Progress() as progress:
        from heimdall.analyzer.exits import making
        from heimdall.analyzer.exits.data import open_dataset
        from heimdall.analyzer.exits.heads import load_torch
        from heimdall.analyzer.exits.places import check_classifier, places
        from heimdall.analyzer.exits.written import with_exits
        from heimdall.models.image_input import ImageInput
        from heimdall.runtime.processors import open_processors
        from heimdall.system import softgpu
        from heimdall.system.paths import replace_file

        check_writable("out", out, (".onnx",))
        graph = _opened(model)
        check_classifier(graph)
        dataset = open_dataset(data, seed, making.class_names(graph))
        making.check_fits(graph, dataset)
        dataset = dataset.fewer(pictures, seed)
        chosen = places(graph, count)
        threads = load_torch().get_num_threads()
        prepare = ImageInput(mean=mean or 0.0, std=std or 1.0, fit="stretch")
        recipe = making.Recipe(epochs, seed, threads, prepare)
        heads = making.train_heads(graph, dataset, chosen, recipe, progress)
        made = dict(zip(chosen, heads, strict=True))
        with open_processors(device, softgpu.plan(cores=gpu_cores)) as there:
            first = with_exits(graph, made, dataset)
            found = making.measure(first, made, dataset, there.gpu, recipe, progress)
            machine = dict(there.gpu.describe())
        budget = math.inf if budget_mb is None else budget_mb * 1e6
        kept = making.choose(found, max_drop / 100, budget)
        right = {each.output: each.accuracy for each in found}
        final = with_exits(graph, made, dataset, accuracy=right, kept=kept)
        content = final.SerializeToString(deterministic=True)
        if out is not None:
            replace_file(out, content)
    result = {
        "schema": 1,
        "model": model,
        "file": None if out is None else str(out),
        "size_kb": len(content) / 1000,
        "sha256": hashlib.sha256(content).hexdigest(),
        "classes": list(dataset.classes),
        "trained_on": len(dataset.train),
        "tested_on": len(dataset.test),
        "epochs": epochs,
        "seed": seed,
        "engine": machine,
        "exits": [
            _described(each, place) | {"kept": number in kept}
            for number, (each, place) in enumerate(zip(found, [*chosen, None], strict=True))
        ],
    }
    show(as_json, result, "exits_report")


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


def _opened(model: str) -> Graph:
    """The one network of MODEL."""
    from heimdall.bench.inspection import load_networks

    graphs = load_networks(model)
    if len(graphs) != 1:
        names = ", ".join(graph.name for graph in graphs)
        raise ConfigError(f"{model} has {len(graphs)} networks ({names}): give the file of one")
    return graphs[0]
