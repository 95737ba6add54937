"""Builds a network for the GPU; run as a program of its own (see ``building``).

    python -m heimdall.runtime.building_child TASK     a ``building.Task`` as JSON

Kernels are compiled, tried and kept, and ops are measured, beside the app that waits for them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from heimdall.analyzer.precision import engine_for
from heimdall.analyzer.profile_file import to_json
from heimdall.analyzer.store import load_or_measure
from heimdall.engine import open_engine
from heimdall.errors import DeviceError, HeimdallError
from heimdall.graph.graph import load_graph
from heimdall.runtime.building import KEEP, Task
from heimdall.runtime.processors import open_gpu
from heimdall.system.child import report
from heimdall.system.priority import in_background
from heimdall.system.softgpu import SoftwareGpu
from heimdall.vocabulary.enums import Confinement
from heimdall.vocabulary.processors import CPU

_NICE = 19


def work(task: Task) -> None:
    """Load the task's network, and measure it; or only make its binaries."""
    report({"step": "opening the device"})
    workers = len(task.gpu_cores) or 1
    with SoftwareGpu(task.cores[:workers], task.cores, Confinement.UNCONFINED).confined():
        gpu = open_gpu(task.device, save_last=True)
    found = gpu.describe()["device"]
    if found != task.label:
        raise DeviceError(f"the device is now {found} instead of {task.label}")
    graph = load_graph(task.path, task.shapes or None)
    engine = engine_for(gpu, graph, task.precision, task.forced)

    def tell(done: int, total: int) -> None:
        report({"step": f"compiling {done}/{total}"})

    network = engine.load(graph, force_fallback=task.forced, on_progress=tell)
    network.new_state()
    if task.what == KEEP:
        report({"step": "making binaries"})
        engine.save_kernels()
        return
    report({"step": "looking for what was kept"})
    if not engine.keeps(graph, force_fallback=task.forced):
        raise DeviceError("what was compiled cannot be kept: is there room in the cache folder?")
    report({"step": "measuring"})
    profile = load_or_measure(
        graph,
        engine,
        open_engine("onnxruntime", processor=CPU),
        network=network,
        mode=task.mode,
        force_fallback=task.forced,
        disturbed=True,
    )
    report({"found": "profile", "value": to_json(profile).decode()})


def _settle(task: Task) -> None:
    """All cores, and a priority below the app's. Nobody waits for binaries."""
    with contextlib.suppress(AttributeError, OSError):  # not everywhere
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICE)
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setaffinity(0, task.cores)
    if task.what == KEEP:
        in_background()


def main(text: str) -> int:
    """Do a task. The status is 0 unless it could not be done; standard error says why."""
    task = Task(**json.loads(text))
    _settle(task)
    try:
        work(task)
    except HeimdallError as error:
        print(error, file=sys.stderr)
        return 1
    report({"done": True})
    os._exit(0)  # what a driver does when it is unloaded is not asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
