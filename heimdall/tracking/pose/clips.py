"""All frames of a clip in order, none left out, and what they say: `heimdall pose` and
`heimdall calibrate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np

from heimdall.capture.camera_files import file_of, fitting, known_camera, write_camera
from heimdall.capture.kinds import SOURCES, split_kind
from heimdall.capture.lens import Camera
from heimdall.capture.readers import PICTURES, Reader, open_clip, open_still, open_stream
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


def pictures(source: str, most: int | None = None) -> Iterator[tuple[np.ndarray, float]]:
    """Every frame of ``source``, BGR uint8, and its time in seconds. A camera or stream gives
    ``most`` of them. Raises ConfigError or DeviceError naming what cannot be opened."""
    reader = _opened(source)
    if reader.live and most is None:
        reader.close()
        raise ConfigError(f"{source} never ends: say how many frames to take")
    began_s, number = time.perf_counter(), 0
    try:
        while (image := reader.read()) is not None and (most is None or number < most):
            if image.ndim == 2:
                image = cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
            yield (
                image,
                time.perf_counter() - began_s if reader.live else number / (reader.fps or RATE_HZ),
            )
            number += 1
            if not reader.live and not reader.fps:  # a still image
                return
    finally:
        reader.close()


def _opened(source: str) -> Reader:
    if kind := split_kind(source):
        return SOURCES.find(kind[0])(kind[1], size=None, fps=None)
    if "://" in source:
        return open_stream(source)
    path = Path(source).expanduser()
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise ConfigError(f"cannot read source {path}: {error.strerror or error}") from error
    if empty:
        raise ConfigError(f"source {path} is empty; give a video or image file")
    return open_still(path) if _is_picture(source) else open_clip(path)


def _is_picture(source: str) -> bool:
    return "://" not in source and Path(source).suffix.lower() in PICTURES


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
    lens = camera or known_camera(source)
    frames, taken_ms = [], []
    before = cv2.getNumThreads()
    cv2.setNumThreads(1)  # times are those of one core
    try:
        for sequence, (image, at_s) in enumerate(pictures(source, most)):
            height, width = image.shape[:2]
            if camera is not None and fitting(camera, width, height).guessed:
                raise ConfigError(
                    f"the camera file is of pictures {camera.width}x{camera.height}, and {source} "
                    f"is {width}x{height}: another shape, so another part of the sensor"
                )
            for _ in range(STILL_LOOKS if _is_picture(source) else 1):
                began_ns = time.thread_time_ns()
                tracking = tracker.advance(image, fitting(lens, width, height), sequence, at_s)
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
    for image, _ in pictures(source, most or MOST_FRAMES):
        taken = calibration.look(image)
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
