"""What goes wrong while frames are drawn: logged when it is new, counted when it comes again."""

from __future__ import annotations

import itertools
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Iterable

from heimdall.errors import HeimdallError

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
        """Note ``message``; the first time, log it with the traceback of ``error``. A HeimdallError
        says what is wrong by itself: its traceback is for those who debug."""
        self.newest = message
        with self._lock:
            if message not in self._times and len(self._times) >= MAX_DIFFERENT:
                message = "further faults"
            self._times[message] += 1
            first = self._times[message] == 1
        if first:
            expected = error is None or isinstance(error, HeimdallError)
            traced = not expected or log.isEnabledFor(logging.DEBUG)
            details = _traceback(error) if error is not None and traced else ""
            log.error("%s", f"{message}\n{details}".rstrip())

    @property
    def messages(self) -> list[str]:
        """All messages, in the order in which they first came."""
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


class SharedFallible:
    """Keeps going past what fails, and tells each of several users of what concerns them."""

    def __init__(self) -> None:
        self._of_all = Faults()
        self._of: dict[str, Faults] = {}  # each user's own
        self._newest_of: dict[str, tuple[int, str]] = {}  # by user, "" for all: (when, message)
        self._order = itertools.count(1)

    def errors_of(self, names: Iterable[str]) -> list[str]:
        """What has failed for these users, each message once; then what has failed for all."""
        own = [message for name in names if name in self._of for message in self._of[name].messages]
        return [*own, *self._of_all.messages]

    def faulty(self, name: str) -> bool:
        """Whether something has failed for that user."""
        return name in self._of and bool(self._of[name].messages)

    def message_of(self, names: Iterable[str]) -> str:
        """The newest failure that concerns these users, for the overlay."""
        return max(self._newest_of.get(name, (0, "")) for name in ("", *names))[1]

    def _use(self, name: str) -> None:
        """A user of which nothing is known."""
        self._of[name] = Faults()
        self._newest_of.pop(name, None)

    def _forget(self, name: str) -> None:
        self._of.pop(name, None)
        self._newest_of.pop(name, None)

    def _fault(self, name: str, message: str, error: BaseException | None = None) -> None:
        """Report what failed for ``name``, or for all ("")."""
        faults = self._of_all if name == "" else self._of.get(name)
        if faults is None:  # it has left meanwhile
            Faults().report(message, error)
            return
        faults.report(message, error)
        self._newest_of[name] = next(self._order), message


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # Python asks an exception whether it is true
        return ""


def say(error: BaseException) -> str:
    """``ValueError: no couch``, whatever the exception's own text does."""
    try:
        text = str(error)
    except Exception:  # an app's exception class: its __str__ may be as broken as its draw
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
