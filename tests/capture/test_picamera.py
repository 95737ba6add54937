"""Cameras of a Raspberry Pi, against a stand-in for picamera2 that behaves as it is documented."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import sys
from contextlib import closing
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from heimdall.capture import open_source, picamera
from heimdall.capture.picamera import list_picameras, open_picamera
from heimdall.errors import DeviceError

PATIENCE_S = 20.0
SENSOR = {"Model": "imx708", "Id": "/base/soc/i2c0mux/i2c@1/imx708@1a", "Num": 0, "Rotation": 180}
WEB_CAM = {"Model": "HD Cam", "Id": "/base/scb/pcie@7d5/pci@0,0/usb@0,0-1.3:1.0-046d", "Num": 1}
MODES = [
    {"format": "SRGGB10_CSI2P", "size": (1536, 864), "fps": 120.13, "bit_depth": 10},
    {"format": "SRGGB10_CSI2P", "size": (2304, 1296), "fps": 56.03, "bit_depth": 10},
]


class Picamera2:
    """Red pictures. A format is named from its last byte in memory to its first."""

    cameras = (SENSOR, WEB_CAM)
    busy = False
    dead = False
    last: Picamera2

    def __init__(self, camera_num=0):
        self.number = self.cameras[camera_num]["Num"]
        if self.busy:
            raise RuntimeError("Camera __init__ sequence did not complete.")
        self.state = ["open"]
        self.camera_controls = {} if self.number else {"FrameDurationLimits": (8333, 1000000, None)}
        self.sensor_modes = MODES
        Picamera2.last = self

    @staticmethod
    def global_camera_info():
        return list(Picamera2.cameras)

    def create_video_configuration(self, main=None, controls=None):
        main = {"format": "XBGR8888", "size": (1280, 720), **(main or {})}
        return {"main": main, "controls": {"NoiseReductionMode": 1, **(controls or {})}}

    def configure(self, configuration):
        if configuration["main"]["size"][0] % 2:
            raise RuntimeError("Unable to set stream configuration")
        self.configuration = configuration
        self.state.append("configured")

    def start(self):
        assert self.state[-1] == "configured"
        self.state.append("started")

    def capture_array(self, name, wait=True):
        assert self.state[-1] == "started"
        assert (name, wait) == ("main", False)
        job: concurrent.futures.Future = concurrent.futures.Future()
        if not self.dead:
            width, height = self.configuration["main"]["size"]
            red = {"RGB888": (0, 0, 255), "BGR888": (255, 0, 0), "XBGR8888": (255, 0, 0, 255)}
            pixel = red[self.configuration["main"]["format"]]
            job.set_result(np.full((height, width, len(pixel)), pixel, np.uint8))
        return job

    def wait(self, job, timeout=None):
        return job.result(timeout=timeout)

    def stop(self):
        self.state.append("stopped")

    def close(self):
        self.state.append("closed")


@pytest.fixture(autouse=True)
def library(monkeypatch):
    module: Any = ModuleType("picamera2")
    module.Picamera2 = Picamera2
    module.__spec__ = importlib.util.spec_from_loader("picamera2", None)
    monkeypatch.setitem(sys.modules, "picamera2", module)
    return module


def test_pictures_are_bgr_of_the_size_and_rate_asked_for():
    with closing(open_picamera("0", size=(640, 360), fps=60)) as reader:
        assert (reader.live, reader.fps) == (True, 0)
        image = reader.read()
        np.testing.assert_array_equal(image, np.full((360, 640, 3), (0, 0, 255), np.uint8))
    assert Picamera2.last.configuration["controls"]["FrameRate"] == 60
    assert Picamera2.last.state[-3:] == ["started", "stopped", "closed"]


def test_without_wishes_it_is_as_the_library_has_it():
    with closing(open_picamera("", size=None, fps=None)) as reader:
        assert reader.read().shape == (720, 1280, 3)
    assert "FrameRate" not in Picamera2.last.configuration["controls"]


def test_a_camera_that_libcamera_does_not_steer_keeps_its_rate():
    open_picamera("1", size=None, fps=30).close()
    assert "FrameRate" not in Picamera2.last.configuration["controls"]


def test_it_is_a_source_by_its_name():
    with closing(open_source("picamera:0", size=(64, 48), camera_fps=30)) as source:
        assert source.wait_first(PATIENCE_S).image.shape == (48, 64, 3)
        assert source.live
        assert source.name == "picamera 0"


def test_a_camera_that_stops_is_told_of(monkeypatch):
    monkeypatch.setattr(picamera, "SILENCE_S", 0.01)
    monkeypatch.setattr(Picamera2, "dead", True)
    reader = open_picamera("0", size=None, fps=None)
    with closing(reader), pytest.raises(DeviceError, match="gives no picture"):
        reader.read()


def test_a_configuration_that_is_refused_closes_the_camera():
    with pytest.raises(DeviceError, match="Unable to set stream"):
        open_picamera("0", size=(641, 360), fps=30)
    assert Picamera2.last.state == ["open", "closed"]


@pytest.mark.parametrize(
    ("rest", "problem"), [("7", "libcamera finds no such camera"), ("front", "must be a number")]
)
def test_a_camera_that_is_not_there_is_refused(rest, problem):
    with pytest.raises(DeviceError, match=problem):
        open_source(f"picamera:{rest}")


def test_a_camera_in_use_is_refused(monkeypatch):
    monkeypatch.setattr(Picamera2, "busy", True)
    with pytest.raises(DeviceError, match="is it in use"):
        open_picamera("0", size=None, fps=None)
    (camera,) = list_picameras()
    assert "is it in use" in camera["error"]


def test_without_the_library_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "picamera2", None)
    with pytest.raises(DeviceError, match="apt-get install python3-picamera2"):
        open_picamera("0", size=None, fps=None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert list_picameras() == []


def test_a_sensor_is_listed_with_its_modes_and_a_usb_camera_is_left_to_its_driver():
    (camera,) = list_picameras()
    assert (camera["source"], camera["name"], camera["error"]) == ("picamera:0", "imx708", None)
    (found,) = camera["formats"]
    assert found["format"] == "SRGGB10_CSI2P"
    assert found["sizes"] == [
        {"width": 1536, "height": 864, "fps": [120.13]},
        {"width": 2304, "height": 1296, "fps": [56.03]},
    ]
    assert Picamera2.last.state == ["open", "closed"]
