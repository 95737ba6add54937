"""Several systems simulated on one scenario, with the same chances: the same trace of requests."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.errors import HeimdallError
from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.bench.systems import parse_systems
from heimdall.lab.simulator.parallel import Workers
from heimdall.lab.simulator.seeds import check_seeds, run_seeds
from heimdall.lab.simulator.simulate import prepare_any
from heimdall.runtime.telemetry.figures import SCHEMA
from heimdall.runtime.telemetry.statistics import over_runs

log = logging.getLogger(__name__)


def compare_simulated(
    scenario: Scenario | str,
    device: str | None,
    systems: str,
    *,
    seeds: int = 1,
    seed: int = 0,
    workers: Workers = None,
    traces: Mapping[str, Path] | None = None,
    progress: Progress = no_progress,
    **options: Any,
) -> dict[str, Any]:
    """What ``heimdall simulate --systems A,B --json`` prints: as ``heimdall bench`` does, of each
    system its first run in ``systems``, all in ``runs``, what they say together in ``over_runs``.

    ``seeds``: how many, from ``seed`` on, each with the same chances for every system; ``traces``:
    by system, a file for the timeline of its first. All else, and what is raised: see ``simulate``.
    Nothing runs unless every system makes sense.
    """
    chosen = parse_systems(systems)
    check_seeds(seeds)
    workload = load_scenario(scenario) if isinstance(scenario, str) else scenario
    experiments = {
        each.name: prepare_any(workload, device, each.typed, progress=progress, **options)
        for each in chosen
    }
    for experiment in experiments.values():
        experiment.begin(seed)
    next(iter(experiments.values())).warn()
    numbers = range(seed, seed + seeds)
    runs = {
        name: run_seeds(experiment, numbers, 1 if seeds == 1 else workers, progress)
        for name, experiment in experiments.items()
    }
    first = {name: each[0] for name, each in runs.items()}
    for name, path in (traces or {}).items():
        try:
            experiments[name].run(seed, path)
        except HeimdallError as error:  # figures are worth more than a timeline
            log.error("%s: no timeline: %s", name, error)
    return {
        "schema": SCHEMA,
        "simulated": True,
        "scenario": workload.name,
        "title": workload.title,
        "machine": None,
        "device": next(iter(first.values()))["device"],
        "seeds": list(numbers),
        "variations": dict(options.get("variations") or {}),
        "systems": first,
        "runs": runs,
        "over_runs": {name: over_runs(each) for name, each in runs.items()},
        "failures": [],
        "interrupted": False,
    }
