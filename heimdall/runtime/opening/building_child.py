"""Builds networks for the GPU; run as a program of its own (see ``building``).

    python -m heimdall.runtime.opening.building_child

It asks its parent where (a ``building.BuildTarget`` as JSON), then for one network after the other.
Kernels are compiled, tried and kept, and ops are measured, beside the app that waits for them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

from heimdall.analyzer.precision import load_for
from heimdall.analyzer.profile import NetworkProfile
from heimdall.analyzer.profile_file import to_json
from heimdall.analyzer.profiler import Conditions
from heimdall.analyzer.store import load_or_measure
from heimdall.engine import open_engine
from heimdall.engine.base import Engine
from heimdall.errors import DeviceError, HeimdallError
from heimdall.graph.graph import load_graph
from heimdall.runtime.execution.processors import open_gpu
from heimdall.runtime.opening.building import KEEP, BuildTarget, Task
from heimdall.system import paths
from heimdall.system.child import ask, report
from heimdall.system.softgpu import SoftwareGpu
from heimdall.vocabulary.enums import Confinement
from heimdall.vocabulary.processors import CPU

HASTE_S = 0.25  # for the runs of a network on a processor: a user waits


def work(place: BuildTarget) -> None:
    """Do what the parent says until it has no more."""
    report({"step": "opening the device"})
    cores = tuple(range(max(1, place.units)))  # only how many
    with SoftwareGpu(cores, cores, Confinement.UNCONFINED).confined():
        gpu = open_gpu(place.device, save_last=True, choices=place.choices)
    found = gpu.describe()["device"]
    if found != place.label:
        raise DeviceError(f"the device is now {found} instead of {place.label}")
    while (line := ask()) is not None:
        if line == KEEP:
            report({"step": "making binaries"})
            gpu.save_kernels()
        else:
            profile = build(gpu, place, Task(**json.loads(line)), _say)
            report({"found": "profile", "value": to_json(profile).decode()})


def build(
    gpu: Engine, place: BuildTarget, task: Task, say: Callable[[str], object]
) -> NetworkProfile:
    """Load a network so that its kernels are kept, and measure it; ``say`` is told the steps.
    Raises HeimdallError."""
    if why := paths.why_no_cache():  # its parent would not find what is compiled
        raise DeviceError(why)
    say("reading")
    graph = load_graph(task.path, task.shapes or None)

    def tell(done: int, total: int) -> None:
        say(f"compiling {done}/{total}")

    engine, network = load_for(gpu, graph, task.precision, task.forced, tell)
    network.new_state()
    say("looking for what was kept")
    if not engine.keeps(graph, force_fallback=task.forced):
        raise DeviceError("what was compiled is not kept: is there room in the cache folders?")
    say("measuring")
    return load_or_measure(
        graph,
        engine,
        open_engine("onnxruntime", processor=CPU),
        network=network,
        mode=place.mode,
        force_fallback=task.forced,
        conditions=_conditions(place),
    )


def _say(step: str) -> None:
    report({"step": step})


def _conditions(place: BuildTarget) -> Conditions:
    """The app takes the cores away now and then. What one worker computes is measured by the time
    that this process had; several wait for one another, and a GPU has a time of its own."""
    by_cpu = time.process_time_ns
    return Conditions(min, HASTE_S, by_cpu if place.units == 1 else time.perf_counter_ns, by_cpu)


def main() -> int:
    """Work where the parent says. The status is 0 unless something could not be done; standard
    error says why."""
    try:
        if line := ask():
            work(BuildTarget(**json.loads(line)))
    except HeimdallError as error:
        print(error, file=sys.stderr)
        return 1
    report({"done": True})
    os._exit(0)  # what a driver does when it is unloaded is not asked


if __name__ == "__main__":
    sys.exit(main())
