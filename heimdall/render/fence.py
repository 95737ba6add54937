"""Waits for the GPU without holding the interpreter lock.

``moderngl.Context.finish`` holds the lock for the whole wait: a Python thread that counts beside
it does not advance by one. ctypes releases the lock around foreign calls, so a fence waited on
through ctypes lets completions and decoding go on.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from heimdall.render.egl import Loader

_SYNC_GPU_COMMANDS_COMPLETE = 0x9117
_SYNC_FLUSH_COMMANDS_BIT = 0x1
_TIMEOUT_EXPIRED = 0x911B
_WAIT_FAILED = 0x911D
_WAIT_NS = 1_000_000_000


class Fence:
    """``wait()`` returns when the GPU has executed everything submitted to the current context.

    ``loader`` gives the address of a GL function by name. Where a function is missing (OpenGL
    before 3.2), ``fallback`` is called instead.
    """

    def __init__(self, loader: Loader | None, fallback: Callable[[], None]):
        self._fallback = fallback
        self._functions = _load(loader) if loader else None

    @property
    def releases_lock(self) -> bool:
        """True if waiting lets other Python threads run."""
        return self._functions is not None

    def wait(self) -> None:
        if self._functions is None:
            self._fallback()
            return
        create, wait, delete = self._functions
        sync = create(_SYNC_GPU_COMMANDS_COMPLETE, 0)
        if not sync:
            self._fallback()
            return
        status = _TIMEOUT_EXPIRED
        while status == _TIMEOUT_EXPIRED:
            status = wait(sync, _SYNC_FLUSH_COMMANDS_BIT, _WAIT_NS)
        delete(sync)
        if status == _WAIT_FAILED:
            self._fallback()


def _load(loader: Loader) -> tuple[Callable, Callable, Callable] | None:
    names = ("glFenceSync", "glClientWaitSync", "glDeleteSync")
    addresses = [address for name in names if (address := loader(name))]
    if len(addresses) < len(names):
        return None
    # GL functions are __stdcall on 32-bit Windows; elsewhere both conventions are one.
    kind = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)
    create = kind(ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(addresses[0])
    wait = kind(ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64)(addresses[1])
    delete = kind(None, ctypes.c_void_p)(addresses[2])
    return create, wait, delete
