"""``list_devices`` describes what is there, and failures are text."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from heimdall.errors import DeviceError
from heimdall.runtime.opening import devices
from heimdall.system import softgpu


@pytest.fixture(scope="module")
def report() -> dict:
    """From a process of its own: looking for devices places the threads of the process."""
    code = (
        "import json; from heimdall.runtime.opening.devices import list_devices;"
        "print(json.dumps(list_devices()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_part_is_described_or_says_why_not(report):
    assert report["gpu"] is not None or report["opencl_error"]
    gl = report["gl"]
    assert gl["error"] or (gl["renderer"] and gl["es"] == gl["version"].startswith("OpenGL ES"))
    for priority in filter(None, (report["gpu"] and report["gpu"]["priority"], gl["priority"])):
        assert priority["why"] or priority["level"] in ("low", "high", "realtime")
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


def test_missing_opengl_is_text(monkeypatch):
    import heimdall.render

    def broken(*args, **kwargs):
        raise DeviceError("no EGL: apt-get install libegl1")

    monkeypatch.setattr(heimdall.render, "open_surface", broken)
    for name in ("LP_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"):
        monkeypatch.setenv(name, "1")  # puts back what was there
    monkeypatch.setattr(softgpu, "_can_confine", lambda: False)  # no thread of this process moves
    assert devices.list_devices()["gl"] == {
        "renderer": None,
        "version": None,
        "es": None,
        "refused": [],
        "priority": None,
        "error": "no EGL: apt-get install libegl1",
    }
