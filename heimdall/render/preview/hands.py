"""What one viewer holds down, and what that makes of the messages of its page."""

from __future__ import annotations

from heimdall.render.events import InputEvent, Key, Pointer, Scroll
from heimdall.render.preview.protocol import Blurred, Message, Pointed, Pressed, Scrolled

MOST_HELD = 32  # keys at a time; more than any hands have


class Hands:
    """Turns messages into the events that a window would give.

    A key or button that went down comes up again, whatever happens to the page: every press is
    followed by one release, under the same name even where Shift has been let go meanwhile.
    """

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}  # code to name
        self._pointer = (0.0, 0.0)
        self._buttons: frozenset[str] = frozenset()

    def take(self, message: Message, size: tuple[int, int] | None) -> list[InputEvent]:
        """The events of ``message``, on a picture of ``size`` pixels; None: it has none yet."""
        if isinstance(message, Pressed):
            return self._press(message)
        if isinstance(message, Pointed) and size is not None:
            # The last pixel's number is one less than their count.
            self._pointer = (message.x * (size[0] - 1), message.y * (size[1] - 1))
            self._buttons = message.held
            return [Pointer(*self._pointer, self._buttons)]
        if isinstance(message, Scrolled) and (message.dx or message.dy):
            return [Scroll(message.dx, message.dy)]
        if isinstance(message, Blurred):
            return self.release()
        return []

    def release(self) -> list[InputEvent]:
        """Let go of everything."""
        events: list[InputEvent] = [Key(name, False) for name in self._keys.values()]
        if self._buttons:
            events.append(Pointer(*self._pointer))
        self._keys, self._buttons = {}, frozenset()
        return events

    def _press(self, message: Pressed) -> list[InputEvent]:
        held = self._keys.get(message.code)
        if message.down:
            if not message.name or held is not None or len(self._keys) >= MOST_HELD:
                return []
            self._keys[message.code] = message.name
            return [Key(message.name, True, message.mods)]
        if held is None:
            return []
        del self._keys[message.code]
        return [Key(held, False, message.mods)]
