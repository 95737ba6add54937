"""Tunes networks in the background; run as a program of its own (see ``tuning``).

    python -m heimdall.runtime.opening.tuning_child TASK     a ``tuning.Task`` as JSON

What it writes is replaced as whole files, after each layer, so it may end at any moment. Its
standard error is a log for people.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time

from heimdall.analyzer.precision import engine_for
from heimdall.engine.base import Engine
from heimdall.errors import HeimdallError
from heimdall.graph.graph import load_graph
from heimdall.runtime.execution.processors import open_gpu
from heimdall.runtime.opening import background, building, tuning
from heimdall.runtime.opening.background import TUNING
from heimdall.runtime.opening.building_child import build
from heimdall.runtime.opening.tuning import Task
from heimdall.system.priority import behind, in_background
from heimdall.system.softgpu import SoftwareGpu
from heimdall.vocabulary.enums import Confinement

log = logging.getLogger("heimdall")

_LOOK_S = 0.2


class Child:
    """Its task, and the network it is at."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._at: str | None = None  # the key of its tries
        self._lock = threading.Lock()

    def watch(self, limit_s: float) -> None:
        """End the process when an app starts, or after ``limit_s``: wherever it is, in a driver's
        compiler too."""
        end_s = time.monotonic() + limit_s
        while True:
            time.sleep(_LOOK_S)
            if background.interrupted(TUNING, self._task.asked_ns):
                self._end("interrupted: an app has started", counts=False)
            if time.monotonic() > end_s:
                self._end("the time is over", counts=True)

    def _end(self, why: str, counts: bool) -> None:
        with self._lock:
            if self._at is not None and not counts:
                tuning.count_try(self._at, -1)
            log.info("%s", why)
            logging.shutdown()
            os._exit(0)

    def work(self) -> None:
        """Tune every network; one that cannot be is left, and said."""
        core = _settle()
        with SoftwareGpu((core,), (core,), Confinement.UNCONFINED).confined():
            gpu = open_gpu(self._task.device)
        label = gpu.describe()["device"]
        if label != self._task.label:
            log.info("the device is now %s instead of %s", label, self._task.label)
            return
        for each in self._task.works:
            key = self._task.key(each)
            with self._lock:
                tuning.count_try(key, 1)
                self._at = key
            try:
                _tune(gpu, each, self._task)
            except HeimdallError as error:
                log.warning("%s: %s", each.path, error)
                self._at = None  # that was a try
                continue
            with self._lock:
                tuning.count_try(key, -1)
                self._at = None
        log.info("done")


def _settle() -> int:
    """Take the lowest priority there is, and one core; threads of drivers will inherit both."""
    behind(os.getpid())
    in_background()
    if not hasattr(os, "sched_setaffinity"):
        return 0
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    return core


def _tune(gpu: Engine, work: building.Task, task: Task) -> None:
    """Tune a network, and build it as it is now, for the next start not to be a first one."""
    graph = load_graph(work.path, work.shapes or None)
    found = engine_for(gpu, graph, work.precision).tune(graph, _ignore, again=False)
    before, after = (sum(each[index] for each in found.values()) / 1e6 for index in (0, 1))
    log.info("%s: %d kinds of layers, %.2f -> %.2f ms", graph.name, len(found), before, after)
    place = building.BuildTarget(task.device, task.label, task.mode, gpu.units, gpu.choices)
    build(gpu, place, work, log.debug)


def _ignore(done: int, total: int) -> None:
    """Does nothing."""


def main() -> int:
    """Do a task. The status is 0 unless an unexpected error is raised."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    task = Task.from_json(sys.argv[1])
    with background.alone(TUNING) as free:
        if not free or background.interrupted(TUNING, task.asked_ns):
            log.info("another one is at work" if not free else "an app has started")
            return 0
        child = Child(task)
        limit = threading.Thread(target=child.watch, args=(tuning.LIMIT_S,), daemon=True)
        limit.start()
        try:
            child.work()
        except HeimdallError as error:
            log.warning("%s", error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
