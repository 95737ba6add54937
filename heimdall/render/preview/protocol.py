"""What the page says, as values: JSON texts, each checked before anything is done with it.

Where the page is a phone's screen, an offer and its answer agree on WebRTC for the pictures both
ways and a channel for words; times are ms by the server's clock then, as the page has worked them
out from ``clock``. What the server says is in replies.py; nothing here opens a socket.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from heimdall.capture.device_pose import MOST_PLANES, Kind

LONGEST = 512  # bytes of a message from the page
LONGEST_OFFER = 65536  # of one that offers WebRTC
MOST_NOTCHES = 100.0  # of the wheel, in one message
MOST_MS = 1e9
_SHORTEST = 1e-6  # of a quaternion, squared

_BUTTONS = ((1, "left"), (2, "right"), (4, "middle"))  # bits of a browser's `buttons`
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


_CHECKED = ConfigDict(strict=True, extra="forbid")
_Word = Annotated[str, Field(max_length=32)]
_Place = Annotated[
    float, Field(ge=-1000, le=1000), AfterValidator(lambda at: min(max(at, 0.0), 1.0))
]
_Time = Annotated[float, Field(ge=0, le=MOST_MS * 1e6, allow_inf_nan=False)]
_Number = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
_Two = Annotated[list[_Number], Field(min_length=2, max_length=2)]
_Three = Annotated[list[_Number], Field(min_length=3, max_length=3)]
_Strength = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
_Colour = Annotated[list[_Strength], Field(min_length=3, max_length=3)]
_Four = Annotated[list[_Number], Field(min_length=4, max_length=4)]
_Notches = Annotated[float, Field(ge=-MOST_NOTCHES, le=MOST_NOTCHES)]


@dataclass(frozen=True, config=_CHECKED)
class Pressed:
    """A key went down or up: what the browser calls it, and its place on the keyboard."""

    key: _Word
    code: _Word
    down: bool
    mods: frozenset[Literal["shift", "control", "alt", "super"]]
    type: Literal["key"] = "key"

    @property
    def name(self) -> str:
        """What a window calls the key; "" for one that it does not tell of either, as Shift."""
        return key_name(self.key, self.code, "shift" in self.mods)


@dataclass(frozen=True, config=_CHECKED)
class Pointed:
    """The pointer is at (x, y), in shares of the picture's width and height, y down; ``buttons``:
    the sum of 1 (left), 2 (right), 4 (middle)."""

    x: _Place
    y: _Place
    buttons: Annotated[int, Field(ge=0, lt=64)]
    type: Literal["pointer"] = "pointer"

    @property
    def held(self) -> frozenset[str]:
        """The buttons by name."""
        return frozenset(name for bit, name in _BUTTONS if self.buttons & bit)


@dataclass(frozen=True, config=_CHECKED)
class Scrolled:
    """The wheel turned by so many notches."""

    dx: _Notches
    dy: _Notches
    type: Literal["scroll"] = "scroll"


@dataclass(frozen=True, config=_CHECKED)
class Blurred:
    """The page has lost the focus: releases of keys and buttons will not be reported."""

    type: Literal["blur"] = "blur"


@dataclass(frozen=True, config=_CHECKED)
class Watching:
    """Whether the page is visible."""

    on: bool
    type: Literal["watch"] = "watch"


@dataclass(frozen=True, config=_CHECKED)
class Shown:
    """The page has drawn the picture of this number, so many ms after it came."""

    number: Annotated[int, Field(ge=0, lt=2**32)]
    took_ms: Annotated[float, Field(alias="took", ge=0, le=MOST_MS)]
    type: Literal["shown"] = "shown"


@dataclass(frozen=True, config=_CHECKED)
class Offered:
    """An offer of WebRTC by ``page``, a name that it gave itself; ``drives``: with its camera;
    ``relayed``: it knows the relay, if there is one."""

    sdp: Annotated[str, Field(max_length=LONGEST_OFFER)]
    page: _Word
    drives: bool
    relayed: bool = False
    type: Literal["offer"] = "offer"


@dataclass(frozen=True, config=_CHECKED)
class Clock:
    """Asks for the server's time; ``sent_ms`` by the page's clock comes back with it.
    ``epoch_ms``: what the page's clock, since 1970, is ahead of the server's, once it knows."""

    sent_ms: Annotated[_Time, Field(alias="sent")]
    epoch_ms: Annotated[float | None, Field(alias="epoch", allow_inf_nan=False)] = None
    type: Literal["clock"] = "clock"


@dataclass(frozen=True, config=_CHECKED)
class Placed:
    """Where WebXR has something: ``at`` in metres, ``turn`` as a quaternion (x, y, z, w); y up."""

    at: _Three
    turn: _Four

    def __post_init__(self) -> None:
        if sum(each * each for each in self.turn) < _SHORTEST:
            raise ValueError("turn: a quaternion has a length")


@dataclass(frozen=True, config=_CHECKED)
class Viewed:
    """What WebXR says of a picture: from where it was taken (the camera looks along -z), None where
    that is lost, and its ``lens``, focal lengths and centre, (fx, fy, cx, cy) in shares of the
    picture's width and height, y down."""

    place: Placed | None
    lens: _Four

    def __post_init__(self) -> None:
        if min(self.lens[:2]) <= 0.05:
            raise ValueError("lens: focal lengths are above 0.05")


@dataclass(frozen=True, config=_CHECKED)
class Surface:
    """A plane that WebXR has found: its normal is y, its ``outline`` lies along x and z."""

    id: Annotated[int, Field(ge=0, lt=2**31)]
    place: Placed
    outline: Annotated[list[_Two], Field(min_length=3, max_length=64)]
    kind: Kind


@dataclass(frozen=True, config=_CHECKED)
class Surfaces:
    """All planes that WebXR knows now."""

    planes: Annotated[list[Surface], Field(max_length=MOST_PLANES)]
    type: Literal["surfaces"] = "surfaces"


@dataclass(frozen=True, config=_CHECKED)
class Lit:
    """The light as WebXR estimates it; see ``DeviceLight``."""

    towards: _Three
    main: _Colour
    around: _Colour
    type: Literal["light"] = "light"

    def __post_init__(self) -> None:
        if not any(self.towards):
            raise ValueError("towards: light comes from somewhere")


@dataclass(frozen=True, config=_CHECKED)
class Sensed:
    """The camera took a picture at ``at_ms``, and gave it away at ``sent_ms``; then gravity pulled
    ``down``, and the phone was accelerated by so many m/s^2, in the axes of ``Motion``; ``viewed``:
    as WebXR has it."""

    at_ms: Annotated[_Time, Field(alias="at")]
    sent_ms: Annotated[_Time, Field(alias="sent")]
    down: _Three | None = None
    acceleration: _Three | None = None
    viewed: Viewed | None = None
    type: Literal["sensed"] = "sensed"

    def __post_init__(self) -> None:
        if self.down is not None and not any(self.down):
            raise ValueError("down: gravity pulls somewhere")


@dataclass(frozen=True, config=_CHECKED)
class Seen:
    """The frame of this RTP time was on the page's screen at ``at_ms``."""

    rtp: Annotated[int, Field(ge=0, lt=2**32)]
    at_ms: Annotated[_Time, Field(alias="at")]
    type: Literal["seen"] = "seen"


@dataclass(frozen=True, config=_CHECKED)
class Line:
    """How the line to the page is: ``lost``, the share of packets in the last second."""

    lost: Annotated[float, Field(ge=0, le=1)]
    type: Literal["line"] = "line"


Message = (
    Pressed
    | Pointed
    | Scrolled
    | Blurred
    | Watching
    | Shown
    | Offered
    | Clock
    | Sensed
    | Surfaces
    | Lit
    | Seen
    | Line
)
_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="type")])

_TYPES = (
    "the message must have a type: key, pointer, scroll, blur, watch, shown, offer, clock, sensed, "
    "surfaces, light, seen, line"
)
_PROBLEMS = {
    "json_invalid": "the message is not JSON",
    "union_tag_not_found": _TYPES,
    "union_tag_invalid": _TYPES,
}


def read(text: str) -> Message:
    """What the page says in ``text``. Raises MessageError, and nothing else, whatever it is."""
    try:
        return _MESSAGE.validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        where = "".join(f"{part}: " for part in found["loc"])
        raise MessageError(_PROBLEMS.get(found["type"], f"{where}{found['msg']}")) from None


def key_name(key: str, code: str, shifted: bool) -> str:
    """What a window calls the key whose browser names are ``key`` and ``code``; "" for none."""
    if key in _NAMED:
        return _NAMED[key]
    if len(key) != 1 or not key.isprintable():
        return ""  # Shift, Dead, a media key ...
    if shifted and not key.isalpha():
        return _UNSHIFTED.get(code, key)
    return key.lower()
