"""Kernel sources to kernels: each source is built once per context."""

from __future__ import annotations

import threading

import pyopencl as cl

from heimdall.engine.opencl.launch import Kernel
from heimdall.errors import DeviceError

_OPTIONS = ("-cl-std=CL1.2",)


class Programs:
    """The programs of one context. The drivers (PoCL, NVIDIA, Intel, Mesa) cache binaries on disk
    themselves, keyed better than we could, so there is no second cache here."""

    def __init__(self, context: cl.Context) -> None:
        self._context = context
        self._built: dict[tuple[str, tuple[str, ...]], cl.Program] = {}
        self._lock = threading.Lock()

    def build(self, kernel: Kernel) -> None:
        """Compile the kernel's source unless that is done. Raises DeviceError with the log."""
        key = (kernel.source, kernel.options)
        with self._lock:
            if key in self._built:
                return
            program = cl.Program(self._context, kernel.source)
            try:
                program.build(
                    options=[*_OPTIONS, *kernel.options],
                    cache_dir=False,  # type: ignore[arg-type]
                )
            except cl.Error as error:
                raise DeviceError(
                    f"OpenCL kernel {kernel.name!r} does not build on this device: {error}"
                ) from error
            self._built[key] = program

    def kernel(self, kernel: Kernel) -> cl.Kernel:
        """A new kernel object, whose arguments are the caller's own."""
        self.build(kernel)
        return cl.Kernel(self._built[kernel.source, kernel.options], kernel.name)

    def __len__(self) -> int:
        return len(self._built)
