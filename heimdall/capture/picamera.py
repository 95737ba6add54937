"""Cameras of a Raspberry Pi, by its library picamera2: ``picamera:0``.

They deliver what their sensor sees to the Pi's image processor, which libcamera steers; as plain
Video4Linux devices they give unprocessed Bayer patterns, or nothing.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import importlib.util
from typing import Any

import numpy as np

from heimdall.capture.formats import Format, Mode, entry
from heimdall.capture.readers import Reader
from heimdall.errors import DeviceError

SILENCE_S = 8.0  # for which a camera may give nothing
# libcamera names formats from the last byte to the first: this one is B, G, R in memory.
BGR = "RGB888"


def open_picamera(rest: str, *, size: tuple[int, int] | None, fps: float | None) -> Reader:
    """The camera of that number (none: the first), at ``size`` (width, height) and ``fps``.

    The image processor scales to any size; its sensor decides how fast. Raises DeviceError
    without picamera2 or such a camera.
    """
    if not (rest or "0").isdecimal():
        raise DeviceError(f"cannot open picamera {rest!r}: it must be a number, as in picamera:0")
    number = int(rest or 0)
    camera = _open(number)
    try:
        main: dict[str, Any] = {"format": BGR}
        if size is not None:
            main["size"] = size
        # USB cameras, which libcamera knows too, have a rate of their own
        steered = fps is not None and "FrameDurationLimits" in camera.camera_controls
        controls = {"FrameRate": fps} if steered else {}
        camera.configure(camera.create_video_configuration(main=main, controls=controls))
        camera.start()
    except Exception as error:
        camera.close()
        raise DeviceError(f"cannot start picamera {number}: {error}") from error
    return _PiCamera(camera, f"picamera {number}")


class _PiCamera:
    """A camera that runs."""

    fps = 0.0
    live = True

    def __init__(self, camera: Any, name: str) -> None:
        self._camera, self._name = camera, name

    def read(self) -> np.ndarray | None:
        job = self._camera.capture_array("main", wait=False)
        try:
            image: np.ndarray = self._camera.wait(job, timeout=SILENCE_S)
        except concurrent.futures.TimeoutError as error:
            raise DeviceError(
                f"{self._name} gives no picture for {SILENCE_S:.0f} s; check its cable"
            ) from error
        return image

    def skip(self) -> bool:
        return False

    def rewind(self) -> bool:
        return False

    def close(self) -> None:
        self._camera.stop()
        self._camera.close()


def list_picameras() -> list[dict[str, Any]]:
    """The Pi's own cameras, as ``cameras.list_cameras`` has them; none without picamera2. Asked
    for the modes of its sensor, a camera is opened, but not started."""
    if importlib.util.find_spec("picamera2") is None:
        return []
    try:
        found = _library().global_camera_info()
    except Exception as error:  # libcamera's failures have no common class
        return [entry("picamera:0", 0, "Raspberry Pi", error=str(error))]
    # Video4Linux lists those on USB
    own = [each for each in found if "usb" not in each["Id"].lower()]
    return [_listed(each["Num"], each["Model"]) for each in own]


def _listed(number: int, model: str) -> dict[str, Any]:
    try:
        with contextlib.closing(_open(number)) as camera:
            modes: dict[str, list[Mode]] = {}
            for each in camera.sensor_modes:
                mode = Mode(tuple(each["size"]), (round(float(each["fps"]), 3),))
                modes.setdefault(str(each["format"]), []).append(mode)
    except Exception as error:
        return entry(f"picamera:{number}", number, model, error=str(error))
    formats = [Format(name, False, tuple(found)) for name, found in modes.items()]
    return entry(f"picamera:{number}", number, model, formats=formats)


def _open(number: int) -> Any:
    library = _library()
    try:
        return library(number)
    except IndexError as error:
        raise DeviceError(
            f"cannot open picamera {number}: libcamera finds no such camera; check its cable, and "
            "`rpicam-hello --list-cameras`"
        ) from error
    except Exception as error:
        raise DeviceError(f"cannot open picamera {number}: {error}; is it in use?") from error


def _library() -> Any:
    try:
        from picamera2 import Picamera2
    except Exception as error:  # a missing package, or one built for another numpy
        raise DeviceError(
            f"picamera2 cannot be used: {error}; `apt-get install python3-picamera2`, and let the "
            "virtual environment see it (python3 -m venv --system-site-packages)"
        ) from error
    return Picamera2
