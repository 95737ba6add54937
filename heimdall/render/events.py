"""What the user did in the window, as values. Positions are framebuffer pixels, y down."""

from __future__ import annotations

from dataclasses import dataclass

# Keys that print nothing; every other is called by the one character that it prints.
KEYS = (
    *("space", "escape", "enter", "tab", "backspace", "insert", "delete"),
    *("left", "right", "up", "down", "home", "end", "page_up", "page_down"),
    *(f"f{number}" for number in range(1, 13)),
)


@dataclass(frozen=True)
class Key:
    """A key went down or up. ``name``: "a", "1", "space", "escape", "left", "f1", ..."""

    name: str
    pressed: bool
    mods: frozenset[str] = frozenset()  # of "shift", "control", "alt", "super"


@dataclass(frozen=True)
class Pointer:
    """The pointer moved, or a button changed; ``buttons`` are those now held."""

    x: float
    y: float
    buttons: frozenset[str] = frozenset()  # of "left", "right", "middle"


@dataclass(frozen=True)
class Scroll:
    """The wheel turned by (dx, dy) notches at the pointer."""

    dx: float
    dy: float


@dataclass(frozen=True)
class Resize:
    """The framebuffer is now w x h pixels."""

    w: int
    h: int


@dataclass(frozen=True)
class Close:
    """The user asked the window to close, or it has gone by itself: for a ``reason`` then."""

    reason: str = ""


@dataclass(frozen=True)
class Dropped:
    """The user dropped a file on the window."""

    path: str


InputEvent = Key | Pointer | Scroll | Resize | Close | Dropped
