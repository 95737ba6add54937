"""Files that say what a camera is: TOML, one camera each.

    width = 1280
    height = 720
    fx = 911.2
    fy = 910.4
    cx = 646.5
    cy = 352.3
    distortion = [0.08, -0.12, 0.001, -0.0007, 0.01]  # k1, k2, p1, p2, k3, as OpenCV has them

`heimdall calibrate` writes them among the user's files, one for each camera, where every source
that is opened looks. A clip may have one of its own beside it: ``clip.camera.toml``.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heimdall.capture.lens import Camera
from heimdall.errors import ConfigError
from heimdall.system import paths

log = logging.getLogger(__name__)

NUMBERS = ("width", "height", "fx", "fy", "cx", "cy")
COEFFICIENTS = 5
MOST_PIXELS = 100_000  # of a side: beyond it is no camera
SAME_ASPECT = 0.01  # another shape of picture is another part of the sensor, not a scaled one


def read_camera(path: Path) -> Camera:
    """The camera of a file. Raises ConfigError naming the file and what is wrong in it."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read camera file {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"camera file {path} is no TOML: {error}") from error
    return _camera(values, path)


def _camera(values: Mapping[str, Any], path: Path) -> Camera:
    known = {*NUMBERS, "distortion"}
    if stray := sorted(values.keys() - known):
        raise ConfigError(f"camera file {path}: {stray[0]!r} is not one of {', '.join(NUMBERS)}")
    if missing := [name for name in NUMBERS if name not in values]:
        raise ConfigError(f"camera file {path} lacks {', '.join(missing)}")
    distortion = values.get("distortion", [0.0] * COEFFICIENTS)
    if not isinstance(distortion, list) or len(distortion) != COEFFICIENTS:
        raise ConfigError(f"camera file {path}: distortion must be [k1, k2, p1, p2, k3]")
    numbers = {name: _number(values[name], name, path) for name in NUMBERS}
    for side in ("width", "height"):
        if numbers[side] != int(numbers[side]) or not 1 <= numbers[side] <= MOST_PIXELS:
            raise ConfigError(
                f"camera file {path}: {side} = {numbers[side]:g} is no side in pixels"
            )
    for focal in ("fx", "fy"):
        if numbers[focal] <= 0:
            raise ConfigError(f"camera file {path}: {focal} = {numbers[focal]:g} must be above 0")
    width, height, fx, fy, cx, cy = (numbers[name] for name in NUMBERS)
    bent = tuple(_number(each, "distortion", path) for each in distortion)
    return Camera(int(width), int(height), fx, fy, cx, cy, bent)


def _number(value: object, name: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"camera file {path}: {name} must be finite numbers, not {value!r}")
    return float(value)


def write_camera(path: Path, camera: Camera) -> None:
    """Write ``camera``, without its pose. Raises ConfigError where the file cannot be written."""
    lines = [f"{name} = {getattr(camera, name)!r}" for name in NUMBERS]
    lines.append(f"distortion = [{', '.join(repr(float(each)) for each in camera.distortion)}]")
    try:
        paths.replace_file(path, ("\n".join(lines) + "\n").encode())
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error


def file_of(source: str) -> Path:
    """Where the calibration of a source is kept: ``source`` as it is opened, an index, path or
    URL. A camera on Linux goes by what it calls itself, whatever its number is today."""
    name = source
    if re.fullmatch(r"(camera:(//)?)?[0-9]{1,3}", source):
        name = _own_name(int(source.rpartition(":")[2].strip("/")))
    elif "://" not in source and Path(source).exists():
        name = str(Path(source).resolve())
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    stem = paths.slug(Path(name).name or name)[:40]
    return paths.cache_dir() / "cameras" / f"{stem}-{digest}.toml"


def known_camera(source: str) -> Camera | None:
    """What is known of a source, or None. A file that cannot be used is logged: pictures come
    without it, too."""
    places = []
    if "://" not in source and Path(source).suffix:
        places.append(Path(source).expanduser().with_suffix(".camera.toml"))
    try:
        path = next((each for each in [*places, file_of(source)] if each.is_file()), None)
        return read_camera(path) if path else None
    except (ConfigError, OSError) as error:
        log.warning("%s; the camera is guessed", error)
        return None


def fitting(camera: Camera | None, width: int, height: int) -> Camera:
    """``camera`` for pictures of that size; a guess without one, or where their shape differs,
    for that is another part of the sensor."""
    if camera is None or not width * height:
        return Camera.guess(max(width, 1), max(height, 1))
    if camera.size == (width, height):
        return camera
    stretch = (width / height) / (camera.width / camera.height)
    if abs(stretch - 1) > SAME_ASPECT:
        return Camera.guess(width, height)
    return camera.scaled(width, height)


def _own_name(index: int) -> str:
    if sys.platform == "linux":
        from heimdall.capture import v4l2

        try:
            found = v4l2.query(Path(f"/dev/video{index}"))
        except OSError:
            found = None
        if found is not None:
            return f"camera {found.name}"
    return f"camera {index}"
