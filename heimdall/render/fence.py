"""Waits for the GPU without holding the interpreter lock.

``moderngl.Context.finish`` holds the lock for the whole wait: a Python thread that counts beside
it does not advance by one. ctypes releases the lock around foreign calls, so a fence waited on
through ctypes lets completions and decoding go on.

A GPU that hangs is given up: whoever waits gets an error, and from then on nothing waits for it.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

from heimdall.errors import DeviceError
from heimdall.render.egl import Loader, gl_functions
from heimdall.system import forks

_SYNC_GPU_COMMANDS_COMPLETE = 0x9117
_SYNC_FLUSH_COMMANDS_BIT = 0x1
_TIMEOUT_EXPIRED = 0x911B
_WAIT_FAILED = 0x911D
_WAIT_NS = 1_000_000_000
# Times that it is waited: a process that is stopped, and goes on, waits one of them too long.
# Drivers that reset a GPU which hangs do so within ten seconds.
_WAITS = 20
_UINT, _POINTER = ctypes.c_uint, ctypes.c_void_p
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # what it returns, and takes
    "glFenceSync": (_POINTER, _UINT, _UINT),
    "glClientWaitSync": (_UINT, _POINTER, _UINT, ctypes.c_uint64),
    "glDeleteSync": (None, _POINTER),
}


class Fence:
    """``wait()`` returns when the GPU has executed everything submitted to the current context.
    Raises DeviceError once it has hung (``hangs``).

    ``loader`` gives the address of a GL function by name. Where a function is missing (OpenGL
    before 3.2), ``fallback`` is called instead.
    """

    def __init__(self, loader: Loader | None, fallback: Callable[[], None]):
        self._fallback = fallback
        self.hangs = False
        self._functions: dict[str, Any] = {}
        if loader is not None:
            with contextlib.suppress(AttributeError):
                self._functions = gl_functions(loader, _FUNCTIONS)

    def wait(self) -> None:
        forks.check()
        if self.hangs:
            raise DeviceError("the GPU hangs: nothing can be drawn any more")
        gl = self._functions
        sync = gl and gl["glFenceSync"](_SYNC_GPU_COMMANDS_COMPLETE, 0)
        if not sync:
            self._fallback()
            return
        for _ in range(_WAITS):
            status = gl["glClientWaitSync"](sync, _SYNC_FLUSH_COMMANDS_BIT, _WAIT_NS)
            if status != _TIMEOUT_EXPIRED:
                break
        else:
            self.hangs = True
            raise DeviceError(
                f"the GPU has not drawn a frame for {_WAITS} s: it hangs, and is given up. What "
                "was recorded before is kept; if that comes again, update the GPU's driver"
            )
        gl["glDeleteSync"](sync)
        if status == _WAIT_FAILED:
            self._fallback()
