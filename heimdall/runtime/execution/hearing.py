"""The client of a DNN that listens: a job for each window of sound, in their order."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

from heimdall.capture.sound import Sound
from heimdall.runtime.execution.asked import Asked
from heimdall.vocabulary.events import Drop

log = logging.getLogger(__name__)

PATIENCE_S = 2.0  # of sound that may wait; what is older is lost


class Listening(Asked[Sound]):
    """The sound that one DNN listens to."""

    missing = "{name} was asked to listen, and there was no sound"

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.lost = 0  # windows that nobody has heard
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

    def take(self) -> Sound | None:
        with self._lock:
            sound = self._windows.popleft() if self._windows else None
            if self._windows:
                self._ask()
        return sound

    def dropped_with(self, subject: Sound, action: Drop) -> None:
        """A window that is to be tried again is the next one."""
        with self._lock:
            if action.again:
                self._windows.appendleft(subject)
            else:
                self._lose()
