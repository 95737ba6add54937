"""What goes wrong while frames are drawn: logged when it is new, counted when it comes again."""

from __future__ import annotations

import logging
import threading
import traceback
from collections import Counter

log = logging.getLogger(__name__)

MAX_DIFFERENT = 100  # faults remembered: messages that always differ must not fill the memory


class Faults:
    """Each different fault once, so that one which lasts for hours floods neither log nor
    memory. ``report`` may be called from any thread."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.newest = ""

    def report(self, message: str, error: BaseException | None = None) -> None:
        """Note ``message``; the first time, log it with the traceback of ``error``."""
        self.newest = message
        with self._lock:
            if message not in self._times and len(self._times) >= MAX_DIFFERENT:
                message = "further faults"
            self._times[message] += 1
            first = self._times[message] == 1
        if first:
            details = "" if error is None else "\n" + "".join(traceback.format_exception(error))
            log.error("%s%s", message, details.rstrip())

    @property
    def messages(self) -> list[str]:
        """In the order in which they first came."""
        with self._lock:
            return [
                message if times == 1 else f"{message} ({times} times)"
                for message, times in self._times.items()
            ]


class Fallible:
    """Keeps going past what fails, and tells of it afterwards."""

    _faults: Faults

    @property
    def errors(self) -> list[str]:
        """What has failed, each message once."""
        return self._faults.messages

    @property
    def message(self) -> str:
        """The newest failure, for the overlay."""
        return self._faults.newest


def say(error: BaseException) -> str:
    """``ValueError: no couch``, whatever the exception's own text does."""
    try:
        text = str(error)
    except Exception:  # an app's exception class: its __str__ may be as broken as its draw
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
