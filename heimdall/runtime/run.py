"""Runs an app from its first frame to its last, in a process that is there for it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import App, RunOptions
from heimdall.runtime.live import LiveRun
from heimdall.runtime.opening import Opening
from heimdall.runtime.session import as_app
from heimdall.runtime.setup import Place
from heimdall.runtime.station import System


def run_app(target: str, options: RunOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Run an app until its window closes or ``frames`` / ``seconds`` are over.

    ``progress(what, done, total)`` hears of loading and profiling. Returns the run summary of
    ``--json``. Raises HeimdallError when it cannot start.
    """
    entered_s = time.perf_counter()
    with open_run(as_app(target), options, progress) as run:
        summary = run.until_finished()
    return {**summary, "wall_s": round(time.perf_counter() - entered_s, 3)}


@contextlib.contextmanager
def open_run(
    app: App, options: RunOptions, progress: Progress = no_progress, system: System | None = None
) -> Iterator[LiveRun]:
    """An app's run that has not begun, with the whole process for itself. ``system``: a baseline in
    the coordinator's place. Without a window the app's own events play its user."""
    opening = Opening(app, options, Place(), system, progress)
    try:
        run = opening.open(scripted=options.scripted)
        assert isinstance(run, LiveRun)
        yield run
    finally:
        opening.close()
