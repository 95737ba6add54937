"""Calls into the app's own code: an error is logged and shown, and never stops the frames."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

log = logging.getLogger(__name__)

FAILURES_UNTIL_DISABLED = 5


class Callbacks:
    """Calls app methods; one that raises several times in a row is not called any more."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self.errors: list[str] = []
        self.message = ""  # the newest error, for the overlay

    def call(self, method: Callable[..., Any], *args: Any) -> Any:
        """``method(*args)``, or None when it raised or is disabled."""
        name = method.__qualname__
        if self._failures[name] >= FAILURES_UNTIL_DISABLED:
            return None
        try:
            value = method(*args)
        except Exception as error:
            # The app is the user's: anything may come out of it.
            self._failed(name, error)
            return None
        self._failures[name] = 0
        return value

    def _failed(self, name: str, error: Exception) -> None:
        self._failures[name] += 1
        message = f"{name} raised {type(error).__name__}: {error}"
        if self._failures[name] == FAILURES_UNTIL_DISABLED:
            message += f" ({FAILURES_UNTIL_DISABLED} times in a row: disabled)"
        log.error("%s\n%s", message, traceback.format_exc())
        if message not in self.errors:
            self.errors.append(message)
        self.message = message
