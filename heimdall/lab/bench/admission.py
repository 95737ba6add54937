"""What may go on, where baselines' threads wait for one another: without a clock, for live threads
and simulated ones alike.

A thread asks, and its ``go`` is called when it may go on, which may be at once; it leaves when it
has done what it asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

Go = Callable[[], None]  # returns at once, and calls nothing of the gate


class Gate(Protocol):
    """What a thread asks. Any thread may call it."""

    def ask(self, name: str, rank: float, go: Go) -> None:
        """``name`` wants to go on; of several, the one with the lowest rank is to go first. One
        that asks again has left."""

    def leave(self, name: str) -> None:
        """``name`` has done it, or does not want to any more."""

    def contested(self, rank: float) -> bool:
        """True if one waits that would go before one that asks now with this rank."""


class Free:
    """No thread ever waits."""

    def ask(self, name: str, rank: float, go: Go) -> None:
        go()

    def leave(self, name: str) -> None:
        """Does nothing."""

    def contested(self, rank: float) -> bool:
        return False


class OneAtATime:
    """A lock that goes to the lowest rank; of equal ones, to the one that has waited longest."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: str | None = None
        self._waiting: dict[str, tuple[float, Go]] = {}  # in the order in which they asked

    def ask(self, name: str, rank: float, go: Go) -> None:
        with self._lock:
            self._leave(name)
            self._waiting[name] = rank, go
            self._admit()

    def leave(self, name: str) -> None:
        with self._lock:
            self._leave(name)
            self._admit()

    def contested(self, rank: float) -> bool:
        with self._lock:
            return any(other <= rank for other, _ in self._waiting.values())

    def _leave(self, name: str) -> None:
        self._waiting.pop(name, None)
        if self._inside == name:
            self._inside = None

    def _admit(self) -> None:
        if self._inside is None and self._waiting:
            self._inside = min(self._waiting, key=lambda name: self._waiting[name][0])
            _, go = self._waiting.pop(self._inside)
            go()


class Rounds:
    """All that want to, together, as soon as all of the last round have left: one token, which
    a frame's graph of all networks that are due holds until its last result."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: set[str] = set()
        self._waiting: dict[str, Go] = {}

    def ask(self, name: str, rank: float, go: Go) -> None:
        with self._lock:
            self._inside.discard(name)
            self._waiting[name] = go
            self._admit()

    def leave(self, name: str) -> None:
        with self._lock:
            self._inside.discard(name)
            self._waiting.pop(name, None)
            self._admit()

    def contested(self, rank: float) -> bool:
        return False  # none goes first

    def _admit(self) -> None:
        if not self._inside:
            waiting, self._waiting = self._waiting, {}
            self._inside = set(waiting)
            for go in waiting.values():
                go()


class Passage:
    """A live thread's way through a gate."""

    def __init__(self, gate: Gate, name: str) -> None:
        self._gate, self._name = gate, name
        self._go = threading.Event()

    def enter(self, rank: float = 0.0) -> None:
        """Returns when the thread may go on."""
        self._go.clear()
        self._gate.ask(self._name, rank, self._go.set)
        self._go.wait()

    def leave(self) -> None:
        self._gate.leave(self._name)

    def give_way(self, rank: float) -> None:
        """Let those go first that would if this thread only asked now."""
        if self._gate.contested(rank):
            self.enter(rank)
