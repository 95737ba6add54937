"""Waiting for the GPU: through GL's fences where there are any, and without the lock."""

import ctypes
import threading

import pytest

from heimdall.render.egl import egl_loader
from heimdall.render.fence import Fence


def test_without_fences_waiting_falls_back():
    calls = []
    for loader in (None, lambda name: None):
        Fence(loader, lambda: calls.append("finish")).wait()
    assert calls == ["finish", "finish"]


def test_a_context_of_egl_has_fences(headless):
    if egl_loader() is None:
        pytest.skip("no EGL here")
    fence = Fence(egl_loader(), lambda: pytest.fail("fell back"))
    headless.framebuffer.clear()
    fence.wait()


def test_other_threads_run_while_the_fence_is_waited_on():
    """The driver's wait is stood in for by one that needs another thread to go on."""
    go = threading.Event()
    waiting = []

    def client_wait(*_):
        waiting.append(go.wait(20))  # called through ctypes, as the driver's would be
        return 0x911A  # already signaled

    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(lambda *_: 1)
    wait = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64)(
        client_wait
    )
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda *_: None)
    functions = {"glFenceSync": create, "glClientWaitSync": wait, "glDeleteSync": delete}
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value for name, function in functions.items()
    }
    thread = threading.Timer(0.05, go.set)
    thread.start()
    Fence(addresses.get, lambda: pytest.fail("fell back")).wait()
    thread.join()
    assert waiting == [True]
