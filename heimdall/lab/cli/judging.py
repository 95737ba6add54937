"""``heimdall measure``: what this machine is good for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from heimdall.cli import console
from heimdall.cli.parameters import FILE, device_option, json_option, options, show


@click.command(cls=console.Command)
@options(
    click.option(
        "--output",
        type=FILE,
        help="The file to write (.toml); device.toml by default.",
    ),
    click.option(
        "--parts",
        metavar="A,B,C",
        callback=lambda ctx, param, value: value and tuple(value.split(",")),
        help="Only these of engine (40 s), chunks (10 s), preemption (8 s), "
        "scenarios (8 runs of 10 s), energy (2 s).",
    ),
    click.option(
        "--seconds",
        type=float,
        metavar="S",
        help="Measure for so long instead of 140 s, each part its share.",
    ),
    device_option,
    json_option,
)
def measure(output: Path | None, as_json: bool, **asked: Any) -> None:
    """Judge this machine: a programme of about three minutes, after a warm-up that compiles and
    profiles what is new.

    The file is a row of docs/laboratory/devices.md, and a device for `heimdall simulate
    --device FILE` on any other machine. Where onnxruntime has a provider for the GPU, that way is
    measured too, after OpenCL, into a file of its own (device-cuda.toml).
    """
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.bench.judge.programme import Programme
        from heimdall.lab.bench.judge.programme import measure as run_programme

        given = {name: value for name, value in asked.items() if value is not None}
        result = run_programme(Programme(output or Path("device.toml"), **given), progress)
    show(as_json, result, "heimdall.lab.cli.tables:measure_report")
    if result["interrupted"]:
        raise click.Abort


@click.command(cls=console.Command, hidden=True)
@click.argument("part")
@click.argument("arguments")
def measure_part(part: str, arguments: str) -> None:
    """One part of `heimdall measure`, in a process of its own."""
    with console.work(True):
        from heimdall.lab.bench.judge.programme import CALLS, PROGRESS

        def progress(what: str, done: int, total: int) -> None:
            click.echo(f"{PROGRESS}{json.dumps([what, done, total])}", err=True)

        found = CALLS[part](**json.loads(arguments), progress=progress)
    console.print_json(found)
