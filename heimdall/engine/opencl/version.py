"""The version of this engine: what was measured or found with another one has expired."""

from __future__ import annotations

import contextlib
import hashlib
from functools import cache
from pathlib import Path

# What a trial of a device uses: a verdict that was made with others of them has expired.
_PACKAGES = ("pyopencl", "numpy", "onnx", "onnxruntime", "opencv-python")


@cache
def packages() -> str:
    """The versions of the packages with which devices and drivers are tried."""
    import importlib.metadata  # here: it takes a while

    found = []
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


@cache
def version() -> str:
    """Changes with every edit of this package's code and kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".cl"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
