"""A camera is asked for the format that reaches size and rate, and what it took is checked."""

from __future__ import annotations

import logging
import sys

import cv2
import numpy as np
import pytest

from heimdall.capture import camera, readers, v4l2
from heimdall.capture.camera import open_camera
from heimdall.capture.formats import Format, Mode
from heimdall.errors import DeviceError

FORMATS = (
    Format("MJPG", True, (Mode((1280, 720), (30.0,)), Mode((640, 480), (30.0,)))),
    Format("YUYV", False, (Mode((640, 480), (30.0,)), Mode((1280, 720), (10.0,)))),
)


def code(fourcc):
    return cv2.VideoWriter.fourcc(*fourcc)


class Driver:
    """As OpenCV's Video4Linux backend: settings in turn, each refused where it is not offered."""

    formats = FORMATS
    stubborn = False  # takes any setting, and goes on as before

    def __init__(self, index, backend, settings=()):
        self.asked = list(zip(settings[::2], settings[1::2], strict=True))
        self.fourcc, self.size, self.fps = "YUYV", [640, 480], 30.0
        self.opened = True
        for setting, value in self.asked:
            self.opened = self.opened and self.set(setting, value)

    def set(self, setting, value):
        if self.stubborn:
            return True
        if setting == cv2.CAP_PROP_FOURCC:
            self.fourcc = value.to_bytes(4, "little").decode()
        elif setting == cv2.CAP_PROP_FRAME_WIDTH:
            self.size[0] = value
        elif setting == cv2.CAP_PROP_FRAME_HEIGHT:
            self.size[1] = value
        elif setting == cv2.CAP_PROP_FPS:
            modes = next(each.modes for each in self.formats if each.fourcc == self.fourcc)
            rates = next(mode.rates for mode in modes if mode.size == tuple(self.size))
            self.fps = min(rates, key=lambda rate: abs(rate - value))
        else:
            return False
        return True

    def get(self, setting):
        known = {
            cv2.CAP_PROP_FOURCC: code(self.fourcc),
            cv2.CAP_PROP_FRAME_WIDTH: self.size[0],
            cv2.CAP_PROP_FRAME_HEIGHT: self.size[1],
            cv2.CAP_PROP_FPS: self.fps,
            cv2.CAP_PROP_POS_MSEC: 0,
        }
        return float(known[setting])

    def isOpened(self):  # noqa: N802
        return self.opened

    def read(self):
        return True, np.zeros((self.size[1], self.size[0], 3), np.uint8)

    def release(self):
        self.opened = False


@pytest.fixture
def plug(monkeypatch):
    """``plug(formats)``: a camera with them is /dev/video0, answering as ``driver`` does."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(camera, "camera_likely", lambda index: index == 0)
    monkeypatch.setattr(camera, "_said", set())

    def plugged(formats, driver=Driver, **known):
        found = v4l2.Camera("Web Cam", formats, **{"by_controller": False, **known})
        monkeypatch.setattr(v4l2, "query", lambda path, size: found)
        monkeypatch.setattr(driver, "formats", formats or FORMATS)
        opened = []

        def open_it(*arguments):
            opened.append(driver(*arguments))
            return opened[-1]

        monkeypatch.setattr(cv2, "VideoCapture", open_it)
        return opened

    return plugged


def test_mjpg_is_asked_for_where_raw_would_be_slow(plug, caplog):
    opened = plug(FORMATS)
    reader = open_camera(0, (1280, 720), 30)
    assert opened[0].asked == [
        (cv2.CAP_PROP_FOURCC, code("MJPG")),
        (cv2.CAP_PROP_FRAME_WIDTH, 1280),
        (cv2.CAP_PROP_FRAME_HEIGHT, 720),
        (cv2.CAP_PROP_FPS, 30),
    ]
    assert reader.read().shape == (720, 1280, 3)
    assert reader.live
    assert not caplog.records
    reader.close()


def test_raw_is_asked_for_where_it_is_fast_enough(plug, caplog):
    opened = plug(FORMATS)
    open_camera(0, (640, 480), None)  # 30 fps, as cameras are used
    assert (cv2.CAP_PROP_FOURCC, code("YUYV")) in opened[0].asked
    assert not caplog.records


def test_the_nearest_is_taken_and_said_once(plug, caplog):
    plug(FORMATS)
    for _ in range(3):
        open_camera(0, (1920, 1080), 60)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "camera 0 gives 1280x720 MJPG at 30 fps where 1920x1080 at 60 fps was asked for, "
        "the nearest it offers"
    )


def test_a_driver_that_does_not_take_what_it_offers_is_told(plug, caplog):
    class Stubborn(Driver):
        stubborn = True

    plug(FORMATS, Stubborn)
    open_camera(0, (1280, 720), 30)
    assert "its driver did not take 1280x720 MJPG at 30 fps" in caplog.text


def test_a_setting_that_is_refused_does_not_cost_the_others(plug, caplog):
    class NoRate(Driver):
        def set(self, setting, value):
            return setting != cv2.CAP_PROP_FPS and super().set(setting, value)

    opened = plug(FORMATS, NoRate)
    reader = open_camera(0, (1280, 720), 30)
    assert len(opened) == 2
    assert reader.read().shape == (720, 1280, 3)
    assert opened[1].fourcc == "MJPG"


def test_where_formats_are_not_told_size_and_rate_are_asked_for_alone(plug):
    opened = plug(None)
    open_camera(0, (640, 480), 30)
    assert [setting for setting, _ in opened[0].asked] == [
        cv2.CAP_PROP_FRAME_WIDTH,
        cv2.CAP_PROP_FRAME_HEIGHT,
        cv2.CAP_PROP_FPS,
    ]


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_elsewhere_the_system_chooses_a_format(plug, monkeypatch, system):
    opened = plug(FORMATS)
    monkeypatch.setattr(v4l2, "query", lambda *_: pytest.fail("asked"))
    monkeypatch.setattr(sys, "platform", system)
    open_camera(0, (640, 480), 30)
    assert cv2.CAP_PROP_FOURCC not in dict(opened[0].asked)


def test_a_camera_without_formats_is_refused_by_its_name(plug):
    opened = plug(())
    with pytest.raises(DeviceError, match=r"camera 0 \(Web Cam\): it offers no format"):
        open_camera(0, (640, 480), 30)
    assert not opened


def test_a_sensor_that_must_be_set_up_first_is_tried_with_a_word(plug, caplog):
    plug(FORMATS, by_controller=True)
    open_camera(0, (640, 480), 30).close()
    open_camera(0, (640, 480), 30).close()
    assert caplog.text.count("picamera:0") == 1


def test_a_node_that_gives_no_pictures_is_refused(plug, monkeypatch):
    plug(FORMATS)
    monkeypatch.setattr(v4l2, "query", lambda path, size: None)
    with pytest.raises(DeviceError, match="/dev/video0 gives no pictures"):
        open_camera(0, (640, 480), 30)


def test_a_node_that_may_not_be_opened_says_why(plug, monkeypatch):
    def forbidden(path, size):
        raise PermissionError(13, "Permission denied")

    plug(FORMATS)
    monkeypatch.setattr(v4l2, "query", forbidden)
    with pytest.raises(DeviceError, match=r"Permission denied; are you in the group video\?"):
        open_camera(0, (640, 480), 30)


def test_a_camera_that_is_not_there_is_not_tried(monkeypatch):
    monkeypatch.setattr(camera, "camera_likely", lambda index: False)
    monkeypatch.setattr(cv2, "VideoCapture", lambda *_: pytest.fail("tried"))
    with pytest.raises(DeviceError, match="camera 77"):
        open_camera(77, (640, 480), 30)


def test_where_cameras_have_no_files_any_may_be_there(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert readers.camera_likely(77)
