"""The cameras of this machine, without starting one."""

from __future__ import annotations

import logging
import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

_CAMERA_INDICES = 4
_CAMERA_TIMEOUT_S = 3.0
_VIDIOC_QUERYCAP = 0x80685600  # struct v4l2_capability, 104 bytes
_V4L2_VIDEO_CAPTURE = 0x1 | 0x1000  # single- and multi-planar
_V4L2_DEVICE_CAPS = 0x80000000


def list_cameras() -> list[dict[str, Any]]:
    """Cameras as ``{"index", "name", "error"}``; ``error`` is null or why it cannot be used."""
    if sys.platform == "linux":
        return [camera for path in _video_nodes() if (camera := query_camera(path))]
    return within(_CAMERA_TIMEOUT_S, _probe_cameras, [])


def _video_nodes() -> list[Path]:
    nodes = [path for path in Path("/dev").glob("video*") if path.name[5:].isdigit()]
    return sorted(nodes, key=lambda path: int(path.name[5:]))


def query_camera(path: Path) -> dict[str, Any] | None:
    """Ask a Video4Linux node what it is; None when it captures nothing (metadata, encoders).

    One ioctl on a node opened without blocking: no stream is started, so a camera in use by
    another program, or a dead one, cannot hold us up.
    """
    import fcntl

    index = int(path.name[5:])
    try:
        node = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    except OSError as error:
        return {"index": index, "name": str(path), "error": error.strerror}
    try:
        answer = bytearray(104)
        fcntl.ioctl(node, _VIDIOC_QUERYCAP, answer)
    except OSError as error:
        return {"index": index, "name": str(path), "error": error.strerror}
    finally:
        os.close(node)
    return parse_capability(index, bytes(answer))


def parse_capability(index: int, answer: bytes) -> dict[str, Any] | None:
    """The camera of a ``struct v4l2_capability``; None where the node captures nothing."""
    card = answer[16:48].split(b"\0")[0].decode(errors="replace")
    capabilities, device_caps = struct.unpack_from("=II", answer, 84)
    if capabilities & _V4L2_DEVICE_CAPS:
        capabilities = device_caps
    if not capabilities & _V4L2_VIDEO_CAPTURE:
        return None
    return {"index": index, "name": card, "error": None}


def _probe_cameras() -> list[dict[str, Any]]:
    import cv2

    found = []
    for index in range(_CAMERA_INDICES):
        capture = cv2.VideoCapture(index)
        if capture.isOpened():
            found.append({"index": index, "name": capture.getBackendName(), "error": None})
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
