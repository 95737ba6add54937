"""Kernel sources to kernels: each source is built once per context, and kept as a binary."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import warnings
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.device import has_fma
from heimdall.engine.opencl.launch import Kernel
from heimdall.errors import DeviceError
from heimdall.system import paths

log = logging.getLogger(__name__)
_warned: set[tuple[str, Path]] = set()

_OPTIONS = ("-cl-std=CL1.2",)
_FOUND_S = 2.0  # a driver that has to compile a network computes for longer, on any machine
_DIGEST_BYTES = 32  # of the binary, before it in its file: a damaged one never reaches a driver


class _Invokers(dict[Any, Any]):
    """What pyopencl generates for each kernel object (code that sets arguments), in memory.

    It looks into a database of its own on disk each time: 0.15 ms, and an app has 700 kernel
    objects of few signatures.
    """

    def __init__(self, on_disk: MutableMapping[Any, Any]) -> None:
        self._on_disk = on_disk

    def __missing__(self, key: Any) -> Any:
        found = self[key] = self._on_disk[key]
        return found

    def store_if_not_present(self, key: Any, value: Any) -> None:
        self[key] = value
        self._on_disk.store_if_not_present(key, value)  # type: ignore[attr-defined]


def _remember_invokers() -> None:
    """Put ``_Invokers`` before pyopencl's cache, where this version of pyopencl has one."""
    try:
        from pyopencl import invoker
    except ImportError:  # private to pyopencl
        return
    cache = getattr(invoker, "invoker_cache", None)
    if cache is not None and not isinstance(cache, _Invokers):
        invoker.invoker_cache = _Invokers(cache)  # type: ignore[assignment]


class Programs:
    """The programs of one context.

    Drivers cache what they compile, but PoCL reads a source anew each time: 30 ms, against 2 ms
    for a binary, and an app has 80 programs. pyopencl's own cache waits a minute for the lock
    of a process that was killed; here a file is complete or not there.

    ``prefetch``: kernels may use the built-in of that name, which some compilers do not survive.

    Without ``keep`` no binary is written: to make one, PoCL compiles each kernel a second time
    (for work-groups of any size, never launched), and half of a cold start is that. With
    ``later`` it is written by ``save``: PoCL finds by itself what it has compiled for launches.
    """

    def __init__(
        self, context: cl.Context, keep: bool = True, *, prefetch: bool = False, later: bool = False
    ) -> None:
        self._context = context
        self._options = (*_OPTIONS, *(("-DPREFETCH",) if prefetch else ()), *_without_fma(context))
        self._keep, self._later = keep, later
        self._unsaved: list[tuple[Path, cl.Program]] = []
        self._took_s: dict[tuple[str, tuple[str, ...]], float] = {}
        self._device = context.devices[0]
        self._built: dict[tuple[str, tuple[str, ...]], cl.Program] = {}
        self._lock = threading.Lock()
        _remember_invokers()

    def build(self, kernel: Kernel) -> bool:
        """Compile the kernel's source unless that is done; true if it was done only now.

        Raises DeviceError with the log.
        """
        key = (kernel.identity, kernel.options)
        with self._lock:
            if key in self._built:
                return False
            path = self._path(kernel)
            kept = self._read(path)
            self._built[key] = kept or self._compile(kernel, path)
            return kept is None

    def recall(self, kernel: Kernel) -> bool:
        """Build it if that needs no compiler: from its binary, or because it was built before."""
        key = (kernel.identity, kernel.options)
        with self._lock:
            if key not in self._built and (kept := self._read(self._path(kernel))):
                self._built[key] = kept
            return key in self._built

    def found_again(self, kernel: Kernel) -> bool:
        """True if another process will find what was compiled: a binary, or, where those are left
        for later, what the driver keeps by itself; then it takes a fraction of the time: of this
        process's own, as an app that renders may leave it none for seconds."""
        if not self._keep:
            return False
        if not self._later:
            return self._read(self._path(kernel)) is not None
        took_s = self._took_s.get((kernel.identity, kernel.options), 0.0)
        if took_s <= _FOUND_S:
            return True
        began_s = time.process_time()
        self._translate(cl.Context([self._device]), kernel)
        return time.process_time() - began_s < took_s / 2

    def save(self) -> None:
        """Write the binaries that were left for later."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, []
        for path, program in unsaved:
            _save(path, program)

    def kernel(self, kernel: Kernel) -> cl.Kernel:
        """A new kernel object, whose arguments are the caller's own."""
        self.build(kernel)
        return cl.Kernel(self._built[kernel.identity, kernel.options], kernel.name)

    def __len__(self) -> int:
        return len(self._built)

    def _compile(self, kernel: Kernel, path: Path) -> cl.Program:
        began_s = time.process_time()
        program = self._translate(self._context, kernel)
        self._took_s[kernel.identity, kernel.options] = time.process_time() - began_s
        if self._keep and self._later:
            self._unsaved.append((path, program))
        elif self._keep:
            _save(path, program)
        return program

    def _translate(self, context: cl.Context, kernel: Kernel) -> cl.Program:
        program = cl.Program(context, kernel.source)
        options = [*self._options, *kernel.options]
        try:
            # Intel's compiler says that it has built a kernel, which pyopencl then warns of.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cl.CompilerWarning)
                program.build(options=options, cache_dir=False)  # type: ignore[arg-type]
        except cl.Error as error:
            raise DeviceError(
                f"OpenCL kernel {kernel.name!r} does not build on this device: {error}"
            ) from error
        return program

    def _path(self, kernel: Kernel) -> Path:
        """Its name changes with the source, the options, the device and the driver."""
        device, platform = self._device, self._device.platform
        parts = (
            *(kernel.identity, *kernel.options, *self._options),
            *(platform.name, platform.version, device.name, device.version),
            device.driver_version,
        )
        name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        return paths.cache_dir() / "kernels" / f"{name}.bin"

    def _read(self, path: Path) -> cl.Program | None:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        digest, binary = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        if hashlib.sha256(binary).digest() != digest:
            _warn_once("is damaged: compiling again", path)
            return None
        try:
            return cl.Program(self._context, [self._device], [binary]).build()
        except cl.Error as error:
            _warn_once("is refused by the driver: compiling again", path, error)
            return None


def _without_fma(context: cl.Context) -> tuple[str, ...]:
    """Where ``fma`` is no instruction (llvmpipe: 17 s to compile a kernel of 32), a multiply and an
    add have to do."""
    return () if has_fma(context.devices[0]) else ("-Dfma=mad",)


def set_arguments(kernel: cl.Kernel, args: Sequence[cl.Buffer | np.generic]) -> None:
    """Set all arguments of a kernel.

    ``Kernel.set_args`` asks of each number whether it is a buffer, and a C++ exception says no:
    6 us, of which an app has 14000. The functions for known kinds need 0.1 us.
    """
    private = ("_set_arg_multi", "_set_arg_buf_multi")  # to pyopencl: they may be missing
    if not all(hasattr(kernel, name) for name in private):
        kernel.set_args(*args)
        return
    buffers: list[Any] = []
    numbers: list[Any] = []
    for pair in enumerate(args):
        (buffers if isinstance(pair[1], cl.Buffer) else numbers).extend(pair)
    kernel._set_arg_multi(tuple(buffers))  # type: ignore[attr-defined]
    kernel._set_arg_buf_multi(tuple(numbers))  # type: ignore[attr-defined]


def _warn_once(what: str, path: Path, error: Exception | None = None) -> None:
    """A network has a hundred kernels, and what is wrong with one is wrong with most."""
    why = f" ({error})" if error else ""
    level = logging.DEBUG if (what, path.parent) in _warned else logging.WARNING
    log.log(level, "kernel binary %s %s%s", path, what, why)
    _warned.add((what, path.parent))


def _save(path: Path, program: cl.Program) -> None:
    """Best effort: without the file the source is compiled again next time."""
    binaries: list[bytes] = program.get_info(cl.program_info.BINARIES)  # type: ignore[assignment]
    try:
        paths.replace_file(path, hashlib.sha256(binaries[0]).digest() + binaries[0])
    except OSError as error:
        paths.say_unsaved(path, error, "it will be compiled again next time")
