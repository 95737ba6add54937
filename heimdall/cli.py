"""The command line: ``heimdall run APP`` and the tools around it.

Commands parse, call the module that does the work, and show what it returns. Heavy imports
are inside them, so that ``heimdall --help`` answers at once.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heimdall import console
from heimdall.errors import ConfigError, HeimdallError, unknown
from heimdall.options import (
    CONTENT,
    MODES,
    OVERLAYS,
    RunOptions,
    check_writable,
    parse_press,
    parse_size,
    parse_source,
)

if TYPE_CHECKING:
    from heimdall.analyzer.profile import NetworkProfile
    from heimdall.trace import Recording


class Size(click.ParamType):
    """WIDTHxHEIGHT in pixels."""

    name = "WxH"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        try:
            return value if isinstance(value, tuple) else parse_size(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


class Press(click.ParamType):
    """SECONDS:KEY."""

    name = "S:KEY"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, str]:
        try:
            return value if isinstance(value, tuple) else parse_press(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


FILE = click.Path(dir_okay=False, path_type=Path)
json_option = click.option("as_json", "--json", is_flag=True, help="Print one JSON value.")
device_option = click.option(
    "--device",
    metavar="NAME",
    help="The GPU: an OpenCL device by number or part of its name, onnxruntime, or one of its "
    "providers (cuda, tensorrt, directml, openvino, coreml).",
)
cores_option = click.option("--gpu-cores", type=int, metavar="N", help="Cores of the software GPU.")
shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="INPUT=1x3xHxW",
    callback=lambda ctx, param, values: dict(_parse_shape(value) for value in values),
    help="Fix the shape of an input; repeat for more.",
)
fallback_option = click.option(
    "--fallback",
    "force_fallback",
    multiple=True,
    metavar="OP",
    help="Run this op type or node on the CPU; repeat for more.",
)
remeasure_option = click.option(
    "--remeasure", is_flag=True, help="Measure even where a profile is saved."
)
measuring_options = (
    shape_option,
    device_option,
    cores_option,
    fallback_option,
    remeasure_option,
)


def _parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, sides = text.rpartition("=")
    if not name or not re.fullmatch(r"[1-9][0-9]{0,5}([x,][1-9][0-9]{0,5}){0,4}", sides):
        raise click.BadParameter(f"{text!r}: expected INPUT=SHAPE, such as input=1x3x480x640")
    return name, tuple(int(side) for side in re.split("[x,]", sides))


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in reading order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


@click.group(cls=console.Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="heimdall-ar", prog_name="heimdall")
@click.option("--debug", is_flag=True, help="Show tracebacks and what happens inside.")
def main(debug: bool) -> None:
    """Augmented-reality apps that run several neural networks and draw every frame on one GPU."""
    console.set_up_logging(debug)


@main.command()
@click.argument("app")
@options(
    click.option("--source", metavar="SOURCE", help="Camera index, file, stream URL or image."),
    click.option("--fps", type=float, help="Target frame rate."),
    click.option("--size", type=Size(), help="Picture drawn, such as 1280x720."),
    click.option("--scheduler", metavar="NAME", help="Policy that picks the next chunk."),
    click.option("--static", is_flag=True, help="One chunk of the static partition a gap."),
    click.option("--no-offload", is_flag=True, help="Keep every DNN on the GPU."),
    click.option("--content", type=click.Choice(CONTENT), help="How a changing scene counts."),
    device_option,
    cores_option,
    click.option(
        "--realtime/--no-realtime", default=None, help="Insist on, or decline, real time."
    ),
    click.option("--headless", is_flag=True, help="Draw without a window."),
    click.option("--full-screen", is_flag=True, help="Fill the screen."),
    click.option(
        "--overlay", type=click.Choice(OVERLAYS), default=OVERLAYS[0], help="What to show of it."
    ),
    click.option(
        "--press",
        type=Press(),
        multiple=True,
        help="Press a key so many seconds after warm-up, such as 2.5:f5; repeat for more.",
    ),
    click.option("--frames", type=int, metavar="N", help="Stop after N frames."),
    click.option("--seconds", type=float, metavar="S", help="Stop after S seconds."),
    click.option("--record", type=FILE, help="Write a video (.mp4)."),
    click.option("--screenshot", type=FILE, help="Write the last frame (.png)."),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev."),
    json_option,
)
def run(
    app: str, source: str | None, static: bool, no_offload: bool, as_json: bool, **rest: Any
) -> None:
    """Run APP: the name of a bundled app, or path/to/file.py[:Class].

    Without --source an app uses the camera; where there is none, and with --headless, its own
    clip in a loop.
    """
    chosen = RunOptions(
        source=parse_source(source),
        mode=MODES[1] if static else MODES[0],
        offload=not no_offload,
        **rest,
    )
    with console.uncollected(), console.work(as_json), console.Progress() as progress:
        from heimdall.runtime import run_app

        summary = run_app(app, chosen, progress)
    _show(as_json, summary, "run_summary")


@main.command()
@json_option
def devices(as_json: bool) -> None:
    """Show GPU, software GPU, OpenGL, onnxruntime and cameras."""
    with console.work(as_json):
        from heimdall.devices import list_devices

        report = list_devices()
    _show(as_json, report, "device_report")


@main.command()
@json_option
def models(as_json: bool) -> None:
    """List the bundled networks."""
    with console.work(as_json):
        from heimdall.models.catalog import CATALOG
        from heimdall.paths import ASSETS

        found = [
            {
                "name": entry.name,
                "title": entry.title,
                "task": entry.task,
                "licence": entry.licence,
                "files": list(entry.files),
                "size_mb": sum((ASSETS / "models" / f).stat().st_size for f in entry.files) / 1e6,
            }
            for entry in CATALOG.values()
        ]
    if as_json:
        console.print_json({"schema": 1, "models": found})
    else:
        _show(False, found, "model_list")


@main.command()
@click.argument("model")
@options(
    click.option(
        "--tune",
        is_flag=True,
        help="First try other kernels for each convolution, and keep the fastest.",
    ),
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
    _show(as_json, result, "profile_report")


def _profiles(
    model: str,
    shapes: dict[str, tuple[int, ...]],
    device: str | None,
    gpu_cores: int | None,
    force_fallback: tuple[str, ...],
    remeasure: bool,
    tuned: list[dict[str, Any]] | None = None,
) -> list[NetworkProfile]:
    """The model's networks, profiled where they would run; with a list as ``tuned``, kernels
    are tuned first, and what came of it is added to it."""
    from heimdall import inspection, softgpu
    from heimdall.processors import open_processors

    graphs = inspection.load_networks(model, shapes)
    software = softgpu.plan(cores=gpu_cores)
    with console.Progress() as progress, open_processors(device, software) as there:
        if tuned is not None:
            tuned += inspection.tune(graphs, there, progress)
        return inspection.profile_model(
            graphs,
            there,
            force_fallback=force_fallback,
            remeasure=remeasure or tuned is not None,
            progress=progress,
        )


@main.command()
@click.argument("model")
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
    as_json: bool,
    **measuring: Any,
) -> None:
    """Cut MODEL into chunks that fit the gap between two frames (static mode)."""
    with console.work(as_json):
        from heimdall import inspection
        from heimdall.analyzer.partition import strategies

        check_writable("--png", png, (".png",))
        if strategy not in strategies():
            raise ConfigError(unknown("partition strategy", strategy, strategies()))
        found = _profiles(model, **measuring)
        chunks: list[dict[str, Any]] = []
        drawn = []
        alone = len(found) == 1
        for each in found:
            cuts = inspection.cut(each, gap_ms, strategy, margin_ms, ops)
            chunks += inspection.describe_chunks(each, cuts)
            if png is not None:
                limit = (gap_ms, margin_ms if strategy == "heimdall" else 0.0)
                drawn.append(inspection.draw(each, cuts, *limit, png, alone=alone))
    result = {
        "schema": 1,
        "model": model,
        "strategy": strategy,
        "gap_ms": gap_ms,
        "chunks": chunks,
        "pictures": [str(path) for path in drawn],
    }
    _show(as_json, result, "partition_report")


@main.command()
@click.argument("model", nargs=-1)
@options(
    click.option("--all", "every", is_flag=True, help="Every bundled model."),
    click.option("--cores", type=click.IntRange(1), help="Cores for both sides."),
    device_option,
    json_option,
)
def check(
    model: tuple[str, ...], every: bool, cores: int | None, device: str | None, as_json: bool
) -> None:
    """Compare each MODEL on the GPU engine, chunk by chunk, with onnxruntime.

    Both sides compute on the same number of cores.
    """
    if not model and not every:
        raise click.UsageError("Missing argument 'MODEL...', or --all.")
    with console.work(as_json), console.Progress() as progress:
        from heimdall import inspection

        results = inspection.check([*model], every, device, cores, progress)
    _show(as_json, results, "check_report")


@main.command()
@click.argument("scenario")
@options(
    click.option(
        "--systems",
        default="multithread,fixed-5,max-min,max-total",
        show_default=True,
        metavar="A,B,C",
        help="What to compare: baselines, and SCHEDULER[-static][-nooffload].",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        default=15.0,
        show_default=True,
        help="How long each system runs after its warm-up.",
    ),
    click.option("--size", type=Size(), help="Picture drawn, such as 1280x720."),
    device_option,
    cores_option,
    click.option(
        "--realtime/--no-realtime", default=None, help="Insist on, or decline, real time."
    ),
    click.option(
        "--fallback/--no-fallback",
        default=True,
        help="Run on the CPU what the scenario forces there (default), or do not.",
    ),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev (one system)."),
    click.option("--report", type=FILE, help="Write a page with charts and timelines (.html)."),
    json_option,
)
def bench(scenario: str, systems: str, as_json: bool, **rest: Any) -> None:
    """Run SCENARIO live under several systems, one after the other, and compare.

    SCENARIO is a bundled name or a .toml file that names an app and overrides it. Interrupted,
    it shows the systems that have finished.
    """
    with console.work(as_json), console.Progress() as progress:
        from heimdall.bench.runner import compare

        command = shlex.join(["heimdall", *sys.argv[1:]])
        result = compare(scenario, systems, command=command, progress=progress, **rest)
    _show(as_json, result, "bench_report")
    if result["interrupted"]:
        raise click.Abort
    if not result["systems"]:
        raise HeimdallError("no system could run")


@main.command()
@click.argument("name")
@options(
    click.option(
        "--folder",
        type=click.Path(file_okay=False, path_type=Path),
        default=Path(),
        help="Where to write it.",
    ),
    json_option,
)
def new(name: str, folder: Path, as_json: bool) -> None:
    """Write NAME.py, an app that runs and explains itself, and its test."""
    with console.work(as_json):
        from heimdall.scaffold import new_app

        app, test = new_app(name, folder)
    if as_json:
        console.print_json({"schema": 1, "app": str(app), "test": str(test)})
    else:
        click.echo(
            f"{app}\n{test}\n\nRun it:   heimdall run {app}\nTest it:  python -m pytest {test}"
        )


@main.command()
@click.argument("file", type=FILE)
@json_option
def trace(file: Path, as_json: bool) -> None:
    """Replay a run recorded with `run --trace` and show where a fresh coordinator differs."""
    with console.work(as_json):
        from heimdall.trace import read_recording

        result = _replay(read_recording(file))
    _show(as_json, result, "replay_report")


def _replay(recording: Recording) -> dict[str, Any]:
    """The differences; ``stopped`` is why the replay could not go on, or None."""
    from heimdall.coordinator.replay import replay

    found: list[dict[str, Any]] = []
    stopped = None
    try:
        for each in replay(recording.config, recording.records):
            found.append(
                {
                    "step": each.index,
                    "now_ms": each.now_ns / 1e6,
                    "recorded": [str(action) for action in each.recorded],
                    "replayed": [str(action) for action in each.replayed],
                }
            )
    except ConfigError:
        raise
    except HeimdallError as error:  # it has gone another way, and an event cannot happen there
        stopped = str(error)
    steps = len(recording.records)
    return {"schema": 1, "steps": steps, "differences": found, "stopped": stopped}


@main.command()
@click.argument("scenario")
@options(
    click.option(
        "--device",
        default="lg-v50",
        show_default=True,
        metavar="NAME",
        help="A phone's profile (name or .toml), here (this machine), or a run's trace (.json).",
    ),
    click.option(
        "--system",
        default="max-total",
        show_default=True,
        metavar="NAME",
        help="multithread, fixed-5, SCHEDULER[-static][-nooffload].",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        help="Virtual time that is counted, after the warm-up.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random."),
    click.option("--render-ms", type=float, metavar="MS", help="Rendering takes so long a frame."),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev."),
    click.option("--report", type=FILE, help="Write a page with charts and a timeline (.html)."),
    json_option,
)
def simulate(
    scenario: str, trace: Path | None, report: Path | None, as_json: bool, **rest: Any
) -> None:
    """Run SCENARIO on a virtual clock: would it hold its frame rate on that device?"""
    with console.work(as_json), console.Progress() as progress:
        from heimdall.simulator.simulate import simulate as run_simulation

        check_writable("--trace", trace)
        check_writable("--report", report, (".html",))
        with tempfile.TemporaryDirectory() as folder:
            if report is not None and trace is None:
                trace = Path(folder) / "trace.json"
            result = run_simulation(scenario, trace=trace, progress=progress, **rest)
            if report is not None and trace is not None:
                from heimdall.bench.report import write_simulation  # matplotlib: half a second

                command = shlex.join(["heimdall", *sys.argv[1:]])
                write_simulation(report, result, trace, command)
    _show(as_json, result, "run_summary")


def _show(as_json: bool, result: Any, table: str) -> None:
    """Print a result as JSON, or through the function of ``heimdall.tables`` named ``table``."""
    if as_json:
        console.print_json(result)
        return
    from heimdall import tables

    tables.show(*getattr(tables, table)(result))


if __name__ == "__main__":
    main()
