"""Both surfaces over both kinds of GL, so that every contract test runs on each."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from heimdall.errors import DeviceError
from heimdall.render import open_surface


def start_server():
    """An Xvfb and its display's name; skips where there is none."""
    if shutil.which("Xvfb") is None:
        pytest.skip("no Xvfb: windows cannot be tested here")
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x1024x24", "-noreset"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    with os.fdopen(read) as answer:  # to the line's end: the server dies if we hang up earlier
        number = answer.readline().strip()
    if not number:
        pytest.skip("Xvfb did not start")
    return server, f":{number}"


@pytest.fixture(scope="session")
def display():
    """A display for windows: the user's, else an Xvfb of our own."""
    if os.environ.get("DISPLAY") or not sys.platform.startswith("linux"):
        yield
        return
    server, os.environ["DISPLAY"] = start_server()
    yield
    del os.environ["DISPLAY"]
    server.terminate()
    server.wait()


@pytest.fixture
def mortal_display():
    """An Xvfb that may be killed: its process and its display's name."""
    if not sys.platform.startswith("linux"):
        pytest.skip("X servers are for Linux")
    server, name = start_server()
    yield server, name
    server.kill()
    server.wait()


def _open(size, headless):
    try:
        return open_surface(size, headless=headless, title="test")
    except DeviceError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["gl", "es"])
def kind(request, monkeypatch):
    """OpenGL, then OpenGL ES."""
    monkeypatch.setenv("HEIMDALL_GL", request.param)
    return request.param


@pytest.fixture(params=["headless", "window"])
def surface(request, kind):
    """Each kind of surface, 320 x 180."""
    if request.param == "window":
        request.getfixturevalue("display")
    with _open((320, 180), request.param == "headless") as opened:
        yield opened


@pytest.fixture
def headless(kind):
    """A headless surface, 640 x 360."""
    with _open((640, 360), True) as opened:
        yield opened


@pytest.fixture
def grey():
    """A camera picture of 320 x 180, mid grey."""
    return np.full((180, 320, 3), 128, np.uint8)
