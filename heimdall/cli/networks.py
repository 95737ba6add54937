"""Commands about networks: list, measure, cut and check them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    completing,
    device_option,
    input_options,
    json_option,
    measuring_options,
    model_argument,
    model_names,
    options,
    precision_option,
    show,
)
from heimdall.errors import ConfigError, unknown
from heimdall.system.extras import need

if TYPE_CHECKING:
    from heimdall.analyzer.profile import NetworkProfile
    from heimdall.graph.graph import Graph
    from heimdall.runtime.execution.processors import Processors


@click.command(cls=console.Command)
@json_option
def models(as_json: bool) -> None:
    """List the bundled networks."""
    with console.work(as_json):
        from heimdall.models.catalog import CATALOG
        from heimdall.system.paths import ASSETS

        found = [
            {
                "name": entry.name,
                "title": entry.title,
                "task": entry.task,
                "licence": entry.licence,
                "files": list(entry.files),
                "size_mb": size_mb([ASSETS / "models" / file for file in entry.files]),
            }
            for entry in CATALOG.values()
        ]
        broken = [label for label in CATALOG.labels() if label not in CATALOG]
    if as_json:
        console.print_json({"schema": 1, "models": found})
    else:
        show(False, found, "heimdall.cli.network_tables:model_list")
        click.echo("\n".join(broken), nl=bool(broken))


def size_mb(files: list[Path]) -> float | None:
    """What a model's files take; None where another package's model lacks one."""
    if not all(file.is_file() for file in files):
        return None
    return sum(file.stat().st_size for file in files) / 1e6


@click.command(cls=console.Command)
@model_argument
@options(
    click.option(
        "--tune",
        is_flag=True,
        help="First try other kernels for each convolution, and keep the fastest.",
    ),
    precision_option,
    *measuring_options,
    json_option,
)
def profile(model: str, tune: bool, as_json: bool, **measuring: Any) -> None:
    """Measure every op of MODEL: a name of `heimdall models`, or an .onnx file.

    Saved profiles are used where they are still valid.
    """
    with console.work(as_json):
        from heimdall import inspection

        tuned: list[dict[str, Any]] | None = [] if tune else None
        found = _profiles(model, **measuring, tuned=tuned)
        networks = [inspection.describe_profile(each) for each in found]
    result = {"schema": 1, "model": model, "networks": networks, "tuned": tuned}
    show(as_json, result, "heimdall.cli.network_tables:profile_report")


@contextlib.contextmanager
def _opened(
    model: str, shapes: dict[str, tuple[int, ...]], device: str | None, gpu_cores: int | None
) -> Iterator[tuple[list[Graph], Processors]]:
    """The model's networks, and the processors that they would run on."""
    from heimdall import inspection
    from heimdall.runtime.execution.processors import open_processors
    from heimdall.system import softgpu

    graphs = inspection.load_networks(model, shapes)
    with open_processors(device, softgpu.plan(cores=gpu_cores)) as there:
        yield graphs, there


def _profiles(
    model: str,
    *,
    force_fallback: tuple[str, ...],
    remeasure: bool,
    precision: str = "fp32",
    tuned: list[dict[str, Any]] | None = None,
    **where: Any,
) -> list[NetworkProfile]:
    """The model's networks, profiled where they would run; with a list as ``tuned``, kernels
    are tuned first, and what came of it is added to it."""
    from heimdall import inspection

    with console.ProgressBars() as progress, _opened(model, **where) as (graphs, there):
        if tuned is not None:
            tuned += inspection.tune(graphs, there, progress, precision)
        return inspection.profile_model(
            graphs,
            there,
            force_fallback=force_fallback,
            remeasure=remeasure or tuned is not None,
            precision=precision,
            progress=progress,
        )


def _passes(model: str, *, force_fallback: tuple[str, ...], **where: Any) -> list[dict[str, Any]]:
    """The ops of the model's networks after each pass."""
    from heimdall import inspection

    with _opened(model, **where) as (graphs, there):
        return inspection.describe_passes(graphs, there, force_fallback=force_fallback)


@click.command(cls=console.Command)
@model_argument
@options(
    click.option(
        "--gap-ms",
        type=click.FloatRange(0, min_open=True),
        default=28.0,
        show_default=True,
        help="Time between rendering and the next frame.",
    ),
    click.option("--strategy", default="heimdall", show_default=True, help="How to cut."),
    click.option(
        "--margin-ms",
        type=click.FloatRange(0),
        default=5.0,
        show_default=True,
        help="What a chunk may exceed the gap by (Eq. 1).",
    ),
    click.option(
        "--ops",
        type=click.IntRange(1),
        default=5,
        show_default=True,
        help="Ops a chunk, for --strategy fixed.",
    ),
    click.option("--png", type=FILE, help="Draw the chunks against the gap."),
    click.option(
        "--passes",
        is_flag=True,
        help="Instead, list the ops after each pass of the GPU's compiler. Measures nothing.",
    ),
    *measuring_options,
    json_option,
)
def partition(
    model: str,
    gap_ms: float,
    strategy: str,
    margin_ms: float,
    ops: int,
    png: Path | None,
    passes: bool,
    remeasure: bool,
    as_json: bool,
    **measuring: Any,
) -> None:
    """Cut MODEL into chunks that fit the gap between two frames (static mode)."""
    with console.work(as_json):
        from heimdall import inspection
        from heimdall.analyzer.partition import strategies

        check_writable("png", png, (".png",))
        if png is not None:
            need("matplotlib", "lab", "--png")
        if strategy not in strategies():
            raise ConfigError(unknown("partition strategy", strategy, strategies()))
        listed = _passes(model, **measuring) if passes else []
        found = [] if passes else _profiles(model, remeasure=remeasure, **measuring)
        chunks: list[dict[str, Any]] = []
        drawn = []
        alone = len(found) == 1
        for each in found:
            gap_ns, margin_ns = round(gap_ms * 1e6), round(margin_ms * 1e6)
            cuts = each.partition(gap_ns, strategy, margin_ns=margin_ns, ops_per_chunk=ops)
            chunks += inspection.describe_chunks(each, cuts)
            if png is not None:
                limit = (gap_ms, margin_ms if strategy in ("heimdall", "runs") else 0.0)
                drawn.append(inspection.draw(each, cuts, *limit, png, alone=alone))
    if passes:
        show(
            as_json,
            {"schema": 1, "model": model, "passes": listed},
            "heimdall.cli.network_tables:pass_report",
        )
        return
    result = {
        "schema": 1,
        "model": model,
        "strategy": strategy,
        "gap_ms": gap_ms,
        "chunks": chunks,
        "pictures": [str(path) for path in drawn],
    }
    show(as_json, result, "heimdall.cli.network_tables:partition_report")


@click.command(cls=console.Command)
@click.argument("model", nargs=-1, shell_complete=completing(model_names))
@options(
    click.option("--all", "every", is_flag=True, help="Every bundled model."),
    click.option("--cores", type=click.IntRange(1), help="Cores for both sides."),
    precision_option,
    input_options,
    device_option,
    json_option,
)
def check(
    model: tuple[str, ...],
    every: bool,
    cores: int | None,
    precision: str,
    shapes: dict[str, tuple[int, ...]],
    device: str | None,
    as_json: bool,
) -> int:
    """Compare each MODEL on the GPU engine, chunk by chunk, with onnxruntime.

    MODEL is a name of `heimdall models`, or an .onnx file: a path, or the name of a bundled one.
    Both sides compute on the same number of cores, onnxruntime in float32. The status is 2 where
    a model could not be checked.
    """
    if not model and not every:
        raise click.UsageError("Missing argument 'MODEL...', or --all.")
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall import inspection

        found = inspection.check([*model], every, device, cores, progress, precision, shapes)
        for each in found:
            each["error"] = each["error"] and console.of_flags(each["error"])
    results = {"schema": 1, "models": found}
    show(as_json, results, "heimdall.cli.network_tables:check_report")
    return console.FAILED if any(each["error"] for each in found) else 0
