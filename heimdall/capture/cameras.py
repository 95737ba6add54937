"""The cameras of this machine, and what each offers, without starting one."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heimdall.capture import picamera, v4l2
from heimdall.capture.formats import entry

log = logging.getLogger(__name__)

_CAMERA_INDICES = 4
_CAMERA_TIMEOUT_S = 3.0
_PICAMERA_TIMEOUT_S = 15.0  # its library takes 2 s to load, and configures each mode of a sensor


def list_cameras() -> list[dict[str, Any]]:
    """Cameras as ``{"source", "index", "name", "error", "note", "formats"}``.

    ``error`` is null or why it cannot be used, ``note`` what may be in the way; ``formats`` is null
    where they are unknown, else a list of ``{"format", "compressed", "sizes"}`` with sizes as
    ``{"width", "height", "fps"}``, all rates of that size.
    """
    if sys.platform != "linux":
        probed: list[dict[str, Any]] = within(_CAMERA_TIMEOUT_S, _probe_cameras, [])
        return probed
    found = [camera for path in _video_nodes() if (camera := query_camera(path))]
    return [*found, *within(_PICAMERA_TIMEOUT_S, picamera.list_picameras, [])]


def _video_nodes() -> list[Path]:
    nodes = [path for path in Path("/dev").glob("video*") if path.name[5:].isdigit()]
    return sorted(nodes, key=lambda path: int(path.name[5:]))


def query_camera(path: Path) -> dict[str, Any] | None:
    """The camera of a Video4Linux node; None when it captures nothing (metadata, encoders)."""
    index = int(path.name[5:])
    try:
        found = v4l2.query(path)
    except OSError as error:
        return entry(str(index), index, str(path), error=error.strerror)
    if found is None:
        return None
    return entry(
        str(index),
        index,
        found.name,
        error=found.problem,
        note=found.note,
        formats=found.formats,
    )


def _probe_cameras() -> list[dict[str, Any]]:
    import cv2

    found = []
    for index in range(_CAMERA_INDICES):
        capture = cv2.VideoCapture(index)
        if capture.isOpened():
            found.append(entry(str(index), index, capture.getBackendName()))
        capture.release()
    return found


def within(timeout_s: float, work: Callable[[], Any], otherwise: Any) -> Any:
    """The result of ``work``, or ``otherwise`` when it fails or takes longer."""
    result = [otherwise]

    def call() -> None:
        try:
            result[0] = work()
        except Exception:
            log.debug("probing failed", exc_info=True)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return result[0]
