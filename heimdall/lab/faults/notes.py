"""What the process of a run tells the one that watches: lines of JSON through a pipe, as it goes,
so that they are there even of a run that is killed. Times are ``time.perf_counter_ns``, which is
one clock for all processes of a machine; no clock of the run is asked, which may leave out stalls.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import IO, Any


class Notes:
    """Writes notes to a pipe. A short line is written whole, from whichever thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, kind: str, *what: Any) -> None:
        line = json.dumps([time.perf_counter_ns(), kind, *what])
        with contextlib.suppress(OSError):  # nobody watches any more
            os.write(self._descriptor, f"{line}\n".encode())


@dataclass
class Job:
    """An inference that has begun. ``end``: "", or what became of it: "result", "lost", or "again"
    where it was put back for another one."""

    dnn: str
    began_ns: int
    ended_ns: int | None = None
    end: str = ""


@dataclass
class Seen:
    """What is known of a run: when frames were shown (``frames``), and results there, by DNN; its
    jobs; what the overlay said; when its fault ``began`` and ``ended``, and what it ``acted`` on;
    ``left``: what remained when the run was over, of its own process."""

    fps: float = 30.0
    frames: list[int] = field(default_factory=list)
    results: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    jobs: dict[int, Job] = field(default_factory=dict)
    told: list[tuple[int, str]] = field(default_factory=list)
    acted: list[tuple[int, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    entered_ns: int | None = None
    warm_ns: int | None = None
    began_ns: int | None = None
    ended_ns: int | None = None
    over_ns: int | None = None  # the run has returned

    def take(self, at_ns: int, kind: str, *what: Any) -> None:
        """One note."""
        if kind == "frame":
            self.frames.append(at_ns)
        elif kind == "begun":
            job, dnn = what
            self.jobs[job] = Job(dnn, at_ns)
        elif kind == "end":
            job, dnn, end = what
            found = self.jobs.setdefault(job, Job(dnn, at_ns))
            found.end, found.ended_ns = end, at_ns
            if end == "result":
                self.results[dnn].append(at_ns)
        elif kind in ("told", "acted"):
            getattr(self, kind).append((at_ns, *what))
        elif kind in ("entered", "warm", "began", "ended", "over"):
            setattr(self, f"{kind}_ns", at_ns)
        else:
            setattr(self, kind, what[0])


class Listener:
    """Reads notes on a thread of its own, and lets others wait for them."""

    def __init__(self, pipe: IO[str]) -> None:
        self.seen = Seen()
        self._pipe, self._closed = pipe, False
        self._news = threading.Condition()
        self._thread = threading.Thread(target=self._listen, name="notes", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        for line in self._pipe:
            with self._news, contextlib.suppress(ValueError):  # half a line, of one that was killed
                self.seen.take(*json.loads(line))
                self._news.notify_all()
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._pipe.close()

    def wait_for(self, moment: str, timeout_s: float) -> bool:
        """Wait until the run has noted that ``moment``, such as "began"; False where it does not
        within that time, or has ended."""
        name = f"{moment}_ns"
        with self._news:
            self._news.wait_for(
                lambda: self._closed or getattr(self.seen, name) is not None, timeout_s
            )
            return getattr(self.seen, name) is not None

    def join(self, timeout_s: float) -> None:
        """Wait for the last note."""
        self._thread.join(timeout_s)
