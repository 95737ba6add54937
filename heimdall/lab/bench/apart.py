"""Running a command of Heimdall in a process of its own: what a software GPU's threads, cores and
policies leave behind must not slow what is measured next."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from heimdall.errors import HeimdallError
from heimdall.lab.bench.systems import System

log = logging.getLogger(__name__)

PATIENCE_S = 30.0  # for an interrupted process to end by itself
LAST_WORDS_S = 5.0  # for what a process has written to be read, once it has ended
LEVELS = {"warning": logging.WARNING, "error": logging.ERROR}
_BENCH = (sys.executable, "-m", "heimdall", "bench")


class FailedSystemError(HeimdallError):
    """One system could not run; it has said why on standard error."""


class Hearing:
    """Hears the lines that a process writes on standard error. Warnings are passed on, each once
    for all that share ``heard``. ``said`` holds the last line: of a process that dies, it says
    why."""

    def __init__(self, heard: set[str]) -> None:
        self._heard = heard
        self.said: deque[str] = deque(maxlen=1)

    def __call__(self, line: str) -> None:
        level, _, message = line.partition(": ")
        self.said.append(message if level in LEVELS else line)
        if level in LEVELS and message not in self._heard:
            self._heard.add(message)
            log.log(LEVELS[level], "%s", message)


def run_apart(command: Sequence[str], hear: Callable[[str], None]) -> tuple[str, int]:
    """A program's standard output and its status; ``hear`` gets the lines of its standard error,
    on another thread, as they come. An interruption ends the program, too. It is over when the
    program is: what it has started, and was killed before it could end, may hold its pipes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output: list[str] = []
    readers = [
        threading.Thread(target=_listen, args=(process.stderr, hear), daemon=True),
        threading.Thread(target=_collect, args=(process.stdout, output), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        status = process.wait()
    except KeyboardInterrupt:
        _end(process)
        raise
    for reader in readers:
        reader.join(LAST_WORDS_S)
    return "".join(output), status


def _collect(stream: IO[str], output: list[str]) -> None:
    output.extend(stream)


def _listen(stream: IO[str], hear: Callable[[str], None]) -> None:
    for line in filter(None, map(str.strip, stream)):
        hear(line)


def _end(process: subprocess.Popen[str]) -> None:
    """The terminal has interrupted it too; a process that hangs is ended."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()


def as_arguments(options: Mapping[str, Any]) -> list[str]:
    """Options of ``heimdall bench`` as a command line has them; None is left out."""
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            arguments.append(flag if value else flag.replace("--", "--no-"))
        elif isinstance(value, list):  # an option that is repeated
            arguments += [part for each in value for part in (flag, str(each))]
        elif isinstance(value, tuple):
            arguments += [flag, "x".join(str(side) for side in value)]
        elif value is not None:
            arguments += [flag, str(value)]
    return arguments


class OwnProcess:
    """Runs ``heimdall bench SCENARIO --systems NAME --json`` in a new process each time.

    Its warnings are passed on while it runs, each once however many systems give it.
    """

    def __init__(
        self,
        scenario: str,
        options: Mapping[str, Any],
        traced: Callable[[System], Path | None],
    ) -> None:
        """``traced`` says where a system's trace goes, if anywhere."""
        self._scenario, self._options, self._traced = scenario, options, traced
        self._heard: set[str] = set()

    def __call__(self, system: System) -> dict[str, Any]:
        """The system's summary. Raises FailedSystemError when it ends without one."""
        own = {**self._options, "systems": system.typed, "trace": self._traced(system)}
        hearing = Hearing(self._heard)
        output, status = run_apart([*_BENCH, self._scenario, "--json", *as_arguments(own)], hearing)
        try:
            result = json.loads(output)
        except ValueError:  # it has died
            result = {"systems": {}, "failures": []}
        if system.name in result["systems"]:
            summary: dict[str, Any] = result["systems"][system.name]
            return summary
        ended = [f"ended with status {status} and no summary", *hearing.said]
        reasons = [reason.removeprefix(f"{system.name}: ") for reason in result["failures"]]
        raise FailedSystemError(next(iter(reasons), ": ".join(ended)))
