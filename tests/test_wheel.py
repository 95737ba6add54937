"""The wheel carries apps and assets inside the package."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_wheel_holds_apps_assets_kernels_and_shaders(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "-q", "-w"]
    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=280)
    if done.returncode and "hatchling" in done.stderr and "No matching" in done.stderr:
        pytest.skip("the build backend cannot be fetched here")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("heimdall_ar-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {ROOT / "apps": "apps", ROOT / "assets": "assets"}
    for folder, name in wanted.items():
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                inside = f"heimdall/_bundled/{name}/{path.relative_to(folder).as_posix()}"
                assert inside in names
    for pattern in ("engine/opencl/kernels/*.cl", "render/shaders/*"):
        for path in (ROOT / "heimdall").glob(pattern):
            assert path.relative_to(ROOT).as_posix() in names
    assert not any(name.startswith(("tests/", "apps/", "assets/")) for name in names)
