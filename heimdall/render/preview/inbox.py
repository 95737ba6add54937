"""Input on its way from the viewers to the main thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from heimdall.render.events import InputEvent, Pointer

ROOM = 512  # events; a main thread that draws takes them 30 times a second


class Inbox:
    """Events in their order; of moves in a row only the last is kept, because an app that is slow
    to answer a move should not be asked about places where the pointer no longer is."""

    def __init__(self) -> None:
        self._events: list[InputEvent] = []
        self._buttons: frozenset[str] = frozenset()
        self._moved = False  # the last event is a move: no button has changed with it
        self._lock = threading.Lock()

    def put(self, events: Sequence[InputEvent], *, always: bool = False) -> bool:
        """Add events; False, and none is added, when there is no room. ``always``: those that let
        go of something, which must not be lost."""
        with self._lock:
            if len(self._events) + len(events) > ROOM and not always:
                return False
            for event in events:
                self._add(event)
        return True

    def take(self) -> list[InputEvent]:
        """What has come since the last call."""
        with self._lock:
            events, self._events, self._moved = self._events, [], False
        return events

    def _add(self, event: InputEvent) -> None:
        moves = isinstance(event, Pointer) and event.buttons == self._buttons
        if moves and self._moved:
            self._events[-1] = event
        else:
            self._events.append(event)
        self._moved = moves
        if isinstance(event, Pointer):
            self._buttons = event.buttons
