"""An OpenCL driver with hints for priorities: this machine's, behind a layer of the loader that
takes them (standin_driver.c)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

_SOURCE = Path(__file__).with_suffix(".c")


@dataclass(frozen=True)
class StandinDriver:
    """``environment``: of a process that is to have it."""

    environment: dict[str, str]
    log: Path

    @property
    def asked(self) -> list[str]:
        """What priorities were asked for, as ``queue 4``, in turn."""
        return self.log.read_text().splitlines() if self.log.is_file() else []


def standin_driver(folder: Path, hints: str, *, refuses: bool = False) -> StandinDriver:
    """A driver whose devices have the extensions ``hints``, but perhaps in name alone. Skips the
    test where none can be made."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("no C compiler to make a driver with")
    library = folder / "standin.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
    log = folder / "asked"
    environment = {
        **os.environ,
        "OPENCL_LAYERS": str(library),
        "STANDIN_HINTS": hints,
        "STANDIN_LOG": str(log),
        "HEIMDALL_CACHE": str(folder / "cache"),
        "HEIMDALL_REALTIME": "0",
    }
    if refuses:
        environment["STANDIN_REFUSES"] = "1"
    return StandinDriver(environment, log)
