"""``list_devices`` describes what is there, and failures are text."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import pytest

from heimdall import devices
from heimdall.errors import DeviceError


@pytest.fixture(scope="module")
def report() -> dict:
    """From a process of its own: looking for devices places the threads of the process."""
    code = (
        "import json; from heimdall.devices import list_devices; print(json.dumps(list_devices()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_part_is_described_or_says_why_not(report):
    assert report["gpu"] is not None or report["opencl_error"]
    assert report["gl"]["renderer"] or report["gl"]["error"]
    assert "CPUExecutionProvider" in report["onnxruntime"]["providers"]
    assert report["cpu"]["cores"]


def test_a_software_gpu_tells_its_mode_and_its_workers(report):
    software = report["software_gpu"]
    if software is None or report["gpu"] is None:
        pytest.skip("a real GPU, or no OpenCL")
    assert software["mode"] in ("real-time", "time-sliced", "shared", "unconfined")
    assert software["mode"] in software["description"] or "shares" in software["description"]
    assert report["gpu"]["compute_units"] == len(software["gpu_cores"])
    if software["mode"] in ("real-time", "time-sliced"):
        assert any(thread["name"].startswith("llvmpipe") for thread in software["threads"])


def capability(card: bytes, capabilities: int, device_caps: int) -> bytes:
    return struct.pack("=16s32s32sIII12x", b"uvc", card, b"usb", 0, capabilities, device_caps)


def test_a_capture_node_is_a_camera_and_a_metadata_node_is_not():
    found = devices._parse_capability(2, capability(b"Web Cam", 0x80000001, 0x1))
    assert found == {"index": 2, "name": "Web Cam", "error": None}
    assert devices._parse_capability(3, capability(b"Web Cam", 0x80000001, 0x00800000)) is None
    assert devices._parse_capability(4, capability(b"Old", 0x1, 0)) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="Video4Linux")
def test_a_node_that_is_no_camera_is_reported_with_its_error(tmp_path):
    (tmp_path / "video0").write_bytes(b"")
    camera = devices._query_camera(tmp_path / "video0")
    assert camera is not None
    assert camera["error"]
    missing = devices._query_camera(tmp_path / "video1")
    assert missing is not None
    assert "No such file" in missing["error"]


def test_a_probe_that_hangs_or_fails_is_given_up():
    import threading

    forever = threading.Event()
    assert devices._within(0.01, forever.wait, "nothing") == "nothing"
    forever.set()
    assert devices._within(5, lambda: 1 / 0, "nothing") == "nothing"
    assert devices._within(5, lambda: "found", "nothing") == "found"


def test_missing_opengl_is_text(monkeypatch):
    import heimdall.render

    def broken(*args, **kwargs):
        raise DeviceError("no EGL: apt-get install libegl1")

    monkeypatch.setattr(heimdall.render, "open_surface", broken)
    assert devices._gl() == {
        "renderer": None,
        "version": None,
        "error": "no EGL: apt-get install libegl1",
    }
