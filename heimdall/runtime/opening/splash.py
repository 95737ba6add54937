"""What is shown until the app draws: the camera picture, and how far loading is."""

from __future__ import annotations

import threading
import time
from concurrent.futures import CancelledError, Future, wait
from typing import TypeVar

from heimdall.analyzer.profiler import Progress
from heimdall.capture import Frame, Source
from heimdall.capture.pushed import PushedSource
from heimdall.errors import DeviceError
from heimdall.render import Close, Key
from heimdall.runtime.opening.canvas import Canvas
from heimdall.system.interrupts import INTERRUPTS

_INTERVAL_S = 1 / 30  # while it waits, and most of the core is idle
_SELDOM_S = 0.1  # while the main thread loads itself

T = TypeVar("T")


class Splash:
    """Progress that is drawn as well as passed on; answers the window meanwhile.

    Closing the window, or Escape, ends the program as Ctrl-C does. ``shown_s``: when its first
    picture was there, by ``time.perf_counter``.
    """

    def __init__(
        self,
        canvas: Canvas,
        source: Source | PushedSource,
        first: Frame,
        progress: Progress,
    ) -> None:
        self._canvas, self._source, self._frame = canvas, source, first
        self._progress = progress
        self._step = ("starting", 0.0)
        self._drawn_s = float("-inf")
        self.shown_s = 0.0
        self._ended = False

    def __call__(self, what: str, done: int, total: int) -> None:
        if self._ended:
            raise CancelledError  # nobody waits for what is being loaded
        self._progress(what, done, total)
        self._step = (what, done / max(total, 1))
        # The window belongs to the main thread: it tells of others' steps while it waits for them.
        if threading.current_thread() is threading.main_thread():
            INTERRUPTS.due()
            self.show(_SELDOM_S)

    def wait(self, future: Future[T]) -> T:
        """The result of what another thread does; the picture moves on meanwhile."""
        try:
            while not future.done():
                self.show(_INTERVAL_S)
                with INTERRUPTS.at_once():
                    wait([future], max(0.0, self._drawn_s + _INTERVAL_S - time.perf_counter()))
        except BaseException:  # the user has had enough
            self._ended = True
            raise
        return future.result()

    def show(self, interval_s: float = 0.0) -> None:
        """Draw, unless that was so lately. On the main thread."""
        now_s = time.perf_counter()
        if now_s - self._drawn_s >= interval_s:
            self._drawn_s = now_s
            self._answer()
            self._draw(*self._step)

    def _answer(self) -> None:
        for event in self._canvas.surface.poll():
            if isinstance(event, Close) and event.reason:
                raise DeviceError(f"{event.reason} before the first frame")
            if isinstance(event, Close) or (isinstance(event, Key) and event.name == "escape"):
                raise KeyboardInterrupt

    def _draw(self, what: str, share: float) -> None:
        if self._source.live:  # a clip begins with the app
            self._frame = self._source.latest() or self._frame
        surface, scene, app = self._canvas.surface, self._canvas.scene, self._canvas.app
        scene.begin(self._frame.image, self._frame.sequence)
        scene.render()
        self._canvas.overlay.progress(app.title or app.name, what, share)
        surface.finish()
        surface.present()
        self.shown_s = self.shown_s or time.perf_counter()
