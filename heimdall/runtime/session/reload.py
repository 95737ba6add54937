"""``heimdall run mine.py --reload``: the app's class begins anew when its file is saved.

Camera, window and networks go on. So what a run is opened with must be as it was: networks, world,
size, rate and policy. Where the file says otherwise of these, or cannot be loaded, the class that
runs goes on, and the overlay and the log say why.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from heimdall.app import App, load_app, validate
from heimdall.errors import AppError, HeimdallError
from heimdall.runtime.loop.live import LiveRun
from heimdall.system.faults import say

log = logging.getLogger(__name__)

_LOOK_S = 0.3  # between looks at the file
_KEPT = ("_results", "_tracker", "world", "dnns")
_OPENED_WITH = (
    *("world", "fps", "size", "scheduler", "clip", "sound_dnns"),
    *("render_priority", "content", "luminance", "admission"),
)


class Reloading:
    """Begins ``app``, which ``target`` names, anew in its run when its file is saved. To be made
    before that is opened: networks change what they were declared with."""

    def __init__(self, target: str, app: App) -> None:
        self._target, self._app = target, app
        self._path = Path(inspect.getfile(type(app)))
        self._declared = _declarations(type(app))
        self._saved = self._stamp()
        self._due_s = 0.0
        self._run: LiveRun | None = None
        self.message = ""

    def follow(self, run: LiveRun) -> None:
        """That run is the app's."""
        self._run = run
        run.onlooker = self

    def frame(self) -> None:
        """A frame has been shown: look whether the file was saved, if it is time."""
        now_s = time.perf_counter()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _LOOK_S
        saved = self._stamp()
        if saved not in (None, self._saved):
            self._saved = saved
            self._reload()

    def end(self) -> None:
        """The run is over."""

    def _stamp(self) -> tuple[int, int] | None:
        """What differs when the file is saved; None while an editor replaces it."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _reload(self) -> None:
        assert self._run is not None
        try:
            found = load_app(self._target)
            validate(found)
            self._check(found)
            _become(self._app, found)
        except HeimdallError as error:
            said = str(error).replace(str(self._path), self._path.name)
            self.message = f"{said}; the app goes on as it was"
            log.error("%s", self.message)
            return
        self.message = ""
        log.info("%s was saved: %s begins anew", self._path.name, found.__name__)
        self._run.begin_anew(f"{self._path.name} was saved: begun anew")

    def _check(self, found: type[App]) -> None:
        """Raise AppError where it cannot take the place of the class that runs."""
        before, after = self._declared, _declarations(found)
        changed = [name for name in before if name in after and before[name] != after[name]]
        said = [f"{name} is new" for name in after if name not in before]
        said += [f"{name} is gone" for name in before if name not in after]
        said += [f"{name} has changed" for name in changed]
        if said:
            raise AppError(f"{self._path.name}: {', '.join(said)}: that needs a new run")


def _become(app: App, found: type[App]) -> None:
    """Make a new instance of another class of what is there, so that whoever has it has the new
    one. Results, tracking and world are kept. Raises AppError, and all is as before, when the
    class's ``__init__`` fails."""
    kind, before = type(app), dict(vars(app))
    kept: Any = {name: before[name] for name in _KEPT if name in before}
    try:
        vars(app).clear()
        app.__class__ = found
        vars(app).update(vars(found.__new__(found)))
        vars(app).update(kept)
        app.__init__()  # type: ignore[misc]
    except Exception as error:  # the class is the user's
        vars(app).clear()
        app.__class__ = kind
        vars(app).update(before)
        raise AppError(f"{found.__name__}(): {say(error)}") from error
    declared = {dnn.name: dnn for dnn in app.dnns}
    for name in before["_wanted"].keys() - app._wanted.keys():  # wanted as declared again
        app._wanted[name] = declared[name]
        app._adjusted.add(name)
    if before["_background"] is not None:
        before["_background"].close()


def _declarations(app: type[App]) -> dict[str, object]:
    """What a run of the class is opened with, as values that can be compared."""
    dnns = {f"DNN {dnn.name!r}": _plain(dnn) for dnn in app.dnns}
    return {**dnns, **{name: _plain(getattr(app, name)) for name in _OPENED_WITH}}


def _plain(value: Any) -> object:
    """A value of any kind, as one that is equal to that of the same source, imported again."""
    if isinstance(value, FunctionType):
        held = [_plain(each.cell_contents) for each in value.__closure__ or ()]
        return value.__qualname__, _code(value.__code__), _plain(value.__defaults__), held
    if isinstance(value, type):
        inner = {name: each for name, each in vars(value).items() if name[:2] != "__"}
        return value.__qualname__, _plain(inner) if _is_of_app(value) else ""
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if hasattr(value, "__dict__"):
        return _plain(type(value)), _plain(vars(value))
    kind: Any = type(value)
    if kind.__eq__ is object.__eq__:  # as a lock: equal to itself alone
        return _plain(kind)
    return value


def _is_of_app(kind: type) -> bool:
    return kind.__module__.startswith("heimdall_app")


def _code(code: CodeType) -> object:
    """What a function does, wherever in its file it stands."""
    constants = [_code(each) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.co_code, constants, code.co_names
