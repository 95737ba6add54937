"""The client of a DNN that listens: a job for each window of sound, in their order."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from heimdall.capture.sound import Sound
from heimdall.errors import AppError
from heimdall.runtime.execution.frames import FrameRun, Frames
from heimdall.runtime.execution.runs import RegisteredDnn, RunningJob
from heimdall.vocabulary.events import Drop, Prepare

log = logging.getLogger(__name__)

PATIENCE_S = 2.0  # of sound that may wait; what is older is lost


class Listening(Frames):
    """The sound that one DNN listens to. Its results are about windows, not about pictures: what
    comes with them is the picture that was the newest then."""

    def __init__(self, *arguments: Any, ask: Callable[[], None], **more: Any) -> None:
        """``ask`` for a job; from any thread."""
        super().__init__(*arguments, **more)
        self.lost = 0  # windows that nobody has heard
        self._ask = ask
        self._windows: deque[Sound] = deque()
        self._lock = threading.Lock()

    def hear(self, sound: Sound) -> None:
        """A window more. On the sound's thread."""
        hearing = self.deployment.dnn.hears
        assert hearing is not None
        with self._lock:
            self._windows.append(sound)
            if len(self._windows) > max(1, round(PATIENCE_S * hearing.rate_hz)):
                self._windows.popleft()
                self._lose()
            self._ask()

    def _lose(self) -> None:
        self.lost += 1
        if self.lost == 1:
            log.warning(
                "%s listens too slowly: sound older than %g s is lost",
                self.deployment.dnn.name,
                PATIENCE_S,
            )

    def begin(self, action: Prepare, registered: RegisteredDnn, now_ns: int) -> RunningJob:
        with self._lock:
            sound = self._windows.popleft() if self._windows else None
            if self._windows:
                self._ask()
        return SoundRun(self, registered, now_ns, sound)

    def dropped(self, action: Drop, run: RunningJob | None) -> None:
        """A window that is to be tried again is the next one."""
        if isinstance(run, SoundRun) and run.sound is not None:
            with self._lock:
                if action.again:
                    self._windows.appendleft(run.sound)
                else:
                    self._lose()

    def luminance(self, image: np.ndarray) -> float:
        """Sound has none."""
        return 0.0


class SoundRun(FrameRun):
    """A job about a window of sound."""

    def __init__(
        self, client: Listening, registered: RegisteredDnn, requested_ns: int, sound: Sound | None
    ) -> None:
        super().__init__(client, registered, requested_ns, sound)
        self.sound = sound

    def prepare(self, stage: int) -> tuple[int, float]:
        if self.sound is None:
            raise AppError(f"{self.registered.name} was asked to listen, and there was no sound")
        return super().prepare(stage)
