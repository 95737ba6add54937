"""Queues of low priority, where a driver has them: it serves those who draw before networks then.

Two extensions ask for it. What either does is the driver's: they are hints, and no query tells
what came of one. ``cl_khr_throttle_hints`` and ``cl_qcom_perf_hint`` are about power, not turns
(the specification calls them orthogonal), so they are named and never asked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import pyopencl as cl

from heimdall.engine.opencl.abilities import Abilities
from heimdall.errors import DeviceError
from heimdall.vocabulary.driver_priority import DriverPriority, Level

KHRONOS, QUALCOMM = "cl_khr_priority_hints", "cl_qcom_priority_hint"
HINTS = (KHRONOS, "cl_khr_throttle_hints", QUALCOMM, "cl_qcom_perf_hint")

_QUEUE_PROPERTIES = 0x1093
_QUEUE_PRIORITY, _QUEUE_LOW = 0x1096, 1 << 2  # CL/cl_ext.h
_PLATFORM = 0x1084
# CL/cl_ext_qcom.h of Qualcomm's SDK; Khronos's own headers do not have them.
_CONTEXT_PRIORITY, _CONTEXT_LOW = 0x40C9, 0x40CC


def hints_of(device: cl.Device) -> list[str]:
    """The extensions with hints of any kind that a device has."""
    known = device.extensions.split()
    return [each for each in HINTS if each in known]


def extension_of(device: cl.Device) -> str:
    """That by which its queues can be of low priority. Raises DeviceError where it has none."""
    known = hints_of(device)
    for each in (KHRONOS, QUALCOMM):
        if each in known:
            return each
    raise DeviceError(f"its driver has neither {KHRONOS} nor {QUALCOMM}")


def given(abilities: Abilities) -> DriverPriority:
    """What queues are to the driver."""
    if abilities.priority:
        return DriverPriority(Level.LOW)
    return DriverPriority(why=dict(abilities.lacks).get("priority", ""))


def open_context(device: cl.Device, extension: str = "") -> cl.Context:
    """A context; all its queues are of low priority where ``extension`` is Qualcomm's. Raises
    cl.Error, or DeviceError, where the driver refuses."""
    if extension != QUALCOMM:
        return cl.Context([device])
    platform = device.platform.int_ptr
    return _create_context(device, (_PLATFORM, platform, _CONTEXT_PRIORITY, _CONTEXT_LOW))


def open_queue(
    context: cl.Context, device: cl.Device, properties: int = 0, extension: str = ""
) -> cl.CommandQueue:
    """An in-order queue with ``properties`` (``cl.command_queue_properties``); of low priority
    where ``extension`` is Khronos's. Raises cl.Error: pyopencl passes the hint to OpenCL 2.0 and
    later only."""
    given: Any = properties
    if extension == KHRONOS:
        given = [_QUEUE_PROPERTIES, properties, _QUEUE_PRIORITY, _QUEUE_LOW]
    return cl.CommandQueue(context, device, given)


def _create_context(device: cl.Device, properties: Sequence[int]) -> cl.Context:
    """pyopencl refuses properties that it does not know, so the library that it calls is called
    here: a lookup in an extension module goes on in what that is linked with, but on Windows."""
    module = getattr(getattr(cl, "_cl", None), "__file__", None)  # private to pyopencl
    create: Any = getattr(ctypes.CDLL(module), "clCreateContext", None) if module else None
    if create is None:
        raise DeviceError("OpenCL's loader cannot be called but by pyopencl here")
    create.restype = ctypes.c_void_p
    create.argtypes = [ctypes.c_void_p, ctypes.c_uint, *[ctypes.c_void_p] * 4]
    listed = (ctypes.c_ssize_t * (len(properties) + 1))(*properties)
    devices, code = (ctypes.c_void_p * 1)(device.int_ptr), ctypes.c_int(0)
    made = create(listed, 1, devices, None, None, ctypes.byref(code))
    if not made:
        raise DeviceError(f"its driver refuses a low context (OpenCL error {code.value})")
    return cl.Context.from_int_ptr(made, retain=False)
