"""What `heimdall doctor` says of machines that lack something."""

from __future__ import annotations

import sys

import pytest

from heimdall.runtime.opening.doctor import diagnose
from heimdall.system import extras, paths
from heimdall.system.child import BROKEN


@pytest.fixture
def report():
    """A machine that has everything."""
    return {
        "gpu": {"name": "Adreno 630", "platform": "QUALCOMM"},
        "opencl_error": None,
        "software_gpu": None,
        "gl": {"renderer": "Adreno", "error": None},
        "cameras": [{"source": "0", "name": "Front", "error": None}],
    }


@pytest.fixture(autouse=True)
def complete(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(extras, "installed", lambda package: True)


def said(report) -> list[tuple[str, str, str]]:
    return [(str(each.level), each.what, each.line) for each in diagnose(report)]


def test_where_nothing_is_missing_all_is_ok(report):
    assert {level for level, _, _ in said(report)} == {"ok"}


def test_a_broken_package_is_said_instead_of_a_missing_driver(report):
    report["gpu"], report["opencl_error"] = None, f"{BROKEN}, so that: AttributeError: cv2"
    level, what, line = said(report)[0]
    assert (level, "AttributeError: cv2" in what) == ("missing", True)
    assert "pip install" in line
    assert "pocl" not in line


def test_packages_that_must_be_compiled_are_said_with_what_that_takes(report):
    report["gl"] = {"renderer": None, "error": "OpenGL failed: No module named 'glcontext'"}
    level, what, line = said(report)[0]
    assert (level, "compiled" in what) == ("missing", True)
    assert "build-essential python3-dev libx11-dev" in line


def test_without_opencl_it_says_why_and_what_to_type(report):
    report["gpu"], report["opencl_error"] = None, "no platform"
    level, what, line = said(report)[0]
    assert (level, "no platform" in what) == ("missing", True)
    assert "pocl-opencl-icd" in line
    assert "heimdall-ar[cpu]" in line


def test_without_opengl_it_says_why_and_what_to_type(report):
    report["gl"] = {"renderer": None, "error": "no EGL"}
    level, what, line = said(report)[0]
    assert (level, "no EGL" in what, "libegl1" in line) == ("missing", True, True)


def test_a_camera_that_may_not_be_opened_names_the_group(report):
    report["cameras"] = [{"source": "0", "name": "Front", "error": "Permission denied"}]
    level, _, line = said(report)[0]
    assert (level, "video" in line) == ("missing", True)


def test_cpu_cores_that_play_the_gpu_are_a_note(report):
    report["software_gpu"] = {"realtime": True}
    assert [level for level, what, _ in said(report) if "CPU cores play one" in what] == ["note"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can run without a display")
def test_without_a_display_it_names_the_browser(report, monkeypatch):
    monkeypatch.delenv("DISPLAY")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert any("--serve" in line for _, _, line in said(report))


def test_a_cache_that_cannot_be_made_is_missing(report, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file" / "below"))
    level, what, line = said(report)[0]
    assert (level, "is not used: it cannot be written" in what) == ("missing", True)
    assert "HEIMDALL_CACHE" in line


def test_extras_that_are_not_installed_are_notes_with_the_line_to_type(report, monkeypatch):
    monkeypatch.setattr(extras, "installed", lambda package: package != "torch")
    (note,) = (each for each in said(report) if each[0] == "note")
    assert note[2] == extras.line("learn")


def test_every_extra_of_the_package_that_users_want_is_known():
    text = (paths.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = text.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    names = {line.partition(" = ")[0] for line in declared.splitlines() if " = [" in line}
    assert names - {"dev", "docs", "cpu"} == set(extras.EXTRAS)
