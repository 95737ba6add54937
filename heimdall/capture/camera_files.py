"""Files that say what a camera is: TOML, one camera each.

    width = 1280
    height = 720
    fx = 911.2
    fy = 910.4
    cx = 646.5
    cy = 352.3
    distortion = [0.08, -0.12, 0.001, -0.0007, 0.01]  # k1, k2, p1, p2, k3, as OpenCV has them
    distortion_model = "plumb_bob"  # or rational_polynomial, kannala_brandt (a fisheye)

Those of other programs are read, too (`camera_formats`), by what is in them.
`heimdall calibrate` writes them among the user's files, one for each camera, where every source
that is opened looks. A clip may have one of its own beside it: ``clip.camera.toml``.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heimdall.capture import camera_formats
from heimdall.capture.lens import Camera
from heimdall.capture.lens_models import PLUMB_BOB, lens_of, model_of
from heimdall.errors import ConfigError, unknown
from heimdall.system import paths

log = logging.getLogger(__name__)

NUMBERS = ("width", "height", "fx", "fy", "cx", "cy")
SUFFIXES = (".toml", ".yaml", ".yml", ".json", ".xml", ".txt")  # of a file that belongs to a clip
EUROC = "sensor.yaml"  # in the folder of a camera, or around that of its pictures
MOST_BYTES = 1 << 20
NEEDED = """A camera file holds such lines:
    width = 1280
    height = 720
    fx = 911.2
    fy = 910.4
    cx = 646.5
    cy = 352.3
    distortion = [0.08, -0.12, 0.001, -0.0007, 0.01]  # k1, k2, p1, p2, k3
Those of ROS, OpenCV, Kalibr, COLMAP (cameras.txt) and RealSense (JSON) are read, too."""
MOST_PIXELS = 100_000  # of a side: beyond it is no camera
SAME_ASPECT = 0.01  # another shape of picture is another part of the sensor, not a scaled one


def read_camera(path: Path) -> Camera:
    """The camera of a file: the first of several, or the one of that name in ``file.yaml:cam1``.
    Raises ConfigError naming the file and what is wrong in it."""
    file, _, wanted = str(path).rpartition(":")
    if not file or path.exists() or not Path(file).is_file():
        file, wanted = str(path), ""
    text = _text(Path(file))
    try:
        if camera_formats.is_toml(text):
            return _camera(camera_formats.read_toml(text), path)
    except ValueError as error:
        raise ConfigError(f"camera file {path} is no TOML: {error}. {NEEDED}") from error
    try:
        found = camera_formats.cameras_of(text)
    except ConfigError as error:
        raise ConfigError(f"camera file {path}: {error}") from error
    except ValueError as error:
        raise ConfigError(f"camera file {path} cannot be read: {error}. {NEEDED}") from error
    if not found:
        raise ConfigError(f"camera file {path} holds no camera that is understood. {NEEDED}")
    if wanted and wanted not in found:
        raise ConfigError(unknown(f"camera of {file}", wanted, found))
    first = next(iter(found))
    if len(found) > 1 and not wanted:
        log.warning(
            "camera file %s holds %s: %s is taken; %s:%s takes another one",
            *(path, ", ".join([*found][:5]), first, path, [*found][1]),
        )
    return _camera(found[wanted or first], path)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ConfigError(f"camera file {path} is larger than 1 MB. {NEEDED}")
        return data.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read camera file {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"camera file {path} is no text: {error}. {NEEDED}") from error


def _camera(values: Mapping[str, Any], path: Path) -> Camera:
    known = {*NUMBERS, "distortion", "distortion_model"}
    if stray := sorted(values.keys() - known):
        raise ConfigError(
            f"camera file {path}: {stray[0]!r} is not one of {', '.join(sorted(known))}"
        )
    if missing := [name for name in NUMBERS if values.get(name) is None]:
        raise ConfigError(f"camera file {path} lacks {', '.join(missing)}. {NEEDED}")
    distortion = values.get("distortion", [])
    if not isinstance(distortion, list):
        raise ConfigError(
            f"camera file {path}: distortion must be a list, such as [k1, k2, p1, p2, k3]"
        )
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
    bent = [_number(each, "distortion", path) for each in distortion]
    try:
        lens = lens_of(str(values.get("distortion_model", "")), bent)
    except ConfigError as error:
        raise ConfigError(f"camera file {path}: {error}") from error
    return Camera(int(width), int(height), fx, fy, cx, cy, **lens)


def _number(value: object, name: str, path: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"camera file {path}: {name} must be finite numbers, not {value!r}")
    return float(value)


def write_camera(path: Path, camera: Camera) -> None:
    """Write ``camera``, without its pose. Raises ConfigError where the file cannot be written."""
    lines = [f"{name} = {getattr(camera, name)!r}" for name in NUMBERS]
    lines.append(f"distortion = [{', '.join(repr(float(each)) for each in camera.distortion)}]")
    if (model := model_of(camera)) != PLUMB_BOB:
        lines.append(f'distortion_model = "{model}"')
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
    places, clip = [], Path(source).expanduser()
    if "://" not in source and clip.name:
        places += [clip.with_suffix(f".camera{each}") for each in SUFFIXES]
        places += [folder / EUROC for folder in (clip, clip.parent) if clip.is_dir()]
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
