"""Systems on a scenario of requests, live and in turns: what ``heimdall bench`` returns of one."""

from __future__ import annotations

import gc
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number, check_writable
from heimdall.bench.live_requests import at_load, measure_alone, run_requests, with_files
from heimdall.bench.runner import MOST_RUNS, SCHEMA, machine, run_all
from heimdall.bench.scenario import Scenario
from heimdall.bench.settings import LONGEST_S
from heimdall.bench.statistics import over_runs
from heimdall.bench.systems import System, parse_systems, queue_names, refuse_planned
from heimdall.errors import ConfigError

log = logging.getLogger(__name__)


def compare_requests(
    scenario: Scenario,
    systems: str,
    *,
    files: Mapping[str, Path] | None = None,
    processors: Sequence[str] | None = None,
    seconds: float | None = None,
    runs: int = 1,
    report: Path | None = None,
    command: str = "",
    progress: Progress = no_progress,
    **options: Any,
) -> dict[str, Any]:
    """What ``heimdall bench --json`` prints of a scenario of requests; see ``runner.compare``.

    ``files``: of models, instead of the scenario's; ``processors``: what requests run on, such as
    ("gpu", "cpu") (None: as the scenario says); ``seconds``: when requests stop to come, instead of
    what the scenario says; other ``options`` are a session's. Every run of
    a turn has the same trace; the turns differ.

    Raises ConfigError before anything runs when a name or value is wrong, and for a system without
    a queue of requests.
    """
    chosen = parse_systems(systems)
    for system in chosen:
        if not system.coordinated:
            names = ", ".join(queue_names())
            raise ConfigError(f"{system.name} has no queue of requests: choose one of {names}")
        refuse_planned(system)
    check_number("seconds", seconds, above=0, most=LONGEST_S)
    check_number("runs", runs, least=1, most=MOST_RUNS)
    check_writable("report", report, (".html",))
    if seconds is not None:
        scenario = scenario.ending_after(seconds)
    if scenario.away:
        log.warning("no processor is taken away here: that is for heimdall simulate")
    scenario, found_files = with_files(scenario, files or {})
    asked = tuple(processors) if processors else scenario.processors
    how = {"processors": asked, "process": True, **options}
    lone_ns = measure_alone(scenario, found_files, how)
    gc.collect()  # sessions refer to themselves, and to networks: gigabytes in VGG-19's case
    scenario, faster = at_load(scenario, lone_ns)
    turns = dict.fromkeys((each.name for each in chosen), 0)

    def run(system: System) -> dict[str, Any]:
        seed, turns[system.name] = turns[system.name], turns[system.name] + 1
        summary = run_requests(scenario, found_files, system, lone_ns, how, seed)
        gc.collect()
        return {**summary, "faster": round(faster, 4)}

    found, failures, interrupted = run_all(chosen, run, progress, runs)
    summaries = {name: each[0] for name, each in found.items()}
    result = {
        "schema": SCHEMA,
        "scenario": scenario.name,
        "title": scenario.title,
        "machine": machine(),
        "device": next((each["device"] for each in summaries.values()), None),
        "seeds": list(range(runs)),
        "systems": summaries,
        "runs": found,
        "over_runs": {name: over_runs(each) for name, each in found.items()},
        "failures": failures,
        "interrupted": interrupted,
    }
    if report is not None:
        from heimdall.bench.report import write_report  # here: matplotlib takes half a second

        write_report(report, result, {}, command)
    return result
