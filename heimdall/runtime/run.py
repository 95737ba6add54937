"""Runs an app from its first frame to its last."""

from __future__ import annotations

import time
from typing import Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import RunOptions, create, load_app, validate
from heimdall.runtime.live import Runtime
from heimdall.runtime.setup import start


def run_app(target: str, options: RunOptions, progress: Progress = no_progress) -> dict[str, Any]:
    """Run an app until its window closes or ``frames`` / ``seconds`` are over.

    ``progress(what, done, total)`` hears of loading and profiling. Returns the run summary of
    ``--json``. Raises HeimdallError when it cannot start.
    """
    entered_s = time.perf_counter()
    app_class = load_app(target)
    validate(app_class)
    app = create(app_class)
    with start(app, options, progress) as setup:
        runtime = Runtime(app, options, setup)
        try:
            summary = runtime.run()
        finally:
            runtime.close()
    return {**summary, "wall_s": round(time.perf_counter() - entered_s, 3)}
