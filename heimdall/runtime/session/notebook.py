"""A session's picture in the output of a notebook's cell."""

from __future__ import annotations

import importlib
import time
from typing import Any

import cv2

from heimdall.errors import ConfigError
from heimdall.runtime.loop.live import LiveRun
from heimdall.runtime.session.session import Session

_INTERVAL_S = 0.1  # between two pictures, at least
_MOST = 5  # times what a picture takes is between two of them, at least: frames need the thread


def show(session: Session) -> None:
    """Show what a session draws in this cell of a notebook, and keep it up to date in place while
    the session steps, ten times a second at most. Once is enough, before a loop or as the last
    line; called again in the same cell, it shows the newest picture at once.

    Raises ConfigError outside of Jupyter or IPython, AppError for a session that draws nothing or
    is closed.
    """
    shell, run = _shell(), session._drawing()
    if isinstance(run.onlooker, _Cell):
        if run.onlooker.number == shell.execution_count:
            run.onlooker.renew()
            return
        run.onlooker.end()
    run.onlooker = _Cell(run, shell)


class _Cell:
    """The output of the cell that runs, and a session's run in it."""

    message = ""

    def __init__(self, run: LiveRun, shell: Any) -> None:
        self.number, self._run, self._shell = shell.execution_count, run, shell
        self._display = importlib.import_module("IPython.display")
        self._old, self._due_s = False, 0.0
        self._output = self._display.display(self._picture(), display_id=True)
        shell.events.register("post_run_cell", self._cell_ended)

    def frame(self) -> None:
        """There is a new one: show it, if it is time."""
        self._old = True
        if time.perf_counter() >= self._due_s:
            self.renew()

    def renew(self) -> None:
        """Put the newest picture in place of the last."""
        self._output.update(self._picture())

    def end(self) -> None:
        """Show the last picture."""
        self._shell.events.unregister("post_run_cell", self._cell_ended)
        self._cell_ended()

    def _cell_ended(self, *_: object) -> None:
        if self._old:
            self.renew()

    def _picture(self) -> Any:
        began_s, self._old = time.perf_counter(), False
        content = cv2.imencode(".jpg", self._run.picture()[..., ::-1])[1].tobytes()
        took_s = time.perf_counter() - began_s
        self._due_s = began_s + max(_INTERVAL_S, _MOST * took_s)
        return self._display.Image(data=content, format="jpeg")


def _shell() -> Any:
    """The IPython that runs this code."""
    try:
        shell = importlib.import_module("IPython").get_ipython()
    except ImportError:
        shell = None
    if shell is None:
        raise ConfigError(
            "show() is for notebooks (Jupyter, IPython), and this is none: session.picture() is "
            "the picture as an array"
        )
    return shell
