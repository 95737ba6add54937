"""Kinds of source by the word before the colon: ``camera:0``, ``gst: v4l2src``, ``picamera:0``,
and those of other packages.

A kind is a function ``(rest, *, size, fps) -> Reader``, registered in ``SOURCES`` or offered by a
package under the entry points ``heimdall.sources`` (docs/do/source.md). It is called on the
capture thread, again whenever the source is to be opened anew, and may take its time.
"""

from __future__ import annotations

import re
from typing import Protocol

from heimdall.capture.camera import open_camera
from heimdall.capture.readers import Reader
from heimdall.errors import DeviceError
from heimdall.system.registry import Registry


class OpenReader(Protocol):
    """Opens a source of one kind: ``rest`` is what the user wrote behind the colon; ``size``
    (width, height) and ``fps`` are wishes. Raises DeviceError when it is not there."""

    def __call__(self, rest: str, *, size: tuple[int, int] | None, fps: float | None) -> Reader: ...


def _camera(rest: str, *, size: tuple[int, int] | None, fps: float | None) -> Reader:
    if not re.fullmatch(r"[0-9]{1,3}", rest):
        raise DeviceError(f"cannot open camera {rest!r}: it must be a number, such as camera:0")
    return open_camera(int(rest), size, fps)


def _accept(name: str, value: object) -> str | None:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]+", name) or name == "file":  # c:\\clip.mp4 is a path
        return "cannot have that name: take small letters, two at least"
    return None if callable(value) else f"must be a function that opens a Reader, not {value!r}"


SOURCES: Registry[OpenReader] = Registry(
    "kind of source",
    "heimdall.sources",
    {
        "camera": _camera,
        "gst": "heimdall.capture.gstreamer:open_pipeline",
        "picamera": "heimdall.capture.picamera:open_picamera",
    },
    _accept,
)


def split_kind(spec: str) -> tuple[str, str] | None:
    """``"realsense:0"`` or ``"realsense://0"`` to ("realsense", "0"), if there is such a kind; a
    number is that of a camera."""
    if re.fullmatch(r"[0-9]{1,3}", spec):
        return "camera", str(int(spec))
    match = re.fullmatch(r"([a-z][a-z0-9+.-]+):(?://)?(.*)", spec, re.DOTALL)
    return (match[1], match[2].strip()) if match and match[1] in SOURCES else None
