"""How commands talk: results on standard output, everything else on standard error.

With ``--json`` standard output carries one JSON value and nothing else, whatever an app or a
driver prints meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import logging
import math
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import click

from heimdall.errors import ArgumentError, HeimdallError, say_value
from heimdall.system.clock import STOPS
from heimdall.system.interrupts import ONE_END_S

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

_NOTED = (
    *("heimdall.render.preview", "heimdall.serve", "heimdall.runtime.opening.tuning"),
    *("heimdall.runtime.run", "heimdall.runtime.session.reload", "heimdall.graph.graph"),
)
FAILED = 2  # a HeimdallError, or a command line that cannot be understood
INTERRUPTED = 130  # 128 + SIGINT, as shells count
_WHOLE = 1000  # characters of a summary: none is that long


class Command(click.Command):
    """A command that takes ``--debug`` as the group does: people add it at the end."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(
            click.Option(
                ["--debug"],
                is_flag=True,
                expose_value=False,
                help="Show tracebacks and what happens inside.",
                callback=lambda ctx, param, value: set_up_logging(True) if value else None,
            )
        )


class Commands(click.Group):
    """A group whose errors are one clear line on standard error, with one set of statuses."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, but for summaries that are long: they take a second line, and are not cut."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(limit=_WHOLE))
            for name, command in found
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        extra["standalone_mode"] = False  # raise errors instead of printing them
        if not standalone_mode:
            return super().main(*args, **extra)
        try:
            with _ended_politely():
                status = super().main(*args, **extra)
        except click.UsageError as error:
            status = _misused(error)
        except click.ClickException as error:
            status = _fail(f"error: {error.format_message()}")
        except HeimdallError as error:
            if logging.getLogger().isEnabledFor(logging.DEBUG):
                logging.getLogger("heimdall").debug("raised here:", exc_info=True)
            status = _fail(f"error: {words(error)}")
        except (click.Abort, KeyboardInterrupt):
            status = INTERRUPTED
        except BrokenPipeError:  # the reader has gone, as in `heimdall models | head -1`
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (flushed at exit)
            status = 1
        sys.exit(status if isinstance(status, int) else 0)


def run_as_program(program: Callable[[], object]) -> NoReturn:
    """Call ``program``, and leave with the status that it exits with. Threads and functions that
    wait for the end have it; what libraries do while they are unloaded is not asked. Some wait for
    threads of their own for ever, and the interpreter would unwind a thread that is stuck in native
    code, which C++ calls a reason to abort."""
    status = 0
    try:
        program()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter does, in this order
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


@contextlib.contextmanager
def _ended_politely() -> Iterator[None]:
    """SIGTERM (`kill`, `docker stop`, a service manager) and SIGHUP (the terminal is closed, the
    connection lost) end a run as Ctrl-C does: outputs are saved and the summary printed. One that
    is ignored, as under nohup, stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    heard_s = -math.inf

    def interrupt(number: int, frame: object) -> None:
        nonlocal heard_s
        before_s, heard_s = heard_s, time.monotonic()
        if heard_s - before_s > ONE_END_S:
            raise KeyboardInterrupt

    names = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    taken = [number for number in numbers if before[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        with STOPS.noticed():
            yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


def _misused(error: click.UsageError) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
        return _fail(error.format_message())
    usage = error.ctx.get_usage() + "\n" if error.ctx else ""
    return _fail(f"{usage}error: {error.format_message()}")


def words(error: HeimdallError) -> str:
    """An error as the command line says it: of the flag that was typed, not of an argument."""
    if not isinstance(error, ArgumentError) or not error.argument:
        return of_flags(str(error))
    value = error.value
    shown = "x".join(map(str, value)) if isinstance(value, tuple) else say_value(value)
    return f"--{error.argument.replace('_', '-')} {shown}: {error.problem}"


def of_flags(said: str) -> str:
    """A sentence that names arguments of Python, with the flags that they are here."""
    said = said.replace("headless=True", "--headless").replace(
        "precision='fp32'", "--precision fp32"
    )
    said = re.sub(r"shapes=\{'(.+?)': ([0-9.]+)\}", r"--value \1=\2", said)
    return re.sub(
        r"shapes=\{'(.+?)': \[([0-9, ]+)\]\}",
        lambda found: f"--shape {found[1]}={found[2].replace(', ', 'x')}",
        said,
    )


def _fail(text: str) -> int:
    click.echo(text, err=True)
    return FAILED


def set_up_logging(debug: bool) -> None:
    """Warnings (with ``--debug`` everything of Heimdall's) as lines on standard error."""
    handler = _ToStandardError()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    logging.addLevelName(logging.INFO, "note")
    logging.addLevelName(logging.WARNING, "warning")
    logging.addLevelName(logging.ERROR, "error")
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("heimdall").setLevel(logging.DEBUG if debug else logging.WARNING)
    # They tell what the user is waiting for, such as the address, and what goes on after a run.
    for noted in _NOTED:
        logging.getLogger(noted).setLevel(logging.DEBUG if debug else logging.INFO)
    if debug:
        root.setLevel(logging.DEBUG)
        for noisy in ("matplotlib", "PIL", "pytools", "asyncio"):
            logging.getLogger(noisy).setLevel(logging.WARNING)


class _ToStandardError(logging.Handler):
    """Writes to what ``sys.stderr`` is at the moment: while a bar is shown, that is something
    which writes above the bar."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            click.echo(of_flags(self.format(record)), err=True)
        except Exception:
            self.handleError(record)


@contextlib.contextmanager
def work(as_json: bool) -> Iterator[None]:
    """With ``--json``, send to standard error what is printed meanwhile, even by C libraries."""
    if not as_json:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr), _descriptor_redirected():
        yield


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Do without the garbage collector while modules and networks are loaded.

    Almost all that is made then stays, and walking it again and again took a quarter of the
    time of the imports. What runs for long inside turns it on again itself.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _descriptor_redirected() -> Iterator[None]:
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
    try:
        kept = os.dup(1)
    except OSError:  # standard output is closed
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_json(value: Any) -> None:
    """One JSON value on standard output; NaN and infinity, which JSON lacks, become null."""
    click.echo(json.dumps(_plain(value), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | str | None):
        return value
    if hasattr(value, "item"):  # a numpy scalar
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


class ProgressBars:
    """Progress of long work on standard error: ``progress(what, done, total)``.

    A bar for each ``what`` on a terminal; elsewhere a line when one begins and when it ends.
    """

    def __init__(self) -> None:
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._lines: dict[str, tuple[float, bool]] = {}

    def __enter__(self) -> ProgressBars:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress as Bars

            self._bars = Bars(console=Console(stderr=True), redirect_stdout=False, transient=True)
            self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._bars is None:
            self._print(what, done, total)
            return
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)

    def _print(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        began, ended = self._lines.setdefault(what, (now, False))
        if began == now and done < total:
            click.echo(f"{what} ...", err=True)
        elif done >= total and not ended:
            self._lines[what] = (began, True)
            click.echo(f"{what}: done in {now - began:.1f} s", err=True)
