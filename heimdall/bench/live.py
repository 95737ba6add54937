"""One system, live: a scenario's app for some seconds on this machine."""

from __future__ import annotations

import logging
import time
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import create
from heimdall.app.options import RunOptions
from heimdall.bench.alone import measure_useful_ms, too_slow_alone
from heimdall.bench.energy import EnergyMeter
from heimdall.bench.loads import fit
from heimdall.bench.scenario import Scenario
from heimdall.bench.systems import System
from heimdall.bench.uncoordinated import Uncoordinated
from heimdall.bench.workload import as_app
from heimdall.runtime.run import open_run
from heimdall.runtime.setup import Setup
from heimdall.runtime.telemetry.display import STATUS_INTERVAL_NS

log = logging.getLogger(__name__)


def run_live(
    scenario: Scenario,
    system: System,
    options: RunOptions,
    progress: Progress = no_progress,
    *,
    lone_times: bool = True,
) -> dict[str, Any]:
    """The run summary of ``scenario`` under ``system``; ``options`` say for how long, and on
    which device. Warns first of a DNN that cannot meet its latency constraint even alone.
    ``lone_times``: measure afterwards what a run's work takes alone, for ``useful_ms``.
    ``power_w`` is the processor's mean power over the run, its warm-up included, or None.
    ``loads``: of each DNN with ``alone_ms`` its input size, and what it takes alone.

    Raises HeimdallError when it cannot start.
    """
    entered_s = time.perf_counter()
    scenario, loads = fit(scenario, options, progress)
    app = create(as_app(scenario))
    baseline = None if system.coordinated else Uncoordinated(system)
    with open_run(app, options, progress, baseline) as run:
        for warning in hopeless(run.setup):
            log.warning("%s", warning)
        meter = EnergyMeter()
        summary = run.until_finished()
        power_w = meter.watts()
        run.halt()  # what is measured now has the GPU for itself
        if system.coordinated and lone_times:
            words = round(summary["seconds"] * 1e9 / STATUS_INTERVAL_NS)
            drawings = [(summary["frames"], run.redraw_ns), (words, run.reprint_ns)]
            summary["gpu"]["useful_ms"] = measure_useful_ms(
                summary, drawings, run.setup.deployments, progress
            )
    wall_s = round(time.perf_counter() - entered_s, 3)
    return {
        **summary,
        "system": system.name,
        "loads": {name: load.to_dict() for name, load in loads.items()},
        "power_w": power_w,
        "wall_s": wall_s,
    }


def hopeless(setup: Setup) -> list[str]:
    """A sentence for each DNN that would miss its constraint with the gaps for itself."""
    render_ms = setup.lone_render_ns / 1e6
    found = [
        too_slow_alone(deployment.plan, fps=setup.fps, render_ms=render_ms)
        for deployment in setup.deployments.values()
    ]
    return [sentence for sentence in found if sentence]
