"""What this machine offers, and what Heimdall would use of it: ``heimdall devices``.

Everything here may be missing or broken. Each part reports its own failure as text, so that
one look shows all that must be installed.
"""

from __future__ import annotations

import logging
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heimdall import softgpu
from heimdall.errors import DeviceError, HeimdallError

log = logging.getLogger(__name__)

SCHEMA = 1
_CAMERA_INDICES = 4
_CAMERA_TIMEOUT_S = 3.0
_VIDIOC_QUERYCAP = 0x80685600  # struct v4l2_capability, 104 bytes
_V4L2_VIDEO_CAPTURE = 0x1 | 0x1000  # single- and multi-planar
_V4L2_DEVICE_CAPS = 0x80000000


def list_devices(software: softgpu.SoftwareGpu | None = None) -> dict[str, Any]:
    """GPU, OpenCL devices, software GPU, GL, onnxruntime and cameras, as plain data.

    Opens OpenCL and GL as a run would, confined by ``software`` (default: ``softgpu.plan()``),
    so the threads of this process are placed afterwards as in a run. ``gpu`` is None when no
    OpenCL device can be used; ``opencl_error`` and ``gl["error"]`` say why.
    """
    import numpy  # noqa: F401  (its threads must not become the GPU's)

    software = software or softgpu.plan()
    with software.confined():
        devices, chosen, problem = _opencl()
        gl = _gl()
    is_software = chosen is None or chosen["type"] == "CPU"
    cores = software.cpu_cores
    if not is_software:
        software.release()
        cores = tuple(sorted({*software.gpu_cores, *software.cpu_cores}))
    return {
        "schema": SCHEMA,
        "gpu": chosen,
        "opencl": devices,
        "opencl_error": problem,
        "software_gpu": _describe_software(software) if is_software else None,
        "gl": gl,
        "cpu": {"name": cpu_name(), "cores": list(cores)},
        "onnxruntime": _onnxruntime(),
        "cameras": list_cameras(),
    }


def cpu_name() -> str:
    """The processor's marketing name, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def list_cameras() -> list[dict[str, Any]]:
    """Cameras as ``{"index", "name", "error"}``; ``error`` is null or why it cannot be used."""
    if sys.platform == "linux":
        return [camera for path in _video_nodes() if (camera := _query_camera(path))]
    return _within(_CAMERA_TIMEOUT_S, _probe_cameras, [])


def _describe_software(software: softgpu.SoftwareGpu) -> dict[str, Any]:
    return {
        "mode": software.mode,
        "realtime": software.realtime,
        "gpu_cores": list(software.gpu_cores),
        "cpu_cores": list(software.cpu_cores),
        "load_limit": software.load_limit,
        "description": software.describe(),
        "threads": [asdict(thread) for thread in software.threads()],
    }


def _opencl() -> tuple[list[dict[str, Any]], dict[str, Any] | None, str | None]:
    """All OpenCL devices, the one a run would use, and what is wrong, if anything."""
    try:
        import pyopencl as cl

        from heimdall.engine.opencl import device

        found = device.devices()
        chosen = device.select()
        # A driver may start its workers with the first context, not when asked for its name.
        cl.CommandQueue(cl.Context([chosen])).finish()
        return [_describe_opencl(each) for each in found], _describe_opencl(chosen), None
    except HeimdallError as error:
        return [], None, str(error)
    except Exception as error:  # a driver's own failures have no common class
        log.debug("OpenCL failed", exc_info=True)
        return [], None, f"OpenCL failed: {error}"


def _describe_opencl(device: Any) -> dict[str, Any]:
    import pyopencl as cl

    kinds = ("CPU", "GPU", "ACCELERATOR")
    kind = next((k for k in kinds if device.type & getattr(cl.device_type, k)), "OTHER")
    return {
        "name": device.name.strip(),
        "platform": device.platform.name.strip(),
        "driver": device.driver_version.strip(),
        "version": device.version.strip(),
        "type": kind,
        "compute_units": device.max_compute_units,
        "memory_mb": device.global_mem_size // 2**20,
    }


def _gl() -> dict[str, Any]:
    """The renderer of a small headless context, or why there is none."""
    try:
        from heimdall.render import open_surface

        surface = open_surface((64, 64), headless=True)
        try:
            surface.finish()
            info = surface.ctx.info
            return {"renderer": surface.renderer, "version": info["GL_VERSION"], "error": None}
        finally:
            surface.close()
    except DeviceError as error:
        return {"renderer": None, "version": None, "error": str(error)}
    except Exception as error:  # moderngl raises bare Exception
        log.debug("GL failed", exc_info=True)
        return {"renderer": None, "version": None, "error": f"OpenGL failed: {error}"}


def _onnxruntime() -> dict[str, Any]:
    try:
        import onnxruntime
    except ImportError as error:
        return {
            "version": None,
            "providers": [],
            "gpu_devices": [],
            "error": f"onnxruntime: {error}",
        }
    from heimdall.engine.providers import available_providers

    return {
        "version": onnxruntime.__version__,
        "providers": onnxruntime.get_available_providers(),
        "gpu_devices": available_providers(),  # as --device takes them
        "error": None,
    }


def _video_nodes() -> list[Path]:
    nodes = [path for path in Path("/dev").glob("video*") if path.name[5:].isdigit()]
    return sorted(nodes, key=lambda path: int(path.name[5:]))


def _query_camera(path: Path) -> dict[str, Any] | None:
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
    return _parse_capability(index, bytes(answer))


def _parse_capability(index: int, answer: bytes) -> dict[str, Any] | None:
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


def _within(timeout_s: float, work: Callable[[], Any], otherwise: Any) -> Any:
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
