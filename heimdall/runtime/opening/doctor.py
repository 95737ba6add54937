"""What is missing on this machine, in plain words, with the line to type: ``heimdall doctor``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heimdall.errors import ConfigError
from heimdall.system import extras, paths
from heimdall.system.child import BROKEN
from heimdall.vocabulary.enums import Name

COMPILED = ("moderngl", "glcontext")  # on ARM Linux
COMPILER = "build-essential python3-dev libx11-dev"
LEAST_FREE_MB = 500  # a cache of four networks' kernels and profiles takes about 100


class Level(Name):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"  # it works, and could do more
    MISSING = "missing"  # apps do not run as they should


@dataclass(frozen=True)
class Finding:
    """One thing about this machine. ``line``: what to type to mend it; empty: nothing."""

    level: Level
    what: str
    line: str = ""


def diagnose(report: Mapping[str, Any]) -> list[Finding]:
    """What ``list_devices`` has found, judged; what matters most comes first."""
    found = [*_gpu(report), *_gl(report["gl"]), *_cameras(report["cameras"]), *_screen()]
    found += [*_cache(), *_extras()]
    order = (Level.MISSING, Level.NOTE, Level.OK)
    return sorted(found, key=lambda each: order.index(each.level))


def _gpu(report: Mapping[str, Any]) -> Iterator[Finding]:
    gpu, software = report["gpu"], report["software_gpu"]
    if gpu is None:
        why = report["opencl_error"] or "no driver is installed"
        if BROKEN in why:
            again = f"{sys.executable} -m pip install --upgrade --force-reinstall heimdall-ar"
            yield Finding(Level.MISSING, why, again)
            return
        yield Finding(
            Level.MISSING,
            f"OpenCL does not work, which networks on the GPU need: {why}",
            _packages("pocl-opencl-icd") + f"  (without root: {extras.line('cpu')})",
        )
        return
    yield Finding(Level.OK, f"networks run on {gpu['name']} (OpenCL by {gpu['platform']})")
    if report["opencl_error"]:
        yield Finding(Level.NOTE, f"a driver was left out: {report['opencl_error']}")
    if software is None:
        return
    yield Finding(
        Level.NOTE,
        "there is no GPU with an OpenCL driver, so CPU cores play one; if this machine has a GPU, "
        "install its maker's OpenCL driver",
    )
    if not software["realtime"] and sys.platform == "linux":
        yield Finding(
            Level.NOTE,
            "the software GPU is time-sliced: frames are steadier in real time",
            "ulimit -r 1  (as root, or with CAP_SYS_NICE)",
        )


def _gl(gl: Mapping[str, Any]) -> Iterator[Finding]:
    if gl["error"] and any(name in gl["error"] for name in COMPILED):
        yield Finding(
            Level.MISSING,
            f"OpenGL's packages have no wheels for ARM Linux, and must be compiled: {gl['error']}",
            _packages(COMPILER) + f"  (then: {sys.executable} -m pip install {' '.join(COMPILED)})",
        )
    elif gl["error"]:
        yield Finding(
            Level.MISSING,
            f"OpenGL does not work, which pictures are drawn with: {gl['error']}",
            _packages("libegl1 libgl1 libgl1-mesa-dri"),
        )
    else:
        yield Finding(Level.OK, f"pictures are drawn by {gl['renderer']}")


def _cameras(cameras: list[dict[str, Any]]) -> Iterator[Finding]:
    if not cameras:
        yield Finding(
            Level.NOTE,
            "there is no camera: apps play their clips",
            "heimdall run shopping --source FILE_OR_URL",
        )
    for camera in cameras:
        if camera["error"]:
            denied = "ermission" in camera["error"]
            yield Finding(
                Level.MISSING,
                f"camera {camera['source']} ({camera['name']}): {camera['error']}",
                "sudo usermod -aG video $USER  (then log in again)" if denied else "",
            )
        else:
            yield Finding(Level.OK, f"camera {camera['source']}: {camera['name']}")


def _screen() -> Iterator[Finding]:
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not shown:
        yield Finding(
            Level.NOTE,
            "there is no display: run without a window, or show the picture in a browser",
            "heimdall run shopping --serve 8080",
        )


def _cache() -> Iterator[Finding]:
    try:
        folder = paths.cache_dir()
    except ConfigError as error:
        yield Finding(Level.MISSING, str(error), "export HEIMDALL_CACHE=FOLDER")
        return
    if why := paths.why_no_cache():
        what = f"{why}; every start is a first one"
        yield Finding(Level.MISSING, what, "export HEIMDALL_CACHE=FOLDER")
        return
    free_mb = shutil.disk_usage(folder).free // 2**20
    if free_mb < LEAST_FREE_MB:
        what = f"only {free_mb} MB are free for the cache in {folder}"
        yield Finding(Level.MISSING, what, "export HEIMDALL_CACHE=FOLDER")


def _extras() -> Iterator[Finding]:
    for extra, (package, purpose) in extras.EXTRAS.items():
        if not extras.installed(package):
            yield Finding(Level.NOTE, f"not installed: {purpose}", extras.line(extra))


def _packages(debian: str) -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {debian}"
    return f"install what Debian calls {debian}"
