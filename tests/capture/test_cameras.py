"""Cameras are asked what they are, without being started."""

from __future__ import annotations

import struct
import sys

import pytest

from heimdall.capture import cameras


def capability(card: bytes, capabilities: int, device_caps: int) -> bytes:
    return struct.pack("=16s32s32sIII12x", b"uvc", card, b"usb", 0, capabilities, device_caps)


def test_a_capture_node_is_a_camera_and_a_metadata_node_is_not():
    found = cameras.parse_capability(2, capability(b"Web Cam", 0x80000001, 0x1))
    assert found == {"index": 2, "name": "Web Cam", "error": None}
    assert cameras.parse_capability(3, capability(b"Web Cam", 0x80000001, 0x00800000)) is None
    assert cameras.parse_capability(4, capability(b"Old", 0x1, 0)) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="Video4Linux")
def test_a_node_that_is_no_camera_is_reported_with_its_error(tmp_path):
    (tmp_path / "video0").write_bytes(b"")
    camera = cameras.query_camera(tmp_path / "video0")
    assert camera is not None
    assert camera["error"]
    missing = cameras.query_camera(tmp_path / "video1")
    assert missing is not None
    assert "No such file" in missing["error"]


def test_a_probe_that_hangs_or_fails_is_given_up():
    import threading

    forever = threading.Event()
    assert cameras.within(0.01, forever.wait, "nothing") == "nothing"
    forever.set()
    assert cameras.within(5, lambda: 1 / 0, "nothing") == "nothing"
    assert cameras.within(5, lambda: "found", "nothing") == "found"
