"""What the window shows until the first frame: the camera picture, and how far loading is."""

from __future__ import annotations

import threading
import time

from heimdall.analyzer.profiler import Progress
from heimdall.capture import Frame
from heimdall.errors import DeviceError
from heimdall.render import Close, Key, Overlay, Scene, Surface

_INTERVAL_S = 0.1


class Splash:
    """Progress that is drawn as well as passed on; answers the window meanwhile.

    Closing the window, or Escape, ends the program as Ctrl-C does.
    """

    def __init__(
        self,
        surface: Surface,
        scene: Scene,
        overlay: Overlay,
        frame: Frame,
        title: str,
        progress: Progress,
    ) -> None:
        self._surface, self._scene, self._overlay = surface, scene, overlay
        self._frame, self._title, self._progress = frame, title, progress
        self._drawn_s = float("-inf")

    def __call__(self, what: str, done: int, total: int) -> None:
        self._progress(what, done, total)
        if threading.current_thread() is not threading.main_thread():
            return  # the window belongs to the main thread
        now_s = time.perf_counter()
        if now_s - self._drawn_s >= _INTERVAL_S:
            self._drawn_s = now_s
            self._answer()
            self._draw(what, done / max(total, 1))

    def _answer(self) -> None:
        for event in self._surface.poll():
            if isinstance(event, Close) and event.reason:
                raise DeviceError(f"{event.reason} before the first frame")
            if isinstance(event, Close) or (isinstance(event, Key) and event.name == "escape"):
                raise KeyboardInterrupt

    def _draw(self, what: str, share: float) -> None:
        self._scene.begin(self._frame.image, self._frame.sequence)
        self._scene.render()
        self._overlay.progress(self._title, what, share)
        self._surface.finish()
        self._surface.present()
