"""Runs an app from its first frame to its last."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import App, RunOptions, create, load_app, validate
from heimdall.errors import AppError, ConfigError
from heimdall.runtime.live import Runtime
from heimdall.runtime.setup import start
from heimdall.runtime.telemetry.summary import RunSummary

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heimdall.app.options import RunArguments


def run(
    app: str | Path | type[App] | App,
    options: RunOptions | None = None,
    *,
    progress: Progress = no_progress,
    **more: Unpack[RunArguments],
) -> RunSummary:
    """Run an app until its window closes or ``frames`` / ``seconds`` are over: its class, an
    instance, the name of a bundled one, or ``path/to/file.py[:Class]``.

    ``run(Shopping, headless=True, seconds=5)``: the options are those of RunOptions, by keyword
    or as a value, or both (a keyword counts more). ``progress(what, done, total)`` hears of
    loading and profiling. Call it on the main thread. Raises HeimdallError when it cannot start.
    """
    return RunSummary.from_dict(run_app(app, _options(options, more), progress))


def run_app(
    target: str | Path | type[App] | App, options: RunOptions, progress: Progress = no_progress
) -> dict[str, Any]:
    """The same as plain data: the object that ``heimdall run --json`` prints."""
    entered_s = time.perf_counter()
    app = open_app(target)
    with start(app, options, progress) as setup:
        runtime = Runtime(app, options, setup)
        try:
            summary = runtime.run()
        finally:
            runtime.close()
            app._end()
    return {**summary, "wall_s": round(time.perf_counter() - entered_s, 3)}


def open_app(target: str | Path | type[App] | App) -> App:
    """An instance of what ``run`` takes, its declarations checked. Raises AppError for anything
    else, and what loading, ``validate`` and ``create`` raise."""
    if isinstance(target, App):
        validate(type(target))
        return target
    if isinstance(target, str | Path):
        target = load_app(str(target))
    if not (isinstance(target, type) and issubclass(target, App)):
        raise AppError(f"{target!r} is no app: give its class, an instance, a name or a file")
    validate(target)
    return create(target)


def _options(options: RunOptions | None, more: RunArguments) -> RunOptions:
    given: dict[str, Any] = {**more}  # paths as texts among them
    try:
        return RunOptions(**given) if options is None else replace(options, **given)
    except TypeError as error:  # no such option
        raise ConfigError(f"run(): {str(error).partition('() ')[2] or error}") from error
