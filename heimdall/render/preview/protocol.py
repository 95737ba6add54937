"""What the page and the server say to each other, as values: nothing here opens a socket.

The page sends JSON texts, each checked before anything is done with it. The server sends JSON
texts too, and pictures: 6 bytes (frame number, latency) and a JPEG.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 512  # bytes of a message from the page
MOST_NOTCHES = 100.0  # of the wheel, in one message
MOST_MS = 1e9
UNKNOWN_LATENCY = 0

_HEADER = struct.Struct(">IH")
_BUTTONS = ((1, "left"), (2, "right"), (4, "middle"))  # bits of a browser's `buttons`
_MODS = frozenset({"shift", "control", "alt", "super"})
# The browser's `key` of keys that print nothing, and what a window calls them.
_NAMED = {
    " ": "space",
    "Escape": "escape",
    "Enter": "enter",
    "Tab": "tab",
    "Backspace": "backspace",
    "Insert": "insert",
    "Delete": "delete",
    "ArrowLeft": "left",
    "ArrowRight": "right",
    "ArrowUp": "up",
    "ArrowDown": "down",
    "Home": "home",
    "End": "end",
    "PageUp": "page_up",
    "PageDown": "page_down",
    **{f"F{number}": f"f{number}" for number in range(1, 13)},
}
# A window names a key by what it prints without Shift. A browser tells only what it prints with
# it, and where the key is: so these, and digits, are named by their place on a US keyboard.
_UNSHIFTED = {
    "Minus": "-",
    "Equal": "=",
    "BracketLeft": "[",
    "BracketRight": "]",
    "Backslash": "\\",
    "Semicolon": ";",
    "Quote": "'",
    "Backquote": "`",
    "Comma": ",",
    "Period": ".",
    "Slash": "/",
    **{f"Digit{number}": str(number) for number in range(10)},
}


class MessageError(ValueError):
    """A message that the page would never send; its text says what is wrong with it."""


@dataclass(frozen=True)
class Pressed:
    """A key went down or up. ``code`` is its place on the keyboard; ``name`` is "" for a key that
    a window does not tell of either, such as Shift."""

    code: str
    name: str
    down: bool
    mods: frozenset[str]


@dataclass(frozen=True)
class Pointed:
    """The pointer is at (x, y), in shares of the picture's width and height, y down."""

    x: float
    y: float
    buttons: frozenset[str]


@dataclass(frozen=True)
class Scrolled:
    """The wheel turned by so many notches."""

    dx: float
    dy: float


@dataclass(frozen=True)
class Blurred:
    """The page has lost the focus: releases of keys and buttons will not be reported."""


@dataclass(frozen=True)
class Watching:
    """Whether the page is visible."""

    on: bool


@dataclass(frozen=True)
class Shown:
    """The page has drawn the picture of this number, so many ms after it came."""

    number: int
    took_ms: float


Message = Pressed | Pointed | Scrolled | Blurred | Watching | Shown


def read(text: str) -> Message:
    """What the page says in ``text``. Raises MessageError, and nothing else, whatever it is."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageError("the message is not JSON") from None
    if not isinstance(said, dict):
        raise MessageError("the message is not a JSON object")
    kind = said.pop("type", None)
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise MessageError(f"the message must have a type: {', '.join(_READERS)}")
    return reader(said)


def key_name(key: str, code: str, shifted: bool) -> str:
    """What a window calls the key whose browser names are ``key`` and ``code``; "" for none."""
    if key in _NAMED:
        return _NAMED[key]
    if len(key) != 1 or not key.isprintable():
        return ""  # Shift, Dead, a media key ...
    if shifted and not key.isalpha():
        return _UNSHIFTED.get(code, key)
    return key.lower()


def hello(title: str, keys: Mapping[str, str]) -> str:
    """The first message to a page: what runs, and which keys do what in it."""
    return json.dumps({"type": "hello", "title": title, "keys": list(keys.items())})


def progress(what: str, share: float) -> str:
    """How far loading is; ``share`` from 0 to 1."""
    return json.dumps({"type": "progress", "what": what, "share": round(share, 4)})


def picture(number: int, latency_s: float | None, jpeg: bytes) -> bytes:
    """A picture for the page. ``latency_s`` is how old an earlier one was when it was shown."""
    latency_ms = UNKNOWN_LATENCY if latency_s is None else round(1000 * latency_s)
    return _HEADER.pack(number % 2**32, max(0, min(latency_ms, 0xFFFF))) + jpeg


def _pressed(said: dict[str, Any]) -> Pressed:
    key, code, down, mods = _fields(said, "key code down mods")
    if not (_is_word(key) and _is_word(code) and isinstance(down, bool)):
        raise MessageError("key: key and code must be short texts, down true or false")
    if not (isinstance(mods, list) and all(isinstance(mod, str) for mod in mods)):
        raise MessageError("key: mods must be a list of texts")
    if not _MODS.issuperset(mods):
        raise MessageError(f"key: mods must be of {', '.join(sorted(_MODS))}")
    return Pressed(code, key_name(key, code, "shift" in mods), down, frozenset(mods))


def _pointed(said: dict[str, Any]) -> Pointed:
    x, y, buttons = _fields(said, "x y buttons")
    if not (_is_number(x, 1000) and _is_number(y, 1000)):
        raise MessageError("pointer: x and y must be numbers, 0 to 1 within the picture")
    if not (_is_whole(buttons) and 0 <= buttons < 64):
        raise MessageError("pointer: buttons must be the sum of 1 (left), 2 (right), 4 (middle)")
    held = frozenset(name for bit, name in _BUTTONS if buttons & bit)
    return Pointed(min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0), held)


def _scrolled(said: dict[str, Any]) -> Scrolled:
    dx, dy = _fields(said, "dx dy")
    if not (_is_number(dx, MOST_NOTCHES) and _is_number(dy, MOST_NOTCHES)):
        raise MessageError(f"scroll: dx and dy must be numbers of at most {MOST_NOTCHES:g}")
    return Scrolled(float(dx), float(dy))


def _blurred(said: dict[str, Any]) -> Blurred:
    _fields(said, "")
    return Blurred()


def _watching(said: dict[str, Any]) -> Watching:
    (on,) = _fields(said, "on")
    if not isinstance(on, bool):
        raise MessageError("watch: on must be true or false")
    return Watching(on)


def _shown(said: dict[str, Any]) -> Shown:
    number, took = _fields(said, "number took")
    if not (_is_whole(number) and 0 <= number < 2**32):
        raise MessageError("shown: number must be that of a picture")
    if not (_is_number(took, MOST_MS) and took >= 0):
        raise MessageError(f"shown: took must be milliseconds, from 0 to {MOST_MS:g}")
    return Shown(number, took)


_READERS: dict[str, Callable[[dict[str, Any]], Message]] = {
    "key": _pressed,
    "pointer": _pointed,
    "scroll": _scrolled,
    "blur": _blurred,
    "watch": _watching,
    "shown": _shown,
}


def _fields(said: dict[str, Any], names: str) -> list[Any]:
    """The values of these fields, if there are no others."""
    wanted = names.split()
    if said.keys() != set(wanted):
        raise MessageError(f"the message must have exactly these fields: type {names}".rstrip())
    return [said[name] for name in wanted]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 32


def _is_number(value: Any, most: float) -> bool:
    """NaN compares with nothing, and Python's True is a 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= most


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
