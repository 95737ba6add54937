"""What this machine offers, and what Heimdall would use of it: ``heimdall devices``.

Everything here may be missing or broken. Each part reports its own failure as text, so that
one look shows all that must be installed.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heimdall.capture.cameras import list_cameras
from heimdall.errors import DeviceError, HeimdallError
from heimdall.system import softgpu
from heimdall.system.cpu import cpu_name
from heimdall.system.policy import NORMAL
from heimdall.vocabulary.processors import CPU, GPU

if TYPE_CHECKING:
    from heimdall.engine.opencl.abilities import Abilities

log = logging.getLogger(__name__)

SCHEMA = 1


def list_devices() -> dict[str, Any]:
    """GPU, OpenCL devices, software GPU, GL, onnxruntime and cameras, as plain data.

    Opens OpenCL and GL as a run would, so the threads of this process are placed afterwards as in
    a run. ``gpu`` is None when no OpenCL device can be used; ``opencl_error`` and ``gl["error"]``
    say why. ``opencl_error`` also names drivers that were left out, and ``refused`` what a device
    failed at.
    """
    import numpy  # noqa: F401  (its threads must not become the GPU's)

    software = softgpu.plan()
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
        "processors": _processors(devices, chosen, cores),
        "onnxruntime": _onnxruntime(),
        "cameras": list_cameras(),
    }


def _processors(
    devices: Sequence[dict[str, Any]], chosen: dict[str, Any] | None, cores: Sequence[int]
) -> list[dict[str, Any]]:
    """What requests and DNNs can be given (``--processors``), under the names it takes: the GPU's
    device, the CPU with as many workers as there are cores, and further OpenCL devices."""
    found = [{"name": GPU, "device": chosen["name"], "lanes": 1}] if chosen else []
    found.append({"name": CPU, "device": cpu_name(), "lanes": max(1, len(cores))})
    used = devices.index(chosen) if chosen in devices else -1
    found += [
        {"name": str(index), "device": each["name"], "lanes": 1}
        for index, each in enumerate(devices)
        if index != used and not each["refused"]
    ]
    return found


def _describe_software(software: softgpu.SoftwareGpu) -> dict[str, Any]:
    return {
        "mode": software.confinement,
        "realtime": software.realtime,
        "policy": str(software.policy if software.realtime else NORMAL),
        "gpu_cores": list(software.gpu_cores),
        "cpu_cores": list(software.cpu_cores),
        "load_limit": software.load_limit,
        "description": software.describe(),
        "threads": [asdict(thread) for thread in software.threads()],
    }


def _opencl() -> tuple[list[dict[str, Any]], dict[str, Any] | None, str | None]:
    """All OpenCL devices, the one a run would use, and what is wrong, if anything. What was left
    out or refused before is tried once more."""
    described: list[dict[str, Any]] = []
    try:
        import pyopencl as cl

        from heimdall.engine.opencl import device, icd, probe

        icd.drivers(again=True)
        for each in device.devices():
            found = probe.abilities_of(each, again=True)
            described.append(_describe_opencl(each, found))
        chosen, found = probe.choose()
        # A driver may start its workers with the first context, not when asked for its name.
        cl.CommandQueue(cl.Context([chosen])).finish()
        return described, _describe_opencl(chosen, found), _left_out(icd.drivers().problems)
    except HeimdallError as error:
        return described, None, str(error)
    except Exception as error:  # a driver's own failures have no common class
        log.debug("OpenCL failed", exc_info=True)
        return described, None, f"OpenCL failed: {error}"


def _left_out(problems: Sequence[tuple[str, str]]) -> str | None:
    return "; ".join(f"{file}: {why}" for file, why in problems) or None


def _describe_opencl(device: Any, found: Abilities) -> dict[str, Any]:
    import pyopencl as cl

    from heimdall.engine.opencl import priority

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
        "half": found.half,
        "lacks": dict(found.lacks),
        "refused": found.refused or None,
        "priority": asdict(priority.given(found)),
        "hints": priority.hints_of(device),
    }


def _gl() -> dict[str, Any]:
    """The renderer of a small headless context, or why there is none."""
    none: dict[str, Any] = {
        "renderer": None,
        "version": None,
        "es": None,
        "refused": [],
        "priority": None,
        "error": None,
    }
    try:
        from heimdall.render import open_surface

        with contextlib.closing(open_surface((64, 64), headless=True)) as surface:
            surface.finish()
            found = {"renderer": surface.renderer, "version": surface.version, "es": surface.es}
            priority = asdict(surface.driver_priority)
            return {**none, **found, "refused": list(surface.refused), "priority": priority}
    except DeviceError as error:
        return {**none, "error": str(error)}
    except Exception as error:  # moderngl raises bare Exception
        log.debug("GL failed", exc_info=True)
        return {**none, "error": f"OpenGL failed: {error}"}


def _onnxruntime() -> dict[str, Any]:
    none: dict[str, Any] = {"version": None, "providers": [], "gpu_devices": [], "error": None}
    try:
        import onnxruntime
    except Exception as error:  # one that numpy is too new for raises an AttributeError
        return {**none, "error": f"onnxruntime: {error or type(error).__name__}"}
    from heimdall.engine.providers import available_providers

    providers = onnxruntime.get_available_providers()
    usable = available_providers()  # as --device takes them
    version = onnxruntime.__version__
    return {**none, "version": version, "providers": providers, "gpu_devices": usable}
