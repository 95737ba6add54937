"""The part of its pictures that an MP4 or QuickTime file states to be shown ("clap", ISO/IEC
14496-12, 12.1.4): PyAV does not say it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from io import BytesIO
from typing import BinaryIO

MOST_BYTES = 1 << 20  # of a description of samples

Window = tuple[int, int, int, int]  # left, top, width, height, in stored pixels

_INSIDE = {b"moov", b"trak", b"mdia", b"minf", b"stbl"}
_ENTRY_BYTES = 78  # of a picture's sample entry, before the boxes in it


def clean_aperture(file: BinaryIO, track: int) -> Window | None:
    """The window of the ``track`` with that ID, in pixels; None if the file states none, or one
    that makes no sense. Raises OSError."""
    end = file.seek(0, 2)
    for description in _descriptions(file, 0, end, track):
        entries = BytesIO(description)
        for _, first, last in _boxes(entries, 8, len(description)):
            if last - first < _ENTRY_BYTES:
                continue
            width, height = struct.unpack_from(">HH", description, first + 24)
            for kind, start, stop in _boxes(entries, first + _ENTRY_BYTES, last):
                if kind == b"clap" and stop - start >= 32:
                    return _window(description[start : start + 32], width, height)
    return None


def _boxes(file: BinaryIO, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Each box's kind, and where its content begins and ends."""
    while start + 8 <= end:
        file.seek(start)
        head = file.read(16)
        if len(head) < 8:
            return
        size, kind, begin = *struct.unpack(">I4s", head[:8]), start + 8
        if size == 1 and len(head) == 16:
            size, begin = struct.unpack(">Q", head[8:])[0], start + 16
        stop = end if size == 0 else start + size
        if not begin <= stop <= end:
            return
        yield kind, begin, stop
        start = stop


def _descriptions(file: BinaryIO, start: int, end: int, track: int) -> Iterator[bytes]:
    """What describes the samples of a track ("stsd")."""
    for kind, begin, stop in _boxes(file, start, end):
        if kind == b"tkhd":
            file.seek(begin)
            head = file.read(24)
            at = 20 if head[:1] == b"\1" else 12
            if len(head) < at + 4 or struct.unpack_from(">I", head, at)[0] != track:
                return
        elif kind in _INSIDE:
            yield from _descriptions(file, begin, stop, track)
        elif kind == b"stsd" and stop - begin <= MOST_BYTES:
            file.seek(begin)
            yield file.read(stop - begin)


def _window(stated: bytes, width: int, height: int) -> Window | None:
    numbers = struct.unpack(">IIIIiIiI", stated)
    if 0 in numbers[1::2]:
        return None
    wide, high, right, down = (
        Fraction(top, bottom) for top, bottom in zip(numbers[::2], numbers[1::2], strict=True)
    )
    left, top = right + (width - wide) / 2, down + (height - high) / 2
    window = round(left), round(top), round(wide), round(high)
    inside = min(window[:2]) >= 0 and left + wide <= width and top + high <= height
    return window if inside and min(window[2:]) > 0 else None
