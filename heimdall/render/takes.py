"""Pictures and videos taken while the app runs, at the press of a key; no frame waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from heimdall.errors import HeimdallError
from heimdall.render.recorder import Copies, Recorder, save_picture, upright_bgr
from heimdall.render.surface import Surface
from heimdall.render.video import NICE
from heimdall.system.priority import lower_priority
from heimdall.system.workers import Workers


class Takes:
    """Saves what the surface shows as ``<name>-<date>-<time>.png`` and ``.mp4`` in ``folder``.

    ``tell(text)`` hears what was saved, or why not; it is called from any thread. Everything
    else belongs to the main thread.
    """

    def __init__(self, surface: Surface, name: str, folder: Path, tell: Callable[[str], None]):
        self._surface, self._stem, self._tell = surface, name, tell
        self._folder = folder
        self._copies = Copies()
        self._wanted: list[Path] = []
        self._given: set[Path] = set()  # names
        self._writer: Workers | None = None  # a thread, once there is something to write
        self._video: Recorder | None = None

    @property
    def recording(self) -> bool:
        """Whether a video is being taken."""
        return self._video is not None

    def picture(self) -> None:
        """Save the next frame."""
        self._wanted.append(self._path(".png"))

    def video(self, fps: float) -> None:
        """Begin a video, or end the one being taken."""
        if self._video is not None:
            self._end_video()
            return
        try:
            self._video = Recorder(self._path(".mp4"), self._surface.size, fps)
        except HeimdallError as error:
            self._tell(str(error))

    def frame(self, at_ns: int) -> None:
        """The frame of ``at_ns`` has been drawn: add it to what is taken."""
        if self._video is not None:
            try:
                self._video.add(self._surface, at_ns)
            except HeimdallError:
                self._end_video()  # tells why
        self._write_asked()
        for path in self._wanted:
            self._copies.ask(self._surface, path)
        self._wanted.clear()

    def close(self) -> None:
        """Finish what was begun; call it while the surface is open."""
        if self._video is not None:
            self._end_video()
        self._wanted.clear()
        self._write_asked()
        self._copies.release()
        if self._writer is not None:
            self._writer.close(timeout_s=30.0)

    def _end_video(self) -> None:
        assert self._video is not None
        self._video.end()
        self._submit(self._finish, self._video)
        self._video = None

    def _finish(self, video: Recorder) -> None:
        try:
            count = video.close()
        except HeimdallError as error:
            self._tell(str(error))
            return
        left_out = f" ({video.dropped} left out: the encoder was busy)" * (video.dropped > 0)
        self._tell(f"{count} frames saved in {video.path}{left_out}")

    def _write_asked(self) -> None:
        """Write the pictures whose copies were asked for a frame ago: they are there."""
        while (taken := self._copies.take()) is not None:
            self._submit(self._write, *taken)

    def _write(self, pixels: np.ndarray, path: Path) -> None:
        try:
            save_picture(path, upright_bgr(pixels)[..., ::-1])
        except HeimdallError as error:
            self._tell(str(error))
            return
        self._tell(f"saved {path}")

    def _submit(self, call: Callable[..., None], *args: object) -> None:
        if self._writer is None:
            self._writer = Workers("takes", urgency=lambda: lower_priority(NICE))
        self._writer.submit(call, *args)

    def _path(self, suffix: str) -> Path:
        """A name that no file has yet."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        path, number = self._folder / f"{self._stem}-{stamp}{suffix}", 1
        while path.exists() or path in self._given:
            number += 1
            path = self._folder / f"{self._stem}-{stamp}-{number}{suffix}"
        self._given.add(path)
        return path
