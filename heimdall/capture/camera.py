"""A camera, asked for the format that reaches the size and the rate that an app would like."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import cv2

from heimdall.capture import v4l2
from heimdall.capture.formats import Choice, Size, choose
from heimdall.capture.readers import CvReader, Reader, camera_likely
from heimdall.errors import DeviceError

log = logging.getLogger(__name__)

USUAL_FPS = 30.0
_said: set[str] = set()  # a camera is opened again and again while it is away


def open_camera(index: int, size: Size | None, fps: float | None) -> Reader:
    """The camera of that number, asked for a size (width, height) and a rate.

    On Linux the driver's list of formats is read, and the nearest is asked for; elsewhere the
    system chooses one. Raises DeviceError where there is no camera, or it offers no format.
    """
    if not camera_likely(index):
        raise DeviceError(f"cannot open camera {index}: there is no /dev/video{index}")
    found = _query(index, size) if sys.platform == "linux" else None
    rate = fps or USUAL_FPS
    choice = choose(found.formats or (), size, rate) if found and size else None
    backend = cv2.CAP_V4L2 if sys.platform == "linux" else cv2.CAP_ANY
    settings = _settings(choice, size, fps)
    reader = CvReader(index, f"camera {index}", backend, settings)
    if size is not None:
        _tell_difference(index, Choice("", size, rate), choice, _taken(reader, choice, rate))
    return reader


def _query(index: int, size: Size | None) -> v4l2.Camera:
    path = Path(f"/dev/video{index}")
    try:
        found = v4l2.query(path, size)
    except OSError as error:
        hint = "; are you in the group video?" if isinstance(error, PermissionError) else ""
        raise DeviceError(f"cannot open camera {index}: {path}: {error.strerror}{hint}") from error
    if found is None:
        raise DeviceError(
            f"cannot open camera {index}: {path} gives no pictures; "
            "`heimdall devices` lists the cameras"
        )
    if found.problem:
        raise DeviceError(f"cannot open camera {index} ({found.name}): {found.problem}")
    if found.note:
        _say_once(f"camera {index} ({found.name}) {found.note}")
    return found


def _settings(choice: Choice | None, size: Size | None, fps: float | None) -> list[int]:
    """The format before the size, and the rate behind both: each is chosen within what was."""
    settings: list[int] = []
    if choice is not None:
        size, fps = choice.size, choice.fps
        settings += [cv2.CAP_PROP_FOURCC, int.from_bytes(choice.fourcc.encode(), "little")]
    if size is not None:
        settings += [cv2.CAP_PROP_FRAME_WIDTH, size[0], cv2.CAP_PROP_FRAME_HEIGHT, size[1]]
    if fps is not None:
        settings += [cv2.CAP_PROP_FPS, round(fps)]
    return settings


def _taken(reader: CvReader, choice: Choice | None, rate: float) -> Choice:
    """What the driver really took; what it does not tell is as it was asked."""
    code = int(reader.get(cv2.CAP_PROP_FOURCC))
    fourcc = code.to_bytes(4, "little").decode(errors="replace") if 0 < code < 2**32 else ""
    width = int(reader.get(cv2.CAP_PROP_FRAME_WIDTH))
    height = int(reader.get(cv2.CAP_PROP_FRAME_HEIGHT))
    fps = reader.get(cv2.CAP_PROP_FPS)
    # without a list of formats the backend may be one that makes rates up
    return Choice(fourcc, (width, height), fps if fps > 0 and choice else rate)


def _tell_difference(index: int, asked: Choice, choice: Choice | None, taken: Choice) -> None:
    if taken.reaches(asked.size, asked.fps):
        return
    refused = choice is not None and not taken.reaches(choice.size, choice.fps)
    why = f"; its driver did not take {choice}" if refused else ", the nearest it offers"
    wish = f"{asked.size[0]}x{asked.size[1]} at {asked.fps:.4g} fps"
    _say_once(f"camera {index} gives {taken} where {wish} was asked for{why if choice else ''}")


def _say_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        log.warning("%s", message)
