"""Imports are a boundary: the coordinator and the policies need no device library."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("cv2", "moderngl", "glfw", "pyopencl", "onnxruntime", "onnx", "matplotlib")


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "module",
    [
        "heimdall",
        "heimdall.system.softgpu",
        "heimdall.app.options",
        "heimdall.runtime.telemetry.trace",
    ],
)
def test_importing_it_loads_no_device_library(module):
    assert loaded_by(f"import {module}").isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "modules",
    [
        ("heimdall.coordinator.replay", "heimdall.schedulers.max_min"),
        ("heimdall.schedulers.max_min", "heimdall.coordinator.replay"),
    ],
)
def test_the_coordinator_and_policies_load_no_numpy_either_in_either_order(modules):
    assert loaded_by(f"import {', '.join(modules)}").isdisjoint({*HEAVY, "numpy"})


def test_the_command_line_loads_nothing_heavy_before_a_command_needs_it():
    assert loaded_by("import heimdall.cli").isdisjoint({*HEAVY, "numpy", "rich", "pydantic"})


def test_an_app_runs_without_the_laboratory_and_what_only_that_needs():
    found = loaded_by(  # of one network, which is measured first
        "from heimdall import run\n"
        "run('marker', headless=True, frames=2, size=(160, 90), device='onnxruntime')"
    )
    assert not [name for name in found if name.startswith("heimdall.lab")]
    assert found.isdisjoint({"matplotlib", "torch", "pytest"})
    assert "heimdall.runtime.loop.frame_loop" in found  # it did run
