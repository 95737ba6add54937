"""OpenCV and Heimdall before a camera of USB 2, which a library plays within a process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

SOURCE = Path(__file__).with_name("usb_camera.c")
OPEN = """
import json, sys, time
import cv2
from heimdall.capture import camera
camera.camera_likely = lambda index: True
width, height, fps = map(int, sys.argv[1:])
reader = camera.open_camera(0, (width, height), fps)
began_ns = time.perf_counter_ns()
image = reader.read()
told = began_ns - 1e9 < reader.taken_ns <= time.perf_counter_ns()
code = int(reader.get(cv2.CAP_PROP_FOURCC)).to_bytes(4, "little").decode()
print(json.dumps([code, image.shape, reader.get(cv2.CAP_PROP_FPS), told, float(image.mean())]))
reader.close()
"""
LIST = """
import json, pathlib
from heimdall.capture import cameras
cameras._video_nodes = lambda: [pathlib.Path("/dev/video0")]
print(json.dumps(cameras.list_cameras()))
"""


@pytest.fixture(scope="module")
def plugged(tmp_path_factory):
    """``plugged(code, *arguments)``: what Python prints with the camera, and what it logs."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler")
    folder = tmp_path_factory.mktemp("camera")
    library, picture = folder / "camera.so", folder / "white.jpg"
    build = [compiler, "-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(library), "-ldl"]
    done = subprocess.run(build, capture_output=True, text=True, timeout=60)
    if "videodev2.h" in done.stderr:
        pytest.skip("needs linux/videodev2.h")
    assert done.returncode == 0, done.stderr
    cv2.imwrite(str(picture), np.full((720, 1280, 3), 255, np.uint8))
    environment = {**os.environ, "LD_PRELOAD": str(library), "USB_CAMERA_JPEG": str(picture)}

    def run(code, *arguments):
        command = [sys.executable, "-c", code, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1]), done.stderr

    return run


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ((1280, 720, 30), ["MJPG", [720, 1280, 3], 30.0, True]),
        ((1280, 720, 10), ["YUYV", [720, 1280, 3], 10.0, True]),
        ((640, 480, 30), ["YUYV", [480, 640, 3], 30.0, True]),
        ((640, 480, 15), ["YUYV", [480, 640, 3], 15.0, True]),
    ],
)
def test_the_driver_takes_the_format_that_reaches_size_and_rate(plugged, asked, taken):
    (*found, level), log = plugged(OPEN, *asked)
    assert found == taken
    assert level > 250 if taken[0] == "MJPG" else 100 < level < 160
    assert "camera 0" not in log


def test_the_nearest_is_taken_and_said(plugged):
    (*found, _), log = plugged(OPEN, 1920, 1080, 60)
    assert found == ["MJPG", [720, 1280, 3], 30.0, True]
    assert "camera 0 gives 1280x720 MJPG at 30 fps where 1920x1080 at 60 fps was asked" in log


def test_it_is_listed_with_formats_sizes_and_rates(plugged):
    ((camera,), _) = plugged(LIST)
    assert (camera["name"], camera["error"]) == ("USB 2 Camera", None)
    rates = {
        (each["format"], size["width"]): size["fps"]
        for each in camera["formats"]
        for size in each["sizes"]
    }
    assert rates == {
        ("MJPG", 1280): [30.0],
        ("MJPG", 640): [30.0],
        ("YUYV", 1280): [10.0],
        ("YUYV", 640): [30.0, 15.0],
    }
