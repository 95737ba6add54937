"""Which of the formats, sizes and rates that a camera offers comes nearest to what an app asks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Size = tuple[int, int]  # width, height

# What OpenCV turns into BGR, by the codes of linux/videodev2.h. Bayer patterns are left out: they
# come straight from a sensor, with no exposure or white balance set.
_RAW = {"BGR3", "RGB3", "YU12", "YV12", "411P", "YUYV", "UYVY", "NV12", "NV21", "XR24", "AR24"}
_COMPRESSED = {"MJPG", "JPEG"}
_GREY = {"GREY", "Y16 "}  # infrared cameras
_CLOSE = 0.98  # of the rate asked for: 29.97 is 30


@dataclass(frozen=True)
class Mode:
    """A size that a format comes in, and its rates in frames a second, fastest first; none where
    the driver does not tell."""

    size: Size
    rates: tuple[float, ...]


@dataclass(frozen=True)
class Format:
    """A pixel format, by its code of four characters, and its modes; none where the driver does
    not tell. Of ranges of sizes and rates, the common ones within are modes."""

    fourcc: str
    compressed: bool
    modes: tuple[Mode, ...]

    @property
    def readable(self) -> bool:
        """True if OpenCV makes pictures of it."""
        return self.fourcc in _RAW | _COMPRESSED | _GREY


@dataclass(frozen=True)
class Choice:
    """What to ask a driver for."""

    fourcc: str
    size: Size
    fps: float

    def reaches(self, size: Size, fps: float) -> bool:
        """True if nothing is missing of what was asked."""
        return self.size == size and self.fps >= _CLOSE * fps

    def __str__(self) -> str:
        return f"{self.size[0]}x{self.size[1]} {self.fourcc.strip()} at {self.fps:.4g} fps"


def choose(formats: Iterable[Format], size: Size, fps: float) -> Choice | None:
    """What comes nearest to ``size`` at ``fps``; None where no size of a readable format is known.

    A raw format if it gets there: of a frame of 720p, MJPG takes one core 8 ms to decode, YUYV 1.2
    ms to convert (OpenCV, x86). Yet a USB 2 cable carries 10 raw ones a second, and 30 compressed.
    What is missing of the size and of the rate counts alike: half the rate is as bad as half the
    pixels.
    """
    found = [each for each in formats if each.readable]
    coloured = [each for each in found if each.fourcc not in _GREY]
    choices = [choice for each in coloured or found for choice in _choices(each, fps)]
    return min(choices, key=lambda choice: _cost(choice, size, fps), default=None)


def _choices(offered: Format, fps: float) -> Iterator[Choice]:
    for mode in offered.modes:
        for rate in mode.rates or (fps,):
            yield Choice(offered.fourcc, mode.size, rate)


def _cost(choice: Choice, size: Size, fps: float) -> tuple[float, float, bool, float]:
    """Compared in this order; the rate decides where size and rate miss equally, and a rate above
    what was asked is only work."""
    sizes = zip(choice.size, size, strict=True)
    off = sum(abs(math.log(given / asked)) for given, asked in sizes)
    slow = 0.0 if choice.fps >= _CLOSE * fps else math.log(fps / choice.fps)
    return round(off + slow, 6), slow, choice.fourcc in _COMPRESSED, choice.fps


def entry(
    source: str,
    index: int,
    name: str,
    *,
    error: str | None = None,
    note: str | None = None,
    formats: Iterable[Format] | None = None,
) -> dict[str, Any]:
    """A camera as plain data: ``source`` is what ``--source`` takes, ``formats`` None where they
    are unknown."""
    return {
        "source": source,
        "index": index,
        "name": name,
        "error": error,
        "note": note,
        "formats": None if formats is None else [_as_data(each) for each in formats],
    }


def _as_data(offered: Format) -> dict[str, Any]:
    sizes = [
        {"width": mode.size[0], "height": mode.size[1], "fps": list(mode.rates)}
        for mode in offered.modes
    ]
    name = offered.fourcc.strip()
    return {"format": name, "compressed": offered.compressed, "sizes": sizes}
