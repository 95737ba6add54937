"""What a Video4Linux camera says of itself: name, formats, sizes and rates.

Asked with ioctls of linux/videodev2.h on a node opened without blocking: no stream is started, so
a camera in use by another program, or a dead one, cannot hold us up.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heimdall.capture.formats import Format, Mode, Size

QUERYCAP = 0x80685600
ENUM_FMT = 0xC0405602
ENUM_FRAMESIZES = 0xC02C564A
ENUM_FRAMEINTERVALS = 0xC034564B

CAPABILITY = struct.Struct("=16s32s32sIII12x")
FORMAT = struct.Struct("=III32sI16x")  # index, type, flags, description, code
FRAME_SIZE = struct.Struct("=III6I8x")  # index, code, kind, width and height or a range of both
FRAME_INTERVAL = struct.Struct("=5I6I8x")  # index, code, width, height, kind, 1 or 3 fractions

_CAPTURES, _CAPTURES_PLANES, _BY_CONTROLLER = 0x1, 0x1000, 0x20000000
_HAS_DEVICE_CAPS = 0x80000000
_BUFFERS, _BUFFERS_OF_PLANES = 1, 9
_COMPRESSED = 1
_DISCRETE = 1

# What is asked about where a driver offers whole ranges.
_SIZES = ((320, 240), (640, 360), (640, 480), (800, 600), (1280, 720), (1920, 1080))
_RATES = (60.0, 50.0, 30.0, 25.0, 15.0)
_MOST = 256  # answers, from a driver that finds no end

# Fills the buffer with the answer, or raises OSError, as fcntl.ioctl does.
Ask = Callable[[int, bytearray], object]


@dataclass(frozen=True)
class Camera:
    """What a capture node answers. ``formats`` is None where the driver failed at being asked."""

    name: str
    formats: tuple[Format, ...] | None
    by_controller: bool  # its sensor is set up through another node, as libcamera does

    @property
    def problem(self) -> str | None:
        """Why no picture can be had of the camera; None where nothing is known against it."""
        if self.formats is None or any(each.readable for each in self.formats):
            return None
        if not self.formats:
            return f"it offers no format; is anything connected to it?{self._elsewhere}"
        names = ", ".join(each.fourcc.strip() for each in self.formats)
        return f"none of its formats can be read here: {names}{self._elsewhere}"

    @property
    def note(self) -> str | None:
        """What to try where it gives no picture after all."""
        return f"needs to be set up first{self._elsewhere}" if self.by_controller else None

    @property
    def _elsewhere(self) -> str:
        return "; libcamera may do it: picamera:0, or gst: libcamerasrc" * self.by_controller


def query(path: Path, wanted: Size | None = None) -> Camera | None:
    """Ask the node; None when it captures nothing (metadata, encoders). Raises OSError where it
    cannot be opened or is none. ``wanted`` is asked about too, where any size can be had."""
    import fcntl

    node = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        return describe(lambda request, answer: fcntl.ioctl(node, request, answer), wanted)
    finally:
        os.close(node)


def describe(ask: Ask, wanted: Size | None = None) -> Camera | None:
    """``query`` of anything that answers ioctls."""
    answer = bytearray(CAPABILITY.size)
    ask(QUERYCAP, answer)
    _, card, _, _, capabilities, device = CAPABILITY.unpack(answer)
    if capabilities & _HAS_DEVICE_CAPS:
        capabilities = device
    if not capabilities & (_CAPTURES | _CAPTURES_PLANES):
        return None
    kind = _BUFFERS if capabilities & _CAPTURES else _BUFFERS_OF_PLANES
    formats = None
    with contextlib.suppress(OSError):  # a driver that answers some questions only
        formats = tuple(_formats(ask, kind, [*_SIZES, wanted] if wanted else _SIZES))
    return Camera(_text(card), formats, bool(capabilities & _BY_CONTROLLER))


def _formats(ask: Ask, kind: int, sizes: Sequence[Size]) -> Iterator[Format]:
    for _, _, flags, _, code in _answers(ask, ENUM_FMT, FORMAT, kind):
        found = dict.fromkeys(size for size in _frame_sizes(ask, code, sizes) if all(size))
        modes = tuple(Mode(size, _rates(ask, code, size)) for size in found)
        yield Format(_fourcc(code), bool(flags & _COMPRESSED), modes)


def _frame_sizes(ask: Ask, code: int, common: Sequence[Size]) -> Iterator[Size]:
    for _, _, kind, *numbers in _answers(ask, ENUM_FRAMESIZES, FRAME_SIZE, code):
        if kind == _DISCRETE:
            yield numbers[0], numbers[1]
            continue
        width, height = _range(*numbers[:3]), _range(*numbers[3:])
        yield width[-1], height[-1]
        yield from (size for size in common if size[0] in width and size[1] in height)
        yield width[0], height[0]
        return  # a range is the only answer


def _rates(ask: Ask, code: int, size: Size) -> tuple[float, ...]:
    rates: set[float] = set()
    for answer in _answers(ask, ENUM_FRAMEINTERVALS, FRAME_INTERVAL, code, *size):
        kind, numbers = answer[4], answer[5:]
        if kind == _DISCRETE:
            rates |= _rate(*numbers[:2])
            continue
        fastest, slowest = _rate(*numbers[:2]), _rate(*numbers[2:4])
        if fastest and slowest:
            rates |= fastest | slowest
            rates |= {rate for rate in _RATES if min(slowest) < rate < max(fastest)}
        break
    return tuple(sorted(rates, reverse=True))


def _answers(
    ask: Ask, request: int, layout: struct.Struct, *about: int
) -> Iterator[tuple[Any, ...]]:
    """The answers number 0, 1, 2 ... to a question; it begins with that number and ``about``."""
    for index in range(_MOST):
        answer = bytearray(layout.size)
        struct.pack_into(f"={1 + len(about)}I", answer, 0, index, *about)
        try:
            ask(request, answer)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOTTY):  # no more; or none are known
                return
            raise
        yield layout.unpack(answer)


def _range(least: int, most: int, step: int) -> range:
    step = max(1, step)
    last = least + (most - least) // step * step
    return range(least, max(least, last) + 1, step)


def _rate(numerator: int, denominator: int) -> set[float]:
    """Frames a second of an interval; none where a driver writes nonsense."""
    return {round(denominator / numerator, 3)} if numerator and denominator else set()


def _fourcc(code: int) -> str:
    return struct.pack("<I", code & 0x7FFFFFFF).decode("ascii", errors="replace")


def _text(field: bytes) -> str:
    return field.split(b"\0")[0].decode(errors="replace")
