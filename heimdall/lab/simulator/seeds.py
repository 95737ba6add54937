"""One simulation with many chances: what holds for one seed only is no result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.errors import ArgumentError
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.simulator.parallel import Workers, results
from heimdall.lab.simulator.serving import RequestExperiment
from heimdall.lab.simulator.simulate import Experiment, prepare_any
from heimdall.runtime.telemetry.figures import SCHEMA
from heimdall.runtime.telemetry.statistics import over_runs

MOST_SEEDS = 10_000


def simulate_seeds(
    scenario: Scenario | str,
    device: str | None,
    system: str | None,
    *,
    seeds: int = 16,
    seed: int = 0,
    workers: Workers = None,
    progress: Progress = no_progress,
    **options: Any,
) -> dict[str, Any]:
    """The runs of ``seeds`` seeds from ``seed`` on, each as ``simulate`` returns it, and what they
    say together (``over_runs``). ``workers``: see ``parallel.results``; all else, and what is
    raised: see ``simulate``."""
    check_seeds(seeds)
    experiment = prepare_any(scenario, device, system, progress=progress, **options)
    experiment.warn()
    numbers = range(seed, seed + seeds)
    runs = run_seeds(experiment, numbers, workers, progress)
    return {
        "schema": SCHEMA,
        "simulated": True,
        "scenario": experiment.scenario.name,
        "system": experiment.system.name,
        "device": runs[0]["device"],
        "variations": dict(experiment.values),
        "seeds": list(numbers),
        "runs": runs,
        "over_runs": over_runs(runs),
    }


def run_seeds(
    experiment: Experiment | RequestExperiment,
    seeds: Sequence[int],
    workers: Workers = None,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """The summaries of an experiment, in the order of its seeds."""
    experiment.begin(seeds[0])  # what makes no sense is said here, by this process
    found: dict[int, dict[str, Any]] = {}
    what = f"{experiment.scenario.name}, {experiment.system.name}"
    progress(what, 0, len(seeds))
    calls = [(experiment, seed) for seed in seeds]
    for index, summary in results(_run, calls, workers):
        found[index] = summary
        progress(what, len(found), len(seeds))
    return [found[index] for index in range(len(seeds))]


def _run(experiment: Experiment | RequestExperiment, seed: int) -> dict[str, Any]:
    return experiment.run(seed)


def check_seeds(seeds: object) -> None:
    """Raise ArgumentError unless it is a number of seeds that can be run."""
    if not isinstance(seeds, int) or isinstance(seeds, bool) or not 1 <= seeds <= MOST_SEEDS:
        problem = f"must be a whole number from 1 to {MOST_SEEDS}"
        raise ArgumentError(problem, argument="seeds", value=seeds)
