"""Commands that compare systems on a scenario: live, and on a virtual clock."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from heimdall.app.options import check_writable
from heimdall.cli import console
from heimdall.cli.parameters import (
    FILE,
    SIZE,
    Named,
    cores_option,
    device_option,
    json_option,
    options,
    policy_option,
    realtime_option,
    show,
    system_names,
    typed_command,
)
from heimdall.errors import HeimdallError


@click.command(cls=console.Command)
@click.argument("scenario")
@options(
    click.option(
        "--systems",
        cls=Named,
        names=system_names,
        default="multithread,fixed-5,max-min,max-total",
        show_default=True,
        metavar="A,B,C",
        help="What to compare: baselines, and SCHEDULER[-static|-static-runs][-nooffload].",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        default=15.0,
        show_default=True,
        help="How long each system runs after its warm-up.",
    ),
    click.option("--size", type=SIZE, help="Picture drawn, such as 1280x720."),
    device_option,
    cores_option,
    realtime_option,
    policy_option,
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

        command = typed_command()
        result = compare(scenario, systems, command=command, progress=progress, **rest)
    show(as_json, result, "bench_report")
    if result["interrupted"]:
        raise click.Abort
    if not result["systems"]:
        raise HeimdallError("no system could run")


@click.command(cls=console.Command)
@click.argument("scenario")
@options(
    click.option(
        "--device",
        default="lg-v50",
        show_default=True,
        metavar="NAME",
        help="A phone or a measured machine (name or .toml; see heimdall devices --measure), here "
        "(this machine), or a run's trace (.json).",
    ),
    click.option(
        "--system",
        cls=Named,
        names=system_names,
        default="max-total",
        show_default=True,
        metavar="NAME",
        help="A baseline, or SCHEDULER[-static|-static-runs][-nooffload].",
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
    click.option("--fps", type=float, help="Target frame rate; the scenario's by default."),
    click.option("--size", type=SIZE, help="Picture drawn; the scenario's by default."),
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

        check_writable("trace", trace)
        check_writable("report", report, (".html",))
        with tempfile.TemporaryDirectory() as folder:
            if report is not None and trace is None:
                trace = Path(folder) / "trace.json"
            result = run_simulation(scenario, trace=trace, progress=progress, **rest)
            if report is not None and trace is not None:
                from heimdall.bench.report import write_simulation  # matplotlib: half a second

                command = typed_command()
                write_simulation(report, result, trace, command)
    show(as_json, result, "run_summary")
