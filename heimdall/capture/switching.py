"""Another source while the app runs: opened in the background, taken when it gives a picture."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from pathlib import Path

from heimdall.capture import Source, open_source
from heimdall.capture.pushed import PushedSource
from heimdall.capture.readers import camera_likely
from heimdall.errors import HeimdallError

FIRST_PICTURE_S = 10.0
CAMERAS = 4  # that are looked for
CLIPS = (".mp4", ".mov", ".mkv", ".webm", ".jpg", ".png")


class Sources:
    """The sources a user can go through: the run's own (None: it cannot be opened again), the
    cameras, the clips of a folder."""

    def __init__(
        self, own: str | int | None, clips: Path, size: tuple[int, int], fps: float
    ) -> None:
        cameras = [index for index in range(CAMERAS) if camera_likely(index)]
        files = sorted(str(path) for path in clips.glob("*") if path.suffix in CLIPS)
        mine = [] if own is None else [own]
        self._choices: Sequence[str | int] = list(dict.fromkeys([*mine, *cameras, *files]))
        self._size, self._fps = size, fps
        self._now = len(mine) - 1
        self._opening = False
        self._opened: queue.SimpleQueue[Source | str] = queue.SimpleQueue()

    def next(self) -> str | int:
        """Begin to open the next source; returns what it is called."""
        self._now = (self._now + 1) % len(self._choices)
        return self.open(self._choices[self._now])

    def open(self, spec: str | int) -> str | int:
        """Begin to open a source, unless one is being opened."""
        if not self._opening:
            self._opening = True
            threading.Thread(target=self._open, args=(spec,), name="source", daemon=True).start()
        return spec

    def opened(self) -> Source | str | None:
        """A source that is ready to be shown, or why there is none; None while it takes time."""
        try:
            found = self._opened.get_nowait()
        except queue.Empty:
            return None
        self._opening = False
        return found

    def close(self, source: Source | PushedSource) -> None:
        """Close a source that is not shown any more, without waiting for it."""
        threading.Thread(target=source.close, name="source", daemon=True).start()

    def _open(self, spec: str | int) -> None:
        try:
            source = open_source(spec, size=self._size, camera_fps=self._fps)
        except HeimdallError as error:
            self._opened.put(str(error))
            return
        if source.wait_first(FIRST_PICTURE_S) is None:
            source.close()
            self._opened.put(f"{source.name} gives no picture")
            return
        self._opened.put(source)
