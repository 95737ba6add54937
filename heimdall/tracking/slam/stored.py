"""A room's map as arrays that a file can keep, and back: what is read is checked before it is used.

As between processes (``wire``), words are JSON and arrays are what they are; pictures are PNG.
"""

from __future__ import annotations

import copy
import json
import math
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np

from heimdall.capture.lens import COUNTS, FISHEYE_COUNT
from heimdall.tracking.slam import wire
from heimdall.tracking.slam.found import HORIZONTAL, UNKNOWN, VERTICAL
from heimdall.tracking.slam.model import Map
from heimdall.tracking.slam.picture import SIDE_PX

VERSION = 1
MOST_KEYFRAMES, MOST_POINTS, MOST_PLANES = 1000, 1 << 21, 1000
WORDS = "room"  # the array with those
FLOAT, WHOLE, BYTE = "f", "i", "u"


def parts_of(known: Map) -> dict[str, np.ndarray]:
    """All of a map: arrays by their names. Points that are gone are left out."""
    keyframes = {number: copy.copy(each) for number, each in known.keyframes.items()}
    known = replace(known, keyframes=keyframes, points=copy.copy(known.points))
    known.renumber()
    message = wire.of_map(known)
    arrays = message.arrays
    for number, each in known.keyframes.items():
        arrays[f"grey {number}"] = cv2.imencode(".png", each.picture.grey)[1].ravel()
        if each.features is not None:
            owners, descriptors = each.features
            arrays |= {f"owners {number}": owners, f"descriptors {number}": descriptors}
    words = {"version": VERSION, **message.words}
    return {WORDS: np.frombuffer(json.dumps(words).encode(), np.uint8), **arrays}


def map_of(value: Callable[[str], np.ndarray | None]) -> Map:
    """The map that ``parts_of`` told; ``value`` gives an array by its name, None where there is
    none. Raises ValueError for what is none, and other errors for words that are none."""
    told = value(WORDS)
    if told is None:
        raise ValueError("it is of targets, not of a room")
    words = json.loads(_fit(WORDS, told, BYTE, None).tobytes())
    if words["version"] != VERSION:
        raise ValueError("its room is of another version")
    parts = _Parts(value)
    count = parts.points()
    keyframes = words["keyframes"]
    _require(2 <= len(keyframes) <= MOST_KEYFRAMES, "so many keyframes are no map")
    numbers = [each[0] for each in keyframes]
    _require(len({*map(_number, numbers)}) == len(numbers), "keyframes share a number")
    _require(len({tuple(each[3][:2]) for each in keyframes}) == 1, "its pictures differ in size")
    for number, depth, scale, lens in keyframes:
        _require(_positive(depth) and _positive(scale), "a keyframe has no depth")
        parts.keyframe(number, _checked(lens), count)
    alive = np.isfinite(parts.arrays["spread"])
    anchored = np.isin(parts.arrays["anchor"][alive], numbers)
    _require(bool(anchored.all()), "points hang on no keyframe")
    planes = words["planes"]
    _require(len(planes) <= MOST_PLANES, "it has too many planes")
    _require(len({_number(each[0]) for each in planes}) == len(planes), "planes share a number")
    for number, kind, size, deviation in planes:
        _require(kind in (HORIZONTAL, VERTICAL, UNKNOWN), f"no plane is {kind!r}")
        _require(len(size) == 2 and all(map(_positive, size)), "a plane has no size")
        _require(deviation == 0 or _positive(deviation), "a plane's place is unknown")
        parts.plane(number)
    parts.up()
    words["times"] = 1.0  # its lenses are as they were found
    known = wire.to_map(wire.Message("map", words, parts.arrays))
    for number, each in known.keyframes.items():
        each.features = parts.features(number, count)
    return known


def turning(name: str, turn: np.ndarray) -> None:
    """Raises ValueError unless ``turn`` (3, 3) is a rotation."""
    off = np.abs(turn @ turn.T - np.eye(3)).max()
    _require(off < 1e-6 and np.linalg.det(turn) > 0, f"{name} is no pose")


class _Parts:
    """The arrays, each checked as it is taken."""

    def __init__(self, value: Callable[[str], np.ndarray | None]) -> None:
        self._value = value
        self.arrays: dict[str, np.ndarray] = {}

    def take(self, name: str, kind: str, *shape: int | None) -> np.ndarray:
        value = self._value(name)
        if value is None:
            raise ValueError(f"{name} is missing")
        found = self.arrays[name] = _fit(name, value, kind, *shape)
        return found

    def points(self) -> int:
        """All points. Returns how many."""
        spread = self._value("spread")
        _require(spread is not None and spread.ndim == 1, "it has no points")
        assert spread is not None
        count = len(spread)
        _require(0 < count <= MOST_POINTS, "so many points are no map")
        _require(spread.dtype == np.float64 and not np.isnan(spread).any(), "spread is no number")
        self.arrays["spread"], alive = spread, np.isfinite(spread)
        _require(bool((spread > 0).all()), "spread is not above 0")
        self.take("position", FLOAT, count, 3)
        self.take("anchor", WHOLE, count)
        self.take("ray", FLOAT, count, 2)
        inverse = self.take("inverse", FLOAT, count)
        _require(bool((inverse[alive] > 0).all()), "points lie behind the camera")
        return count

    def keyframe(self, number: int, size: tuple[int, int], points: int) -> None:
        """What one keyframe has."""
        name = f"pose {number}"
        turning(name, self.take(name, FLOAT, 3, 4)[:, :3])
        ids = self.take(f"ids {number}", WHOLE, None)
        _within(f"ids {number}", ids, points)
        _require(bool((np.diff(ids) > 0).all()), f"ids {number} are not in order")
        pixels = self.take(f"pixels {number}", FLOAT, len(ids), 2)
        inside = (pixels >= 0) & (pixels <= np.array(size))
        _require(bool(inside.all()), f"pixels {number} are outside the picture")
        name = f"grey {number}"
        self.arrays[name] = _picture(name, self.take(name, BYTE, None), size)

    def features(self, number: int, points: int) -> tuple[np.ndarray, np.ndarray] | None:
        """What finds one again; None where nothing was kept."""
        if self._value(f"owners {number}") is None:
            return None
        owners = self.take(f"owners {number}", WHOLE, None)
        _within(f"owners {number}", owners, points)
        return owners, self.take(f"descriptors {number}", BYTE, len(owners), 32)

    def plane(self, number: int) -> None:
        """What one plane has."""
        turning(f"plane {number}", self.take(f"plane {number}", FLOAT, 3, 4)[:, :3])
        self.take(f"support {number}", WHOLE, None)
        self.take(f"outline {number}", FLOAT, None, 2)

    def up(self) -> None:
        """The vertical, if it is known."""
        if self._value("up") is not None:
            length = float(np.linalg.norm(self.take("up", FLOAT, 3)))
            _require(abs(length - 1) < 1e-6, "up has another length than 1")


def _fit(name: str, found: np.ndarray, kind: str, *shape: int | None) -> np.ndarray:
    wide = {FLOAT: np.float64, WHOLE: np.int64, BYTE: np.uint8}[kind]
    fits = found.dtype == wide and found.ndim == len(shape)
    fits = fits and all(w in (None, g) for w, g in zip(shape, found.shape, strict=True))
    _require(fits, f"{name} is {found.dtype} {found.shape}")
    _require(kind != FLOAT or bool(np.isfinite(found).all()), f"{name} is not finite")
    return found


def _within(name: str, ids: np.ndarray, points: int) -> None:
    _require(not len(ids) or (ids.min() >= 0 and ids.max() < points), f"{name} are of no points")


def _checked(lens: list[Any]) -> tuple[int, int]:
    """The size of a lens's picture."""
    wide, high, fx, fy, cx, cy, distortion, *rest = lens
    fisheye = rest == [True]
    _require(fisheye or rest in ([], [False]), "a lens is none")
    good = all(type(each) is int and 16 <= each <= SIDE_PX for each in (wide, high))
    good = good and _positive(fx) and _positive(fy)
    good = good and len(distortion) in ((FISHEYE_COUNT,) if fisheye else COUNTS)
    numbers = (cx, cy, *distortion)
    good = good and all(type(e) in (int, float) and math.isfinite(e) for e in numbers)
    _require(good, "a lens is none")
    return wide, high


def _picture(name: str, raw: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Decoded, if its head says that it has that size."""
    head = raw[:24].tobytes()
    png = len(head) == 24 and head[:4] == b"\x89PNG" and struct.unpack(">II", head[16:]) == size
    _require(png, f"{name} is no picture of {size[0]}x{size[1]}")
    grey = cv2.imdecode(raw, cv2.IMREAD_GRAYSCALE)
    _require(grey is not None and grey.shape == size[::-1], f"{name} is damaged")
    return np.asarray(grey)


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError(f"{value!r} is no number of a keyframe or plane")
    return value


def _positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 1e12


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
