"""Ends of a run from outside: its window is closed, it is told to end, a process of its kind is
killed."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.judge import MOST_END_S, verdict
from heimdall.lab.faults.moment import Moment
from heimdall.lab.faults.request import Request
from heimdall.lab.faults.running import run_trial
from heimdall.lab.faults.trial import Outcome, Trial
from heimdall.render.events import Close, InputEvent
from heimdall.render.window import WindowSurface

SEED = 1
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
LATEST_S = 8.0  # after a run has begun, a signal comes: before the first frame, or long after it
INTERRUPTED = 130  # the status of a run that had not begun
_JUST_S = 0.3  # a signal so near to the first frame may come before it or after it
_PAUSE_S = 3.0  # until a system of a comparison runs
_BENCH_S = 120.0


# --- a window --------------------------------------------------------------------------------


def _close_window(moment: Moment) -> None:
    poll = WindowSurface.poll

    def polled(self: WindowSurface) -> list[InputEvent]:
        events = poll(self)
        if moment.first():
            moment.acted()
            events.append(Close())
        return events

    WindowSurface.poll = polled  # type: ignore[method-assign]


def _display(trial: Trial) -> None:
    """A display of its own."""
    read, write = os.pipe()
    words = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x1024x24", "-noreset"]
    server = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
    trial.afterwards.callback(server.wait)
    trial.afterwards.callback(server.terminate)
    os.close(write)
    with os.fdopen(read) as answer:
        trial.environment["DISPLAY"] = f":{answer.readline().strip()}"


def _has_display(request: Request) -> str:
    return "" if shutil.which("Xvfb") else "there is no Xvfb to show a window on"


# --- signals ---------------------------------------------------------------------------------


def _tell_to_end(name: str, after_s: float) -> Callable[[Trial], AbstractContextManager[object]]:
    @contextlib.contextmanager
    def beside(trial: Trial) -> Iterator[None]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            trial.process.wait(after_s)
        trial.began()
        trial.asked_ns = trial.began_ns
        trial.process.send_signal(getattr(signal, name))
        with contextlib.suppress(subprocess.TimeoutExpired):
            trial.process.wait(10 * MOST_END_S)
        yield

    return beside


def _outputs(trial: Trial) -> Sequence[str]:
    out = trial.folder / "out"
    words = ("--record", "run.mp4", "--capture", "run.mcap", "--trace", "run.json")
    return [word if word.startswith("--") else str(out / word) for word in words]


def _signal_often(fault: Fault, request: Request, folder: Path) -> dict[str, Any]:
    """As many runs as are asked for, each told to end at a random moment."""
    chance, wrong, longest_s = random.Random(SEED), [], 0.0
    for number in range(request.count):
        name = SIGNALS[number % len(SIGNALS)]
        after_s = chance.uniform(0, LATEST_S)
        one = replace(
            fault, by_hand=None, early=True, beside=_tell_to_end(name, after_s), arguments=_outputs
        )
        place = folder / str(number)
        outcome = run_trial(one, Trial(replace(request, seconds=6 * LATEST_S), place))
        ended_s = (outcome.ended_ns - (outcome.asked_ns or outcome.ended_ns)) / 1e9
        longest_s = max(longest_s, ended_s)
        if why := why_not_ended(outcome, ended_s):
            wrong.append(f"{name} after {after_s:.2f} s: {'; '.join(why)}")
        shutil.rmtree(place)
    if wrong:
        wrong.insert(0, f"{len(wrong)} of {request.count} ended wrongly")
    return verdict(fault, wrong, ended_in_s=round(longest_s, 2))


def why_not_ended(outcome: Outcome, ended_s: float) -> list[str]:
    """What is wrong with the way in which a run ended that was told to by a signal."""
    seen, why = outcome.seen, []
    first_ns = seen.frames[0] if seen.frames else None
    asked_ns = outcome.asked_ns or outcome.ended_ns
    summed_up = outcome.summary is not None and outcome.status == 0
    not_begun = outcome.summary is None and outcome.status == INTERRUPTED
    if first_ns is None:
        right = not_begun
    elif abs(asked_ns - first_ns) < _JUST_S * 1e9:
        right = summed_up or not_begun
    else:
        right = summed_up
    if not right:
        frames = f"{len(seen.frames)} frames"
        with_it = "a summary" if outcome.summary is not None else "no summary"
        last = f" ({outcome.said[-1].strip()})" if outcome.said else ""
        why.append(f"after {frames}: status {outcome.status} and {with_it}{last}")
    if ended_s > MOST_END_S:
        why.append(f"it took {ended_s:.1f} s")
    return [*why, *(f"left: {each}" for each in outcome.left)]


# --- a comparison ----------------------------------------------------------------------------


def _kill_system(fault: Fault, request: Request, folder: Path) -> dict[str, Any]:
    """``heimdall bench``, the first of whose systems is killed: it must say so, run the others, and
    end."""
    command = [sys.executable, "-m", "heimdall", "bench", request.app, "--json", "--seconds", "3"]
    command += ["--systems", "max-total,max-min"]
    command += ["--device", request.device] if request.device else []
    command += ["--size", "{}x{}".format(*request.size)] if request.size else []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killed = _kill_first_child(process.pid)
    began_s = time.perf_counter()
    try:
        printed, _ = process.communicate(timeout=_BENCH_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return verdict(fault, ["it did not end, and was killed"])
    took_s = time.perf_counter() - began_s
    result = json.loads(printed) if printed.strip() else {"systems": {}, "failures": []}
    told = next(iter(result["failures"]), "")
    why = [] if killed else ["none of its systems was killed"]
    why += [] if told else ["the system that was killed is not named"]
    why += [] if "max-min" in result["systems"] else ["the other system did not run"]
    return verdict(fault, why, told=told, ended_in_s=round(took_s, 2), status=process.returncode)


def _kill_first_child(pid: int) -> bool:
    until_s = time.monotonic() + 10 * _PAUSE_S
    while time.monotonic() < until_s:
        with contextlib.suppress(psutil.Error):
            if children := psutil.Process(pid).children():
                time.sleep(_PAUSE_S)
                children[0].kill()
                return True
        time.sleep(0.1)
    return False


FAULTS = (
    Fault(
        "window-closed",
        "The window is closed.",
        _close_window,
        prepare=_display,
        ends=True,
        told=False,
        needs=_has_display,
    ),
    Fault(
        "signals",
        "Runs are told to end (SIGINT, SIGTERM, SIGHUP) at random moments.",
        told=False,
        by_hand=_signal_often,
    ),
    Fault(
        "bench-killed",
        "A process of `heimdall bench` is killed.",
        told=True,
        by_hand=_kill_system,
    ),
)
