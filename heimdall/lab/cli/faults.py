"""The commands that put faults into a run: one after the other, and all the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    NAMES,
    SIZE,
    Named,
    device_option,
    json_option,
    options,
    show,
    typed_command,
)
from heimdall.system.extras import need


def fault_names() -> list[str]:
    """What can be tried."""
    from heimdall.lab.faults.table import fault_names as names

    return names()


@click.command(cls=console.Command)
@click.argument("app", default="shopping")
@options(
    click.option(
        "--only",
        cls=Named,
        names=fault_names,
        listed=True,
        type=NAMES,
        metavar="A,B",
        help="Only these.",
    ),
    click.option("--list", "listing", is_flag=True, help="List the faults, and try none."),
    click.option(
        "--seconds",
        type=float,
        default=15.0,
        show_default=True,
        help="How long each run lasts after its warm-up; the fault is there in its middle third.",
    ),
    click.option(
        "--count",
        type=int,
        default=200,
        show_default=True,
        help="Of the fault signals: how many runs are told to end.",
    ),
    device_option,
    click.option("--size", type=SIZE, help="Picture drawn, such as 1280x720."),
    json_option,
)
def faults(
    app: str, only: tuple[str, ...] | None, listing: bool, as_json: bool, **asked: Any
) -> int:
    """Run APP (shopping by default) once for each fault there is, and judge how it was borne.

    A chunk that never ends, a preprocess that raises, a camera that is unplugged, a full disk: each
    is put into a live run, in a process of its own that is watched from outside. Frames must go on,
    other DNNs lose nothing, the fault is named, and all is as before within two seconds of its end.

    The status is 1 if one of them was not borne.
    """
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.faults.request import Request
        from heimdall.lab.faults.runner import listed, try_faults

        result = listed() if listing else try_faults(Request(app, **asked), only or (), progress)
    shown = "listed_faults" if listing else "fault_report"
    show(as_json, result, f"heimdall.lab.cli.fault_tables:{shown}")
    if result.get("interrupted"):
        raise click.Abort
    return int(not all(each["passed"] for each in result["faults"])) if not listing else 0


@click.command(cls=console.Command)
@options(
    click.option(
        "--minutes",
        type=float,
        default=10.0,
        show_default=True,
        help="How long it takes, all apps together.",
    ),
    click.option("--output", type=FILE, help="Write a page with charts (.html)."),
    device_option,
    click.option("--size", type=SIZE, help="Picture drawn, such as 1280x720."),
    json_option,
)
def soak(minutes: float, output: Path | None, as_json: bool, **asked: Any) -> int:
    """Run every bundled app in turn while chunks, preprocess and decode fail one time in a hundred.

    Memory may grow by less than 0.5 MB a minute, and no thread or handle may be gained. Late frames
    are counted. The status is 1 if an app is out of these bounds.
    """
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.faults.request import Request
        from heimdall.lab.faults.soak import soak as run_soak

        if output is not None:
            need("matplotlib", "lab", "--output")
            check_writable("output", output)
        result = run_soak(Request(**asked), minutes, progress)
        if output is not None:
            from heimdall.lab.faults.soak_report import write_report

            write_report(output, result, typed_command())
    show(as_json, result, "heimdall.lab.cli.fault_tables:soak_report")
    if result["interrupted"]:
        raise click.Abort
    return int(not all(each["passed"] for each in result["apps"]))
