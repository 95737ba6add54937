"""Runs an app from its first frame to its last, in a process that is there for it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app import App, RunOptions
from heimdall.errors import ConfigError
from heimdall.runtime.loop.live import LiveRun
from heimdall.runtime.opening import tuning
from heimdall.runtime.opening.opening import Opening
from heimdall.runtime.opening.setup import RunContext
from heimdall.runtime.session.reload import Reloading
from heimdall.runtime.session.session import as_app
from heimdall.runtime.session.shared_gpu import System
from heimdall.runtime.telemetry.summary import RunSummary
from heimdall.system.interrupts import INTERRUPTS

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from heimdall.app.options import RunArguments

log = logging.getLogger(__name__)


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
    target: str | Path | type[App] | App,
    options: RunOptions,
    progress: Progress = no_progress,
    *,
    tune_afterwards: bool = False,
    reload: bool = False,
) -> dict[str, Any]:
    """``run`` as plain data: the object that ``heimdall run --json`` prints.
    ``tune_afterwards``: see ``tuning``. ``reload``: an app that is named begins anew when its file
    is saved."""
    entered_s = time.perf_counter()
    app = as_app(target)
    reloading = Reloading(str(target), app) if reload else None
    with open_run(app, options, progress) as run:
        if reloading is not None:
            reloading.follow(run)
        _say_when_counted(run, options)
        summary = run.until_finished()
        task = tune_afterwards and tuning.wanted(
            run.setup.processors, run.setup.deployments, options.device
        )
    if task:
        tuning.start(task)
    return {**summary, "wall_s": round(time.perf_counter() - entered_s, 3)}


def _say_when_counted(run: LiveRun, options: RunOptions) -> None:
    """A run that is to end by itself ends later where networks are still being built."""
    building = run.setup.building
    ends = options.frames is not None or options.seconds is not None
    if ends and building is not None and not building.over.is_set():
        log.info(
            "networks are still being built: --frames and --seconds count from when all are on "
            "the GPU (with --build-first no frame is drawn before that)"
        )


@contextlib.contextmanager
def open_run(
    app: App, options: RunOptions, progress: Progress = no_progress, system: System | None = None
) -> Iterator[LiveRun]:
    """An app's run that has not begun, with the whole process for itself. ``system``: a baseline in
    the coordinator's place. Without a window the app's own events play its user."""
    # A baseline is compared with what is there from the start.
    beside = system is None and not options.build_first
    place = RunContext(beside=beside, prioritized=system is None or system.prioritized)
    opening = Opening(app, options, place, system, progress)
    with INTERRUPTS.held(), contextlib.closing(opening):
        run = opening.open(scripted=options.scripted)
        assert isinstance(run, LiveRun)
        yield run


def _options(options: RunOptions | None, more: RunArguments) -> RunOptions:
    given: dict[str, Any] = {**more}  # paths as texts among them
    try:
        return RunOptions(**given) if options is None else replace(options, **given)
    except TypeError as error:  # no such option
        raise ConfigError(f"run(): {str(error).partition('() ')[2] or error}") from error
