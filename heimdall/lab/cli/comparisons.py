"""Commands that compare systems on a scenario: live, and on a virtual clock."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
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
    completing,
    cores_option,
    device_option,
    input_options,
    json_option,
    options,
    policy_option,
    realtime_option,
    show,
    typed_command,
)
from heimdall.errors import HeimdallError
from heimdall.lab.cli.parameters import (
    MODEL_FILE,
    VARIATION,
    WORKERS,
    device_names,
    scenario_argument,
    scenario_names,
    system_names,
)
from heimdall.system.extras import need

BENCH_S = 15.0  # each system, where a scenario does not end by itself
_FPS = "Target frame rate; the scenario's by default. Has one of requests alone draw frames, too."
_OF_FRAMES = ("fps", "size", "fallback", "trace")
_OF_REQUESTS = ("files", "shapes", "value", "processors")


@click.command(cls=console.Command)
@scenario_argument
@options(
    click.option(
        "--systems",
        cls=Named,
        names=system_names,
        listed=True,
        default="multithread,fixed-5,max-min,max-total",
        show_default=True,
        metavar="A,B,C",
        help="What to compare: baselines, and SCHEDULER[-static|-static-runs][-nooffload], by name "
        "or path/to/file.py[:Class].",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        help="How long each system runs after its warm-up: 15 by default. Of requests: when they "
        "stop to come; as the scenario says by default.",
    ),
    click.option(
        "--runs",
        type=click.IntRange(1),
        default=1,
        show_default=True,
        metavar="N",
        help="Run all systems N times, in turns, for means with their 95% intervals.",
    ),
    click.option("--fps", type=float, help=_FPS),
    click.option("--size", type=SIZE, help="Picture drawn, such as 1280x720."),
    click.option(
        "--model",
        "files",
        type=MODEL_FILE,
        multiple=True,
        callback=lambda ctx, param, values: dict(values),
        help="Of requests: the file of a model, instead of the scenario's; repeat for more.",
    ),
    input_options,
    click.option(
        "--processors",
        type=NAMES,
        help="Of requests: what runs them: gpu, cpu, further devices; as the scenario says by "
        "default.",
    ),
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
@click.pass_context
def bench(context: click.Context, scenario: str, systems: str, as_json: bool, **rest: Any) -> None:
    """Run SCENARIO live under several systems, in turns, and compare.

    SCENARIO is a bundled name or a .toml file: one that names an app and overrides it, one of
    requests, whose models need files, or both. Interrupted, it shows the systems that have
    finished.
    """
    report = rest.pop("report")
    _check_report(report)
    with console.work(as_json):
        from heimdall.lab.bench.runner import compare
        from heimdall.lab.bench.scenario import load_scenario

        workload = load_scenario(scenario).drawing(rest["fps"], rest["size"])
        refused = () if workload.draws else _OF_FRAMES
        for name in refused if workload.models else _OF_REQUESTS:
            _refuse(context, (name,), f"is not for scenario {workload.name!r}")
            rest.pop(name, None)
        if workload.draws:
            rest["seconds"] = rest["seconds"] or BENCH_S
    run = partial(compare, scenario, systems, **rest)
    result = _compare(as_json, run, systems, report, rest.get("trace"))
    if result["interrupted"]:
        raise click.Abort
    if not result["systems"]:
        raise HeimdallError("no system could run")


def _compare(
    as_json: bool,
    run: Callable[..., dict[str, Any]],
    systems: str,
    report: Path | None,
    trace: Path | None = None,
) -> dict[str, Any]:
    """Run, and show the figures; then make the page: its faults lose none of them."""
    with tempfile.TemporaryDirectory() as folder:
        with console.work(as_json), console.ProgressBars() as progress:
            from heimdall.lab.bench.systems import parse_systems

            chosen = parse_systems(systems)
            names = () if report is None else (system.name for system in chosen)
            traces = {
                name: trace or Path(folder) / f"{index}.json" for index, name in enumerate(names)
            }
            result = run(traces=traces, progress=progress)
        show(as_json, result, "heimdall.lab.cli.run_tables:compared")
        if report is not None:
            with console.work(as_json):
                from heimdall.lab.bench.report import write_comparison  # matplotlib: half a second

                write_comparison(report, result, chosen, traces, typed_command())
    return result


def _check_report(report: Path | None) -> None:
    """Find out before the runs that there can be no page."""
    if report is not None:
        need("matplotlib", "lab", "--report")
        check_writable("report", report, (".html",))


@click.command(cls=console.Command)
@click.argument("scenario", required=False, shell_complete=completing(scenario_names))
@options(
    click.option(
        "--device",
        metavar="NAME",
        shell_complete=completing(device_names),
        help="A phone or a measured machine (name or .toml; see heimdall measure), here "
        "(this machine), or a run's trace (.json); lg-v50 by default, or a scenario of requests' "
        "own.",
    ),
    click.option(
        "--system",
        cls=Named,
        names=system_names,
        metavar="NAME",
        help="A baseline, SCHEDULER[-static|-static-runs][-nooffload] (a name, or "
        "path/to/file.py[:Class]), or a queue of requests; max-total by default, or a scenario of "
        "requests' own.",
    ),
    click.option(
        "--systems",
        metavar="A,B,C",
        shell_complete=completing(system_names, listed=True),
        help="Compare several, each with the same chances.",
    ),
    click.option(
        "--seconds",
        type=click.FloatRange(0, min_open=True),
        help="Virtual time that is counted, after the warm-up: 60 by default. Of requests: when "
        "they stop to come; as the scenario says by default.",
    ),
    click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random."),
    click.option(
        "--seeds",
        type=click.IntRange(1),
        metavar="N",
        help="Run N seeds, from --seed on, for means with their 95% intervals.",
    ),
    click.option(
        "--vary",
        "variations",
        type=VARIATION,
        multiple=True,
        callback=lambda ctx, param, values: dict(values),
        help="Another figure of the machine, such as turn_ms=20; repeat for more.",
    ),
    click.option("--render-ms", type=float, metavar="MS", help="Rendering takes so long a frame."),
    click.option("--fps", type=float, help=_FPS),
    click.option("--size", type=SIZE, help="Picture drawn; the scenario's by default."),
    click.option("--trace", type=FILE, help="Write a timeline for ui.perfetto.dev."),
    click.option("--report", type=FILE, help="Write a page with charts and a timeline (.html)."),
    click.option(
        "--sweep",
        type=FILE,
        metavar="FILE",
        help="Run every point of a .toml file instead: it names scenario, systems and what varies.",
    ),
    click.option(
        "--output",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Where a sweep keeps its runs (.jsonl, or a folder; out by default), to go on there.",
    ),
    click.option(
        "--workers",
        type=WORKERS,
        help="Processes for seeds and sweeps (one a core by default), or a cluster: "
        "dask://HOST:PORT.",
    ),
    json_option,
)
@click.pass_context
def simulate(context: click.Context, scenario: str | None, as_json: bool, **rest: Any) -> None:
    """Run SCENARIO on a virtual clock: would it hold its frame rate on that device? Would its
    requests be answered in time?

    With --seeds many times, by other chances; with --systems under several, which get the same
    requests and chances; with --sweep every point of a file.
    """
    _check_report(rest["report"])
    for name in ("systems", "seeds", "sweep", "output", "workers"):
        if rest[name] is None:
            del rest[name]
    if "sweep" in rest:
        _check_only(context, "sweep", ("sweep", "output", "workers", "as_json"))
        _sweep(as_json, **rest)
        return
    if scenario is None:
        raise click.UsageError("Missing argument 'SCENARIO' (or --sweep FILE).", context)
    _refuse(context, ("output",), "is for --sweep")
    if "systems" in rest:
        _refuse(context, ("system", "trace"), "is of one run: leave out --systems")
        _simulate_several(scenario, as_json, **rest)
        return
    if "seeds" in rest:
        _refuse(context, ("trace", "report"), "is of one run: leave out --seeds")
        _simulate_seeds(scenario, as_json, **rest)
        return
    _refuse(context, ("workers",), "is for --seeds and --sweep")
    _simulate_once(scenario, as_json, **rest)


def _simulate_once(
    scenario: str, as_json: bool, trace: Path | None, report: Path | None, **rest: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if report is not None and trace is None:
            trace = Path(folder) / "trace.json"
        with console.work(as_json), console.ProgressBars() as progress:
            from heimdall.lab.simulator.simulate import simulate as run_simulation

            check_writable("trace", trace)
            result = run_simulation(scenario, trace=trace, progress=progress, **rest)
        show(as_json, result, "heimdall.cli.run_tables:run_summary")
        if report is not None and trace is not None:
            with console.work(as_json):
                from heimdall.lab.bench.report import write_simulation  # matplotlib: half a second
                from heimdall.lab.bench.systems import parse_system

                policy = parse_system(rest["system"]).own_policy if rest["system"] else None
                write_simulation(report, result, trace, typed_command(), policy)


def _simulate_several(scenario: str, as_json: bool, **rest: Any) -> None:
    del rest["trace"], rest["system"]
    report = rest.pop("report")
    with console.work(as_json):
        from heimdall.lab.simulator.side_by_side import compare_simulated
    _compare(as_json, partial(compare_simulated, scenario, **rest), rest["systems"], report)


def _simulate_seeds(scenario: str, as_json: bool, **rest: Any) -> None:
    del rest["trace"], rest["report"]
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.simulator.seeds import simulate_seeds

        result = simulate_seeds(scenario, progress=progress, **rest)
    show(as_json, result, "heimdall.lab.cli.run_tables:seeds_report")


def _sweep(as_json: bool, sweep: Path, **rest: Any) -> None:
    options = {name: rest[name] for name in ("output", "workers") if name in rest}
    with console.work(as_json), console.ProgressBars() as progress:
        from heimdall.lab.simulator.sweep import run_sweep

        result = run_sweep(sweep, progress=progress, **options)
    show(as_json, result, "heimdall.lab.cli.run_tables:sweep_report")
    if result["interrupted"]:
        raise click.Abort


def _typed(context: click.Context) -> list[click.Parameter]:
    """What stands on the command line."""
    given = click.core.ParameterSource.COMMANDLINE
    return [
        each
        for each in context.command.params
        if each.name and context.get_parameter_source(each.name) is given
    ]


def _check_only(context: click.Context, name: str, allowed: Sequence[str]) -> None:
    """Refuse what was typed beside ``--name`` and goes with it no more than with a file."""
    for each in _typed(context):
        if each.name not in allowed:
            said = each.opts[0] if isinstance(each, click.Option) else "SCENARIO"
            raise click.UsageError(f"{said} stands in the file of --{name}: leave it out", context)


def _refuse(context: click.Context, names: Sequence[str], why: str) -> None:
    for each in _typed(context):
        if each.name in names:
            raise click.UsageError(f"{each.opts[0]} {why}", context)
