"""Calls into the app's own code: an error is logged and shown, and never stops the frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from heimdall.system.faults import Fallible, Faults, say

FAILURES_UNTIL_DISABLED = 5


class Callbacks(Fallible):
    """Calls app methods; one that raises several times in a row is not called any more."""

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._faults = Faults()

    def call(self, method: Callable[..., Any], *args: Any, name: str = "") -> Any:
        """``method(*args)``, or None when it raised or is disabled. ``name`` is what errors
        call it, where its own would mean nothing to the app's author."""
        name = name or getattr(method, "__qualname__", repr(method))
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
        message = f"{name} raised {say(error)}"
        if self._failures[name] == FAILURES_UNTIL_DISABLED:
            message += f" ({FAILURES_UNTIL_DISABLED} times in a row: disabled)"
        self._faults.report(message, error)
