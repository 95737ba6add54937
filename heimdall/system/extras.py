"""Packages that only some work needs: they come with an extra of Heimdall's."""

from __future__ import annotations

import importlib.util
import os
import sys

from heimdall.errors import ConfigError

# What each extra is for, and a module that it brings.
EXTRAS = {
    "serve": ("aiohttp", "the picture in a browser, and serving networks"),
    "phone": ("aiortc", "a phone as camera and screen"),
    "virtual-camera": ("pyvirtualcam", "the picture as a camera, for video calls"),
    "hear": ("sounddevice", "a microphone"),
    "model3d": ("DracoPy", "compressed 3-D models, .obj files, environment maps"),
    "lab": ("matplotlib", "charts of the laboratory"),
    "text": ("tokenizers", "language models"),
    "learn": ("torch", "training early exits"),
    "rerun": ("rerun", "kept sessions for Rerun's viewer"),
    "qt": ("PySide6", "a Qt window"),
    "cluster": ("distributed", "simulations on a cluster"),
}


def need(package: str, extra: str, what: str) -> None:
    """Raise ConfigError, with the line to type, where ``package`` is not installed. ``what``
    needs it: a flag or a command. Asked before slow work begins."""
    if not installed(package):
        raise ConfigError(f"{what} needs {package}: {line(extra)}")


def installed(package: str) -> bool:
    """True if a package can be imported."""
    return importlib.util.find_spec(package) is not None


def line(extra: str) -> str:
    """What to type for an extra: with the very Python that runs, whichever that is, it finds
    Heimdall there, from an index, a wheel or a checkout, and adds what is missing."""
    python = os.path.relpath(sys.executable) if sys.executable else "python"
    if python.startswith(os.pardir):
        python = sys.executable
    return f"{python} -m pip install 'heimdall-ar[{extra}]'"
