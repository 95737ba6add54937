"""The coordinator and the policies are pure: no device library, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("cv2", "moderngl", "glfw", "pyopencl", "onnxruntime", "onnx", "numpy")


@pytest.mark.parametrize(
    "statement",
    [
        "from heimdall.coordinator import Coordinator; import heimdall.schedulers",
        "import heimdall.schedulers; from heimdall.coordinator import Coordinator",
        "import heimdall.coordinator.replay",
        "import heimdall.schedulers.max_min",
    ],
)
def test_importing_it_loads_no_device_library(statement):
    code = f"{statement}\nimport sys; print(*(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
