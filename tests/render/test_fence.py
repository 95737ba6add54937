"""Waiting for the GPU: through GL's fences where there are any, and without the lock."""

import ctypes
import threading

import pytest

from heimdall.errors import DeviceError
from heimdall.render.egl import egl_loader
from heimdall.render.fence import Fence

SIGNALED, EXPIRED = 0x911A, 0x911B


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


def functions(client_wait, deleted=lambda *_: None):
    """A loader of GL functions that are stood in for; what they need to live."""
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)(lambda *_: 1)
    wait = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint64)(
        client_wait
    )
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleted)
    made = {"glFenceSync": create, "glClientWaitSync": wait, "glDeleteSync": delete}
    return {name: ctypes.cast(each, ctypes.c_void_p).value for name, each in made.items()}, made


def test_a_gpu_that_hangs_is_given_up_and_not_waited_for_again():
    waits = []

    def wait(*_):
        waits.append(1)
        return EXPIRED

    addresses, _alive = functions(wait)
    fence = Fence(addresses.get, lambda: pytest.fail("fell back"))
    with pytest.raises(DeviceError, match="it hangs, and is given up"):
        fence.wait()
    assert fence.hangs
    assert 10 <= len(waits) <= 60  # a second each
    with pytest.raises(DeviceError, match="hangs"):
        fence.wait()
    assert len(waits) <= 60


def test_a_gpu_that_takes_seconds_is_waited_for():
    waits = []

    def wait(*_):
        waits.append(1)
        return SIGNALED if len(waits) > 9 else EXPIRED

    addresses, _alive = functions(wait)
    fence = Fence(addresses.get, lambda: pytest.fail("fell back"))
    fence.wait()
    assert not fence.hangs


def test_other_threads_run_while_the_fence_is_waited_on():
    """The driver's wait is stood in for by one that needs another thread to go on."""
    go = threading.Event()
    waiting = []

    def client_wait(*_):
        waiting.append(go.wait(20))  # called through ctypes, as the driver's would be
        return SIGNALED

    addresses, _alive = functions(client_wait)
    thread = threading.Timer(0.05, go.set)
    thread.start()
    Fence(addresses.get, lambda: pytest.fail("fell back")).wait()
    thread.join()
    assert waiting == [True]
