"""One run with a fault, as the process that watches knows it."""

from __future__ import annotations

import contextlib
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from heimdall.lab.faults.notes import Seen
from heimdall.lab.faults.request import Request

MARK = "TRIAL_OF_FAULTS"  # in the environment of all processes of a run


@dataclass
class Outcome:
    """What was seen of a run from outside. ``status``: None where it had to be ended; ``ended_ns``:
    when its process was gone; ``asked_ns``: when it was told to end, if it was."""

    seen: Seen
    status: int | None
    ended_ns: int
    summary: dict[str, Any] | None
    said: list[str]  # on standard error
    left: list[str]
    asked_ns: int | None = None


class Trial:
    """A run of the app of ``request``, whose files go into ``folder``, for what a fault does from
    outside. The fault is there in its middle third; ``always``: from its warm-up on."""

    def __init__(self, request: Request, folder: Path, always: bool = False) -> None:
        self.request, self.folder = request, folder
        self.after_s = 0.0 if always else request.third_s
        self.lasts_s = request.seconds if always else request.third_s
        self.mark = uuid.uuid4().hex
        self.environment = {
            MARK: self.mark,
            "HEIMDALL_TUNE": "off",
            "TMPDIR": str(folder / "tmp"),
        }
        self.began_ns: int | None = None  # of a fault from outside
        self.ended_ns: int | None = None
        self.asked_ns: int | None = None  # when it was told to end
        self.acted = False
        self.said: list[str] = []  # the lines of its standard error
        self.process: subprocess.Popen[str] = None  # type: ignore[assignment]  # once it has begun
        self.server: Any = None  # beside it, where its fault has one
        self.afterwards = contextlib.ExitStack()

    def began(self, acted: bool = True) -> None:
        """The fault is there, as of now; it has ``acted``, or the run itself will notice."""
        self.began_ns, self.acted = time.perf_counter_ns(), acted

    def ended(self) -> None:
        """It is not any more."""
        self.ended_ns = time.perf_counter_ns()

    def processes(self) -> list[psutil.Process]:
        """All processes of the run, what it has started included, that there are."""
        found = []
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if each.environ().get(MARK) == self.mark and each.status() != "zombie":
                    found.append(each)
        return found
