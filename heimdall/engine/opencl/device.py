"""Which OpenCL device to use, and what kernels must know about it."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator

import pyopencl as cl

from heimdall.engine.opencl import icd
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import DeviceError
from heimdall.system import forks
from heimdall.system.extras import line

_NO_PLATFORM = (
    "no OpenCL platform found: install a driver for your GPU, or PoCL to compute on the CPU "
    "(Debian and Ubuntu: sudo apt install pocl-opencl-icd; without root, on x86-64: {line})"
)


def devices() -> list[cl.Device]:
    """Every OpenCL device of the machine whose driver can be loaded, GPUs first. The index is what
    ``select`` accepts. Raises DeviceError in a fork of a process that has used drivers."""
    forks.begin()
    try:
        with icd.loading():
            platforms = cl.get_platforms()
    except cl.Error:  # the loader reports PLATFORM_NOT_FOUND_KHR when no driver is installed
        return []
    found = []
    for item in platforms:
        try:
            found += item.get_devices()
        except cl.Error:
            continue  # a driver without a device is no device
    return sorted(found, key=lambda device: not is_gpu(device))


def select(wanted: str | int | None = None) -> cl.Device:
    """The device with this index or name part (any case); by default the first GPU, else CPU.

    Raises DeviceError when there is none, listing the devices that exist.
    """
    found = devices()
    if not found:
        raise DeviceError(missing())
    if wanted is None or wanted == "":
        return found[0]
    text = str(wanted)
    if text.isdigit() and int(text) < len(found):
        return found[int(text)]
    for device in found:
        if text.lower() in label(device).lower():
            return device
    names = ", ".join(f"{index}: {label(device)}" for index, device in enumerate(found))
    raise DeviceError(f"no OpenCL device matches {text!r}; choose one of: {names}")


def missing() -> str:
    """Why there is no device at all, and what to do."""
    broken = [f"{file}: {why}" for file, why in icd.drivers().problems]
    return "; ".join([_NO_PLATFORM.format(line=line("cpu")), *broken])


def is_gpu(device: cl.Device) -> bool:
    return bool(device.type & cl.device_type.GPU)


def has_fma(device: cl.Device) -> bool:
    """True if ``fma`` is an instruction; for llvmpipe it is a program of its own."""
    return bool(device.single_fp_config & cl.device_fp_config.FMA)


def label(device: cl.Device) -> str:
    """A readable name with the platform's."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


def traits_of(device: cl.Device, *, groups: bool = True) -> Traits:
    """Vector width, registers and kind, for the kernel planners. Without ``groups`` a GPU gets the
    kernels of a CPU, whose work-groups are of one work-item."""
    units = max(1, int(device.max_compute_units))
    if is_gpu(device):
        return Traits("gpu" if groups else "cpu", 4, units, 32)
    width = int(device.native_vector_width_float or 4)
    block = 16 if width >= 16 else 8 if width >= 8 else 4
    arm = platform.machine().lower() in ("aarch64", "arm64")
    return Traits("cpu", block, units, 32 if block == 16 or arm else 16)


def recompiles(device: cl.Device) -> bool:
    """True if making a binary takes another compilation, and what was compiled for a launch is
    found by the driver itself: so with PoCL, whose binaries hold kernels for work-groups of any
    size, which are never launched."""
    return bool(device.platform.name.strip() == "Portable Computing Language")


def finish(queue: cl.CommandQueue) -> None:
    """Wait for all that was enqueued. By a marker: rusticl's clFinish (Mesa 22.3) returns at once
    where a clFlush came before it, and does not wait for what that sent to the device."""
    forks.check()
    cl.enqueue_marker(queue).wait()


def driver(device: cl.Device) -> str:
    """Platform and driver versions: what decides how fast compiled kernels are."""
    return f"{device.platform.version.strip()} / {device.driver_version.strip()}"


def _status_name(code: int) -> str:
    """CL_MEM_OBJECT_ALLOCATION_FAILURE for -4, and so on."""
    for name, value in vars(cl.status_code).items():
        if isinstance(value, int) and value == code:
            return name
    return str(code)


def explain(error: cl.Error, doing: str) -> DeviceError:
    """A DeviceError for an OpenCL error code."""
    code = getattr(error, "code", None)
    name = _status_name(code) if isinstance(code, int) else str(error)
    hints = {
        "MEM_OBJECT_ALLOCATION_FAILURE": "; the device is out of memory: load fewer networks "
        "or smaller inputs",
        "OUT_OF_RESOURCES": "; the device is out of memory or was reset",
        "OUT_OF_HOST_MEMORY": "; the machine is out of memory",
    }
    return DeviceError(f"OpenCL error {name} while {doing}{hints.get(name, '')}")


@contextlib.contextmanager
def explaining(doing: str) -> Iterator[None]:
    """Errors of OpenCL within this block are DeviceErrors."""
    try:
        yield
    except cl.Error as error:
        raise explain(error, doing) from error
