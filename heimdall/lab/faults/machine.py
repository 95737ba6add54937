"""Faults of the machine that a run is on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil

from heimdall.lab.faults.fault import Excuse, Fault
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.trial import Trial

STOPPED_S = 3.0
HOUR_S = 3600.0
_BUSY = "while True: pass"
_BUILDER = "building_child"


@contextlib.contextmanager
def _all_cores_taken(trial: Trial) -> Iterator[None]:
    programs = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    trial.began()
    try:
        yield
    finally:
        for program in programs:
            program.kill()
        for program in programs:
            program.wait()
        trial.ended()


@contextlib.contextmanager
def _stopped(trial: Trial) -> Iterator[None]:
    trial.began()
    os.kill(trial.process.pid, signal.SIGSTOP)
    time.sleep(min(STOPPED_S, trial.request.third_s))
    os.kill(trial.process.pid, signal.SIGCONT)
    trial.ended()
    yield


def _clock_set_back(moment: Moment) -> None:
    clock, clock_ns = time.time, time.time_ns

    def begin() -> None:
        moment.acted()
        time.time = lambda: clock() - HOUR_S
        time.time_ns = lambda: clock_ns() - round(HOUR_S * 1e9)

    def end() -> None:
        time.time, time.time_ns = clock, clock_ns

    moment.during(begin, end)


# --- compilers -------------------------------------------------------------------------------


def _empty_cache(trial: Trial) -> None:
    trial.environment["HEIMDALL_CACHE"] = str(trial.folder / "cache")


@contextlib.contextmanager
def _compilers_killed(trial: Trial) -> Iterator[None]:
    """Those that there are, once, as soon as they have begun to compile."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            found = [each for each in trial.processes() if _BUILDER in " ".join(_words_of(each))]
            if found and over.wait(2.0) is False:
                trial.began()
                for each in found:
                    with contextlib.suppress(psutil.Error):
                        each.kill()
                trial.ended()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(5.0)


def _words_of(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def _compiling(request: Request) -> str:
    return "onnxruntime needs no compiler" if request.device == "onnxruntime" else ""


def _signals(request: Request) -> str:
    return "" if hasattr(signal, "SIGSTOP") else "this system has no SIGSTOP"


FAULTS = (
    Fault(
        "cores-taken",
        "Another program takes all cores.",
        beside=_all_cores_taken,
        excuse=Excuse.SYSTEM,
        told=False,
    ),
    Fault(
        "stopped",
        f"The process is stopped (SIGSTOP) for {STOPPED_S:g} s.",
        beside=_stopped,
        excuse=Excuse.SYSTEM,
        told=False,
        hides=True,
        needs=_signals,
    ),
    Fault("clock-back", "The clock is set back by an hour.", _clock_set_back, told=False),
    Fault(
        "compilers-killed",
        "The processes that compile networks on a first start are killed.",
        prepare=_empty_cache,
        beside=_compilers_killed,
        early=True,
        needs=_compiling,
    ),
)
