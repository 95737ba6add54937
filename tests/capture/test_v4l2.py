"""Cameras are asked by ioctl; the answers here are bytes as the kernel's header lays them out."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from heimdall.capture import v4l2
from heimdall.capture.formats import Format, Mode

# Written by a C program that fills the structs of linux/videodev2.h; zeros at the end left out.
WEB_CAMERA = [
    (
        v4l2.QUERYCAP,
        "757663766964656f00000000000000004844205765622043616d6572613a20484420576562204361"
        "6d657261000000007573622d303030303a30303a31342e302d310000000000000000000000000000"
        "000c06000100a08401002004",
    ),
    (
        v4l2.ENUM_FMT,
        "0000000001000000010000004d6f74696f6e2d4a5045470000000000000000000000000000000000"
        "000000004d4a5047",
    ),
    (
        v4l2.ENUM_FMT,
        "0100000001000000000000005955595620343a323a32000000000000000000000000000000000000"
        "0000000059555956",
    ),
    (v4l2.ENUM_FRAMESIZES, "000000004d4a50470100000000050000d002"),
    (v4l2.ENUM_FRAMESIZES, "010000004d4a50470100000080020000e001"),
    (v4l2.ENUM_FRAMESIZES, "00000000595559560100000080020000e001"),
    (v4l2.ENUM_FRAMESIZES, "01000000595559560100000000050000d002"),
    (v4l2.ENUM_FRAMEINTERVALS, "000000004d4a504700050000d002000001000000010000001e"),
    (v4l2.ENUM_FRAMEINTERVALS, "000000004d4a504780020000e001000001000000010000001e"),
    (v4l2.ENUM_FRAMEINTERVALS, "000000005955595680020000e00100000100000015160500809698"),
    (v4l2.ENUM_FRAMEINTERVALS, "010000005955595680020000e001000001000000010000000f"),
    (v4l2.ENUM_FRAMEINTERVALS, "000000005955595600050000d002000001000000010000000a"),
    (v4l2.ENUM_FRAMEINTERVALS, "010000005955595600050000d002000001000000020000000f"),
]
ANY_SIZE = [
    WEB_CAMERA[0],
    (
        v4l2.ENUM_FMT,
        "0000000001000000000000005955595620343a323a32000000000000000000000000000000000000"
        "0000000059555956",
    ),
    (v4l2.ENUM_FRAMESIZES, "00000000595559560300000020000000200a000002000000200000009807000002"),
    (
        v4l2.ENUM_FRAMEINTERVALS,
        "000000005955595600050000d002000002000000010000005a00000001000000010000000100000001",
    ),
]


# Bytes at the beginning of an answer that are the question.
ASKED = {
    v4l2.QUERYCAP: 0,
    v4l2.ENUM_FMT: 8,
    v4l2.ENUM_FRAMESIZES: 8,
    v4l2.ENUM_FRAMEINTERVALS: 16,
}


class Driver:
    """Answers as it was recorded, and EINVAL to all else, as at the end of a list."""

    def __init__(self, recorded):
        self.answers = {}
        for request, text in recorded:
            answer = bytes.fromhex(text).ljust(size_of(request), b"\0")
            self.answers[request, answer[: ASKED[request]]] = answer

    def __call__(self, request, buffer):
        assert len(buffer) == size_of(request)
        answer = self.answers.get((request, bytes(buffer[: ASKED[request]])))
        if answer is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        buffer[:] = answer


def size_of(request):
    """How many bytes the kernel copies: it stands in the number of an ioctl."""
    return request >> 16 & 0x3FFF


def failing(driver, request, error):
    def ask(asked, buffer):
        if asked == request:
            raise OSError(error, os.strerror(error))
        driver(asked, buffer)

    return ask


def with_capability(driver, offset, value):
    """The same with another number in its struct v4l2_capability."""

    def ask(request, buffer):
        driver(request, buffer)
        if request == v4l2.QUERYCAP:
            struct.pack_into("=I", buffer, offset, value)

    return ask


def test_layouts_are_those_of_the_kernel():
    sizes = {  # sizeof and the ioctls' numbers, printed by a C program
        v4l2.QUERYCAP: (v4l2.CAPABILITY, 104, 0x80685600),
        v4l2.ENUM_FMT: (v4l2.FORMAT, 64, 0xC0405602),
        v4l2.ENUM_FRAMESIZES: (v4l2.FRAME_SIZE, 44, 0xC02C564A),
        v4l2.ENUM_FRAMEINTERVALS: (v4l2.FRAME_INTERVAL, 52, 0xC034564B),
    }
    for request, (layout, size, number) in sizes.items():
        assert request == number
        assert layout.size == size == size_of(request)


def test_a_web_camera_tells_its_formats_sizes_and_rates():
    assert v4l2.describe(Driver(WEB_CAMERA)) == v4l2.Camera(
        "HD Web Camera: HD Web Camera",
        (
            Format("MJPG", True, (Mode((1280, 720), (30.0,)), Mode((640, 480), (30.0,)))),
            Format("YUYV", False, (Mode((640, 480), (30.0, 15.0)), Mode((1280, 720), (10.0, 7.5)))),
        ),
        by_controller=False,
    )


def test_of_ranges_the_ends_the_common_ones_and_what_is_wanted_are_told():
    found = v4l2.describe(Driver(ANY_SIZE), wanted=(1000, 562))
    modes = {mode.size: mode.rates for mode in found.formats[0].modes}
    assert {(2592, 1944), (32, 32), (640, 480), (1280, 720), (1000, 562)} <= set(modes)
    assert modes[1280, 720] == (90.0, 60.0, 50.0, 30.0, 25.0, 15.0, 1.0)
    odd = v4l2.describe(Driver(ANY_SIZE), wanted=(1001, 562))
    assert (1001, 562) not in {mode.size for mode in odd.formats[0].modes}


def test_a_node_that_captures_nothing_is_no_camera():
    metadata = with_capability(Driver(WEB_CAMERA), 88, 0x04A00000)
    assert v4l2.describe(metadata) is None


def test_old_drivers_tell_of_their_device_as_a_whole():
    old = with_capability(Driver(WEB_CAMERA), 84, 0x04000001)
    assert v4l2.describe(with_capability(old, 88, 0)) is not None


def test_a_camera_without_formats_says_so():
    found = v4l2.describe(failing(Driver(WEB_CAMERA), v4l2.ENUM_FMT, errno.EINVAL))
    assert found.formats == ()
    assert "offers no format" in found.problem


def test_unreadable_formats_are_named():
    found = v4l2.Camera("Sensor", (Format("pBAA", False, ()), Format("Y10P", False, ())), True)
    assert "pBAA, Y10P" in found.problem
    assert "picamera:0" in found.problem


def test_a_sensor_that_must_be_set_up_first_is_noted():
    controlled = v4l2.describe(with_capability(Driver(WEB_CAMERA), 88, 0x24200001))
    assert controlled.problem is None
    assert "picamera:0" in controlled.note
    assert v4l2.describe(Driver(WEB_CAMERA)).note is None


@pytest.mark.parametrize("request_", [v4l2.ENUM_FRAMESIZES, v4l2.ENUM_FRAMEINTERVALS])
def test_a_driver_need_not_know_every_question(request_):
    found = v4l2.describe(failing(Driver(WEB_CAMERA), request_, errno.ENOTTY))
    assert [each.fourcc for each in found.formats] == ["MJPG", "YUYV"]
    assert all(not mode.rates for each in found.formats for mode in each.modes)
    assert found.problem is None


def test_a_driver_that_fails_is_still_a_camera():
    found = v4l2.describe(failing(Driver(WEB_CAMERA), v4l2.ENUM_FMT, errno.EIO))
    assert found.formats is None
    assert found.problem is None


def test_a_driver_that_finds_no_end_is_stopped():
    driver = Driver(WEB_CAMERA)

    def endless(request, buffer):
        if request == v4l2.ENUM_FRAMESIZES:
            struct.pack_into("=3I2I", buffer, 0, 0, 0, 1, 0, 0)  # sizes of nothing
        else:
            driver(request, buffer)

    assert [each.modes for each in v4l2.describe(endless).formats] == [(), ()]
