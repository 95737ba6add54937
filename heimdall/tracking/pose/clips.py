"""All frames of a clip in order, none left out, and what they say: `heimdall pose` and
`heimdall calibrate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np

from heimdall.capture.camera_files import file_of, fitting, write_camera
from heimdall.capture.lens import Camera
from heimdall.capture.opening import camera_of, find_source
from heimdall.capture.pictures import as_picture
from heimdall.errors import ConfigError
from heimdall.system import paths
from heimdall.tracking.pose.calibration import Calibration, ChessBoard
from heimdall.tracking.pose.tracker import Tracking

RATE_HZ = 30.0
STILL_LOOKS = 40  # at a picture, for a look takes several frames of a clip
MOST_FRAMES = 10_000  # of a camera that is calibrated: five minutes


class Tracker(Protocol):
    """What follows a camera from frame to frame."""

    def advance(
        self, image: np.ndarray, camera: Camera, sequence: int = 0, at_s: float | None = None
    ) -> Tracking:
        """Take the next frame, BGR uint8."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A frame of a source: ``image`` BGR uint8, its time in seconds, what took it (None: unknown),
    and True if it is a still image."""

    image: np.ndarray
    at_s: float
    camera: Camera | None
    still: bool


def pictures(source: str, most: int | None = None) -> Iterator[Picture]:
    """Every frame of ``source``. A camera or stream gives ``most`` of them. Raises ConfigError or
    DeviceError naming what cannot be opened."""
    found = find_source(source)
    reader = found.open_reader()
    if reader.live and most is None:
        reader.close()
        raise ConfigError(f"{source} never ends: say how many frames to take")
    began_s, number, still = time.perf_counter(), 0, not reader.live and not reader.fps
    try:
        while (most is None or number < most) and (image := reader.read()) is not None:
            if reader.live:
                at_s = time.perf_counter() - began_s
            else:
                at_s = getattr(reader, "at_ns", 1e9 * number / (reader.fps or RATE_HZ)) / 1e9
            yield Picture(as_picture(image), at_s, camera_of(reader, found.camera), still)
            number += 1
            if still:
                return
    finally:
        reader.close()


def poses(
    source: str,
    camera: Camera | None,
    tracker: Tracker,
    *,
    most: int | None = None,
    also: Callable[[], dict[str, Any]] = dict,
) -> dict[str, Any]:
    """The result of `heimdall pose`, as its JSON has it, of a ``tracker`` that has seen nothing
    yet. ``camera``: None is what is known of the source, or a guess; ``also``: asked after each
    frame for what else there is to tell of it. Raises ConfigError for a camera of another shape
    than the pictures."""
    frames, taken_ms = [], []
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)  # times are those of one core
    try:
        for sequence, picture in enumerate(pictures(source, most)):
            image, lens = picture.image, camera or picture.camera
            height, width = image.shape[:2]
            if camera is not None and fitting(camera, width, height).guessed:
                raise ConfigError(
                    f"the camera file is of pictures {camera.width}x{camera.height}, and {source} "
                    f"is {width}x{height}: another shape, so another part of the sensor"
                )
            seen = fitting(lens, width, height)
            for _ in range(STILL_LOOKS if picture.still else 1):
                began_ns = time.thread_time_ns()
                tracking = tracker.advance(image, seen, sequence, picture.at_s)
                taken_ms.append((time.thread_time_ns() - began_ns) / 1e6)
                if tracking.tracked:
                    break
            frames.append(_row(tracking) | also())
    finally:
        cv2.setNumThreads(before)
    percentiles = np.percentile(taken_ms, [50, 99]).tolist() if taken_ms else [None, None]
    return {
        "schema": 1,
        "frames": frames,
        "ms": dict(zip(("p50", "p99"), percentiles, strict=True)),
    }


def _row(tracking: Tracking) -> dict[str, Any]:
    pose = tracking.pose if tracking.tracked else None
    return {
        "sequence": tracking.sequence,
        "state": tracking.state,
        "rotation": pose.rotation_vector.tolist() if pose else None,
        "translation": pose.translation.tolist() if pose else None,
        "reprojection_px": tracking.reprojection_px,
    }


def calibrate(
    source: str,
    board: ChessBoard,
    *,
    save: Path | None = None,
    most: int | None = None,
    tell: Callable[[str], object] = lambda said: None,
) -> dict[str, Any]:
    """The result of `heimdall calibrate`, as its JSON has it; its camera is kept in ``save`` (None:
    where the source's camera is looked for). ``tell`` hears what to do next, whenever a view has
    been taken. Raises ConfigError for frames that do not say a camera."""
    if save is None and (why := paths.why_no_cache()):
        raise ConfigError(f"{why}; name a file to save the camera in")
    calibration = Calibration(board)
    said: str | None = ""
    for picture in pictures(source, most or MOST_FRAMES):
        taken = calibration.look(picture.image)
        advice = calibration.advice
        if advice is None:
            break
        if taken or advice != said:
            tell(f"{len(calibration.views)} views; {advice}")
            said = advice
    found = calibration.solve()
    file = save or file_of(source)
    write_camera(file, found.camera)
    camera = found.camera
    numbers = {name: getattr(camera, name) for name in ("width", "height", "fx", "fy", "cx", "cy")}
    return {
        "schema": 1,
        "source": source,
        "file": str(file),
        "camera": numbers | {"distortion": list(camera.distortion)},
        "reprojection_px": found.reprojection_px,
        "focal_sd_px": found.focal_sd * max(camera.fx, camera.fy),
        "frames": calibration.frames,
        "seen": calibration.seen,
        "views": found.views,
        "not_fit": found.not_fit,
        "covered": found.covered,
    }
