"""Everything that the simulator can say: all runs on the phones of the paper, in a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.paper import networks
from benchmarks.paper.observed import observed
from benchmarks.paper.runs import LG, PIXEL, all_runs, variant
from heimdall.analyzer.profiler import Progress
from heimdall.bench.scenario import load_scenario
from heimdall.simulator.device import load_device
from heimdall.simulator.simulate import simulate


def simulated(traces: Path, seconds: float, progress: Progress) -> dict[str, Any]:
    """Results by the paths of values.toml. ``traces`` is a folder for the runs' traces."""
    phone = load_device(LG)
    results: dict[str, Any] = {
        "device": phone.title,
        "seconds": seconds,
        "render_ms": phone.gpu.render_ms,
        "networks": networks.of_phone(phone),
        "networks_of_pixel": networks.of_phone(load_device(PIXEL)),
        "runs": {},
    }
    todo = all_runs()
    for index, run in enumerate(todo):
        progress("simulating", index, len(todo))
        trace = traces / f"{run.name}.json"
        summary = simulate(
            variant(run, load_scenario(run.scenario)),
            run.device,
            run.system,
            seconds=seconds,
            render_ms=None if run.drawn else 0.0,
            trace=trace,
        )
        results["runs"][run.name] = observed(summary, trace)
    progress("simulating", len(todo), len(todo))
    return results
