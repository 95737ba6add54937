"""Running a command of Heimdall in a process of its own: what a software GPU's threads, cores and
policies leave behind must not slow what is measured next."""

from __future__ import annotations

import logging
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import IO

log = logging.getLogger(__name__)

PATIENCE_S = 30.0  # for an interrupted process to end by itself
LEVELS = {"warning": logging.WARNING, "error": logging.ERROR}


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
    on another thread, as they come. An interruption ends the program, too."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    listener = threading.Thread(target=_listen, args=(process.stderr, hear), daemon=True)
    listener.start()
    try:
        assert process.stdout is not None
        output = process.stdout.read()
        status = process.wait()
    except KeyboardInterrupt:
        _end(process)
        raise
    listener.join()
    return output, status


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
