"""Runs a trial: ``heimdall run`` with a fault, in a process of its own, from its first line to its
last."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import psutil

from heimdall.lab.faults.fault import Fault
from heimdall.lab.faults.notes import Listener
from heimdall.lab.faults.request import Spec
from heimdall.lab.faults.trial import Outcome, Trial

START_S = 600.0  # until it is warm, where networks have to be built first
END_S = 30.0  # for a run that is over to end, before it is ended
_OTHERS = ".ses"  # onnxruntime's
COMMAND = (sys.executable, "-m", "heimdall.lab.faults.child")


def run_trial(fault: Fault, trial: Trial) -> Outcome:
    """One run. Raises what the fault's own part raises."""
    return _Run(fault, trial)()


class _Run:
    def __init__(self, fault: Fault, trial: Trial) -> None:
        self._fault, self._trial = fault, trial
        self._printed: list[str] = []

    def __call__(self) -> Outcome:
        """See ``run_trial``."""
        trial = self._trial
        for name in ("tmp", "out"):
            (trial.folder / name).mkdir(parents=True, exist_ok=True)
        with trial.afterwards:
            if self._fault.prepare is not None:
                self._fault.prepare(trial)
            with self._started() as listener:
                try:
                    self._live(listener)
                except BaseException:
                    trial.process.kill()
                    raise
                finally:
                    status = self._end()
                ended_ns = time.perf_counter_ns()
                listener.join(1.0)
            seen = listener.seen
            if trial.began_ns is not None:
                seen.began_ns, seen.ended_ns = trial.began_ns, trial.ended_ns
            if trial.acted:
                seen.acted.append((seen.began_ns or ended_ns, ""))
            left = [*seen.left, *self._left_behind()]
            summary = self._summary()
            return Outcome(seen, status, ended_ns, summary, trial.said, left, trial.asked_ns)

    def _live(self, listener: Listener) -> None:
        """Wait through the run, and enter what goes on beside it."""
        trial = self._trial
        if self._fault.early:
            listener.wait_for("entered", START_S)
            with self._beside():
                listener.wait_for("over", START_S + trial.request.seconds)
            return
        if listener.wait_for("began", START_S + trial.after_s):
            with self._beside():
                listener.wait_for("ended", trial.lasts_s + END_S)
        listener.wait_for("over", trial.request.third_s + END_S)

    def _beside(self) -> AbstractContextManager[object]:
        beside = self._fault.beside
        return contextlib.nullcontext() if beside is None else beside(self._trial)

    @contextlib.contextmanager
    def _started(self) -> Iterator[Listener]:
        read, write = os.pipe()
        trial = self._trial
        words = ["run", *trial.request.arguments, "--json", *self._more()]
        spec = Spec(self._fault.name, trial.after_s, trial.lasts_s, write, words)
        trial.process = process = subprocess.Popen(
            [*COMMAND, json.dumps(asdict(spec))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **trial.environment},
            pass_fds=(write,),
            start_new_session=True,
            text=True,
            errors="replace",
        )
        os.close(write)
        readers = [
            threading.Thread(target=_collect, args=each, daemon=True)
            for each in ((process.stdout, self._printed), (process.stderr, trial.said))
        ]
        for reader in readers:
            reader.start()
        try:
            yield Listener(os.fdopen(read))
        finally:
            for reader in readers:
                reader.join(1.0)

    def _more(self) -> Sequence[str]:
        look = () if self._trial.environment.get("DISPLAY") else ("--headless",)
        return (*look, *self._fault.arguments(self._trial))

    def _end(self) -> int | None:
        """Its status once it has ended; None where it had to be ended."""
        process = self._trial.process
        try:
            return process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None

    def _summary(self) -> dict[str, Any] | None:
        try:
            return dict(json.loads("".join(self._printed)))
        except ValueError:
            return None

    def _left_behind(self) -> list[str]:
        """Processes that have outlived it, which are ended, and files that nobody asked for, or
        that nothing can read."""
        left, folder = [], self._trial.folder
        for each in self._trial.processes():
            with contextlib.suppress(psutil.Error):
                left.append(f"process {each.name()}")
                each.kill()
        left += [f"file {each.name}" for each in (folder / "tmp").iterdir() if each.name != _OTHERS]
        return left + [f"file {each.name}" for each in (folder / "out").iterdir() if _partial(each)]


def _collect(stream: IO[str], lines: list[str]) -> None:
    with stream:
        lines.extend(iter(stream.readline, ""))


def _partial(path: Path) -> bool:
    """True for a file that was being written, or that holds nothing of what its name says."""
    if path.name.startswith("."):
        return True
    try:
        if path.suffix == ".mp4":
            from heimdall.capture.readers import open_clip

            open_clip(path).close()
        elif path.suffix == ".mcap":
            from heimdall.capture.mcap_reader import read_messages

            for _ in read_messages(path):
                pass
        elif path.suffix == ".json":
            json.loads(path.read_text())
    except Exception:  # whatever a reader raises for it
        return True
    return False
