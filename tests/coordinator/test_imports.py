"""The coordinator and the policies are pure: no device library, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("cv2", "moderngl", "glfw", "pyopencl", "onnxruntime", "onnx", "numpy")


@pytest.mark.parametrize(
    "modules",
    [
        ("heimdall.coordinator.replay", "heimdall.schedulers.max_min"),
        ("heimdall.schedulers.max_min", "heimdall.coordinator.replay"),
    ],
)
def test_in_either_order_they_load_no_device_library_and_no_numpy(modules):
    code = f"import {', '.join(modules)}, sys; print(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
