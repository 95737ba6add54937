"""The command line: ``heimdall run APP`` and the tools around it.

Commands parse, call the module that does the work, and show what it returns. Heavy imports
are inside them, so that ``heimdall --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from heimdall import console
from heimdall.errors import ConfigError
from heimdall.options import CONTENT, MODES, RunOptions, parse_size, parse_source


class Size(click.ParamType):
    """WIDTHxHEIGHT in pixels."""

    name = "WxH"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        try:
            return value if isinstance(value, tuple) else parse_size(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)


FILE = click.Path(dir_okay=False, path_type=Path)
json_option = click.option("as_json", "--json", is_flag=True, help="Print one JSON value.")
device_option = click.option(
    "--device", metavar="NAME", help="OpenCL device: a part of its name, or its number."
)


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
    click.option("--gpu-cores", type=int, metavar="N", help="Cores of the software GPU."),
    click.option(
        "--realtime/--no-realtime", default=None, help="Insist on, or decline, real time."
    ),
    click.option("--headless", is_flag=True, help="Draw without a window."),
    click.option("--frames", type=int, metavar="N", help="Stop after N frames."),
    click.option("--seconds", type=float, metavar="S", help="Stop after S seconds."),
    click.option("--record", type=FILE, help="Write a video (.mp4)."),
    click.option("--screenshot", type=FILE, help="Write the last frame (.png)."),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev."),
    click.option("--seed", type=int, default=0, help="Seed of every random choice."),
    json_option,
)
def run(
    app: str, source: str | None, static: bool, no_offload: bool, as_json: bool, **rest: Any
) -> None:
    """Run APP: the name of a bundled app, or path/to/file.py[:Class].

    Without --source an app uses its own clip, in a loop.
    """
    chosen = RunOptions(
        source=parse_source(source),
        mode=MODES[1] if static else MODES[0],
        offload=not no_offload,
        json=as_json,
        **rest,
    )
    for path in (chosen.record, chosen.screenshot, chosen.trace):
        if path is not None:
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
    with console.work(as_json), console.Progress() as progress:
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


def _show(as_json: bool, result: Any, table: str) -> None:
    """Print a result as JSON, or through the function of ``heimdall.tables`` named ``table``."""
    if as_json:
        console.print_json(result)
        return
    from heimdall import tables

    tables.show(*getattr(tables, table)(result))


if __name__ == "__main__":
    main()
