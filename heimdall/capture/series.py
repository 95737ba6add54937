"""Series of pictures as clips: a folder, numbered files (``%04d.png``), an animation.

When each picture was taken is known from the file's name (EuRoC, TUM: seconds, or nanoseconds,
since 1970) or from ``times.txt`` or ``timestamps.txt`` next to the pictures or their
folder (KITTI); else there are 30 a second.
"""

from __future__ import annotations

import itertools
import logging
import re
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from heimdall.capture.pictures import as_picture
from heimdall.errors import ConfigError, DeviceError, HeimdallError

log = logging.getLogger(__name__)

RATE_HZ = 30.0
PICTURES = {
    *(".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".avif", ".jp2"),
    *(".pgm", ".ppm", ".pbm", ".pnm", ".tga", ".gif"),
}
LARGEST = 2 << 30  # of an animation: all its pictures are decoded at once
_INNER = "data"  # the folder of pictures in a camera's one (EuRoC, KITTI)
_TIMES = ("times.txt", "timestamps.txt")
_NUMBERED = re.compile(r"%(?:0(\d+))?d")

Load = Callable[[], np.ndarray]


class Series:
    """Pictures, BGR uint8, each read when its turn comes, as a clip. ``times_ns``: when each was
    taken; None: at ``RATE_HZ``. ``last_ns``: how long the last is shown; 0: as usual. One that
    cannot be read is left out. Raises DeviceError without any."""

    live = False

    def __init__(
        self, name: str, loads: Sequence[Load], times_ns: Sequence[int] | None, last_ns: int = 0
    ) -> None:
        if not loads:
            raise DeviceError(f"{name} holds no picture")
        self._name, self._loads = name, loads
        usual_ns = round(1e9 / RATE_HZ)
        times = times_ns or [k * usual_ns for k in range(len(loads))]
        gaps = [after - before for before, after in itertools.pairwise(times)]
        usual_ns = last_ns or (round(statistics.median(gaps)) if gaps else usual_ns)
        self._times_ns, self._gaps_ns = times, [*gaps, usual_ns]
        self.fps = 1e9 / usual_ns
        self._next = 0

    @property
    def at_ns(self) -> int:
        """When the last picture was taken, since the first one."""
        return self._times_ns[max(self._next - 1, 0)] - self._times_ns[0]

    def read(self) -> np.ndarray | None:
        """The next picture that can be read; None at the end."""
        while self.skip():
            try:
                return self._loads[self._next - 1]()
            except HeimdallError as error:
                log.warning("%s: a picture is left out: %s", self._name, error)
        return None

    def skip(self) -> bool:
        """Pass over a picture."""
        if self._next == len(self._loads):
            return False
        self._next += 1
        return True

    def gap_ns(self) -> int:
        """How long after the last picture the next one was taken."""
        return self._gaps_ns[self._next - 1]

    def rewind(self) -> bool:
        """Back to the first picture."""
        self._next = 0
        return True

    def close(self) -> None:
        """Nothing is open."""


def open_folder(folder: Path, name: str, load: Callable[[Path], np.ndarray]) -> Series:
    """The pictures of a folder, in the order of the numbers in their names. Raises ConfigError for
    a folder without any."""
    found = _pictures(folder)
    if not found and (folder / _INNER).is_dir():
        folder = folder / _INNER
        found = _pictures(folder)
    if not found:
        inner = [each.name for each in sorted(folder.iterdir()) if each.is_dir()]
        instead = f"; give one of its folders: {', '.join(inner[:5])}" if inner else ""
        raise ConfigError(f"{name} holds no picture{instead}")
    return _of_files(name, found, load)


def open_numbered(pattern: Path, name: str, load: Callable[[Path], np.ndarray]) -> Series:
    """Files named ``%d.png``, ``left%04d.png`` or ``*.png``, in the order of their numbers. Raises
    ConfigError where there is none."""
    try:
        files = [each for each in pattern.parent.iterdir() if _fits(each.name, pattern.name)]
    except OSError as error:
        raise ConfigError(f"cannot read {pattern}: {error.strerror or error}") from error
    if not files:
        raise ConfigError(f"no file is named as {pattern}; check the path")
    return _of_files(name, sorted(files, key=_order), load)


def is_pattern(path: Path) -> bool:
    """True for names of several files, such as ``%04d.png`` or ``*.png``."""
    return bool(_NUMBERED.search(path.name) or "*" in path.name)


def open_animation(path: Path, name: str) -> Series:
    """An animated WebP, which libav does not decode. Raises DeviceError for a damaged one."""
    try:
        _, first = cv2.imreadanimation(str(path), 0, 1)
        needed = sum(each.nbytes for each in first.frames) * cv2.imcount(str(path))
        if needed > LARGEST:
            raise DeviceError(f"{name} needs {needed >> 20} MiB in memory; make it a video (.mp4)")
        _, animation = cv2.imreadanimation(str(path))
    except cv2.error as error:
        raise DeviceError(f"cannot decode {name}; it is damaged") from error
    if not animation.frames:
        raise DeviceError(f"cannot decode {name}; it is damaged")
    times = [
        0,
        *itertools.accumulate(max(int(each), 1) * 1_000_000 for each in animation.durations),
    ]
    loads = [partial(as_picture, each) for each in animation.frames]
    return Series(name, loads, times[:-1], times[-1] - times[-2])


def _pictures(folder: Path) -> list[Path]:
    found = [each for each in folder.iterdir() if not each.name.startswith(".") and each.is_file()]
    return sorted((each for each in found if _is_picture(each)), key=_order)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURES or bool(cv2.haveImageReader(str(path)))


def _fits(name: str, pattern: str) -> bool:
    parts = re.split(r"(%\d*d|\*)", pattern)
    regex = "".join(
        ".*" if part == "*" else rf"\d{{{int(part[1:-1] or 1)},}}" if index % 2 else re.escape(part)
        for index, part in enumerate(parts)
    )
    return re.fullmatch(regex, name) is not None and not name.startswith(".")


def _order(path: Path) -> list[tuple[int, str]]:
    """As people count: picture 10 comes after picture 9."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts if part]


def _of_files(name: str, files: Sequence[Path], load: Callable[[Path], np.ndarray]) -> Series:
    stated = [(at_ns, each) for each in files if (at_ns := _named_ns(each.stem)) is not None]
    if len(stated) == len(files):
        times: list[int] | None = [at_ns for at_ns, _ in sorted(stated)]
        files = [each for _, each in sorted(stated)]
    else:
        times = _listed_ns(name, files)
    if times and any(after <= before for before, after in itertools.pairwise(times)):
        log.warning("%s: times of pictures are not in order; they are shown 30 a second", name)
        times = None
    return Series(name, [partial(load, each) for each in files], times)


def _listed_ns(name: str, files: Sequence[Path]) -> list[int] | None:
    """Times of pictures from a file next to them or to their folder; None without."""
    folder = files[0].parent
    places = [place / each for place in (folder, folder.parent) for each in _TIMES]
    listed = next((each for each in places if each.is_file()), None)
    if listed is None:
        return None
    lines = [each for each in listed.read_text("utf-8", "replace").split("\n") if each.strip()]
    times = [at_ns for each in lines if (at_ns := _written_ns(each.strip())) is not None]
    if not len(lines) == len(times) == len(files):
        log.warning("%s: %s has no time for each picture; they are shown 30 a second", name, listed)
        return None
    return times


def _named_ns(stem: str) -> int | None:
    """``1403636579763555584``, ``1305031102.175304``: since 1970."""
    match = re.fullmatch(r"(\d{10})(\.\d{1,9}|\d{3}|\d{6}|\d{9})", stem)
    return int(match[1] + match[2].lstrip(".").ljust(9, "0")) if match else None


def _written_ns(line: str) -> int | None:
    """``1.036875e-01`` (seconds), ``2011-09-26 13:02:25.964389445``."""
    try:
        if match := re.fullmatch(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d{1,9})?", line):
            day = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
            return int(day.timestamp()) * 10**9 + int((match[2] or ".")[1:].ljust(9, "0"))
        return round(float(line) * 1e9)
    except (ValueError, OverflowError):
        return None
