"""What the person at the keyboard can do while an app runs, whatever the app is: how it is done.

The list is ``heimdall.runtime.session.keys.COMMANDS``.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from heimdall.app.options import RunOptions
from heimdall.capture.switching import Sources
from heimdall.render import Close, Dropped, InputEvent, Key, Status, Takes
from heimdall.runtime.opening.setup import Setup
from heimdall.runtime.session.keys import commands_by_key, help_rows
from heimdall.system import paths
from heimdall.system.faults import Fallible, Faults
from heimdall.vocabulary.enums import ChunkMode, OverlayView

if TYPE_CHECKING:
    from heimdall.app import App
    from heimdall.capture import Source
    from heimdall.render import Surface

CLIPS = paths.ASSETS / "media"
NOTICE_NS = 4_000_000_000
SHIFT = frozenset({"shift"})  # with another modifier a key is not ours
RATES = (5.0, 10.0, 15.0, 20.0, 24.0, 25.0, 30.0, 45.0, 60.0, 75.0, 90.0, 120.0)


_ONCE = {"pause", "step", "source", "video", "full screen", "picture", "end"}


class ControlledRun(Protocol):
    """What of a run the controls change."""

    scheduler: str
    mode: str  # a ChunkMode
    fps: float

    def reconfigure(self, scheduler: str, mode: str, fps: float) -> None:
        """Go on with another policy, chunk mode or frame rate."""

    def watch(self, source: Source) -> None:
        """Go on with another source."""


class Controls(Fallible):
    """Answers the keys of ``COMMANDS`` and keeps what they set. Main thread only.

    ``view``: an OverlayView; ``help``: the rows of the card while it is shown; ``ended``:
    stop the run.
    """

    def __init__(
        self, app: App, options: RunOptions, setup: Setup, surface: Surface, run: ControlledRun
    ):
        self._setup, self._run = setup, run
        self._first_scheduler = run.scheduler
        self._faults = Faults()
        self.serve(app)
        self.view = options.overlay
        self.help: Sequence[tuple[str, str]] = ()
        self.ended = False
        self._notice, self._notice_ns = "", 0
        self._presses = sorted(options.press)
        self._sources = Sources(_own_source(app, options, setup), CLIPS, surface.size, run.fps)
        if options.full_screen:
            surface.toggle_full_screen()
        self._takes = Takes(surface, app.name, Path(), self.tell)
        self._actions: dict[str, Callable[[], None]] = {
            "help": self._toggle_help,
            "overlay": self._next_view,
            "pause": self._pause,
            "step": self._step,
            "source": self._next_source,
            "scheduler": self._next_scheduler,
            "mode": self._other_mode,
            "slower": lambda: self._other_rate(max, operator.lt),
            "faster": lambda: self._other_rate(min, operator.gt),
            "video": self._video,
            "full screen": surface.toggle_full_screen,
            "picture": self._takes.picture,
            "end": self._end,
        }

    def serve(self, app: App) -> None:
        """Leave these keys to the app, and show what they do."""
        self._commands, self._rows = commands_by_key(app.keys), help_rows(app)
        self._world = app.world

    def handle(self, event: InputEvent) -> bool:
        """Do what the event asks for; False when it is the app's."""
        if isinstance(event, Close):
            if event.reason:
                self._faults.report(f"{event.reason}: the run ends")
            self._end()
        elif isinstance(event, Dropped):
            self._open(event.path)
        elif isinstance(event, Key) and event.name in self._commands and not event.mods - SHIFT:
            if event.pressed:
                self._actions[self._commands[event.name]]()
        else:
            return False
        return True

    def repeatable(self, event: InputEvent) -> bool:
        """True if input of a session that was kept may be repeated: what writes files, ends the
        run or changes its source may not."""
        if not isinstance(event, Key):
            return True
        return event.mods - SHIFT != frozenset() or self._commands.get(event.name) not in _ONCE

    def presses(self, elapsed_s: float) -> list[InputEvent]:
        """The key presses of ``--press`` that are due ``elapsed_s`` after warm-up."""
        events: list[InputEvent] = []
        while self._presses and self._presses[0][0] <= elapsed_s:
            _, name = self._presses.pop(0)
            events += [Key(name, True), Key(name, False)]
        return events

    def frame(self, at_ns: int) -> None:
        """The frame of ``at_ns`` has been drawn: take it, and see whether another source is
        ready."""
        self._takes.frame(at_ns)
        found = self._sources.opened()
        if isinstance(found, str):
            self.tell(found)
        elif found is not None:
            before = self._setup.source
            self._run.watch(found)
            self._sources.close(before)
            self.tell(found.describe())

    def tell(self, text: str) -> None:
        """Show a line for a few seconds; from any thread."""
        self._notice_ns, self._notice = time.perf_counter_ns() + NOTICE_NS, text

    @property
    def notice(self) -> str:
        """What there is to tell at the moment."""
        return self._notice if time.perf_counter_ns() < self._notice_ns else ""

    def title(self, status: Status) -> str:
        """The window's title."""
        words = [status.app, f"{status.fps:.0f} fps"]
        words += ["paused"] * self._setup.source.held + ["recording"] * self._takes.recording
        return " · ".join(words)

    def close(self) -> None:
        """Finish pictures and videos; call it while the surface is open."""
        self._takes.close()

    # --- the commands, in the order of COMMANDS ----------------------------------------------

    def _toggle_help(self) -> None:
        self.help = () if self.help else self._rows

    def _next_view(self) -> None:
        shown = [each for each in OverlayView.values() if self._world or each != OverlayView.WORLD]
        self.view = after(self.view, shown)

    def _pause(self) -> None:
        source = self._setup.source
        if source.held:
            source.release()
            self.tell("")
        else:
            source.hold()
            self.tell("paused: . for the next picture, space to go on")

    def _step(self) -> None:
        self._setup.source.step()

    def _next_source(self) -> None:
        self.tell(f"opening {self._sources.next()} ...")

    def _open(self, path: str) -> None:
        self._sources.open(path)
        self.tell(f"opening {path} ...")

    def _next_scheduler(self) -> None:
        """One of those for frames, or the run's first: none is imported between two frames."""
        from heimdall.schedulers import SCHEDULERS

        bundled = [name for name, policy in SCHEDULERS.loaded().items() if policy.binds]
        choices = dict.fromkeys([self._first_scheduler, *bundled])
        self._change(scheduler=after(self._run.scheduler, tuple(choices)))

    def _other_mode(self) -> None:
        if not self._setup.elastic:
            self.tell(f"{self._setup.processors.gpu.name} plays the GPU: static chunks only")
            return
        self._change(mode=after(self._run.mode, ChunkMode.values()))

    def _other_rate(self, nearest: Callable[..., float], beyond: Callable[..., bool]) -> None:
        rates = [rate for rate in RATES if beyond(rate, self._run.fps)]
        if rates:
            self._change(fps=nearest(rates))

    def _change(
        self, scheduler: str | None = None, mode: str | None = None, fps: float | None = None
    ) -> None:
        run = self._run
        run.reconfigure(scheduler or run.scheduler, mode or run.mode, fps or run.fps)
        self.tell(f"{run.scheduler} · {run.mode} · {run.fps:g} fps: counting starts afresh")

    def _video(self) -> None:
        self._takes.video(self._run.fps)

    def _end(self) -> None:
        self.ended = True


def after(value: str, choices: Sequence[str]) -> str:
    """The choice that follows ``value``, round and round."""
    return choices[(choices.index(value) + 1) % len(choices)] if value in choices else choices[0]


def _own_source(app: App, options: RunOptions, setup: Setup) -> str | int | None:
    if isinstance(options.source, str | int):
        return options.source
    if isinstance(options.source, Path):
        return str(options.source)
    if options.source is not None:
        return None  # the host's own: once closed, it cannot be opened again
    return 0 if setup.source.live else str(CLIPS / app.clip)
