"""Shaders that a driver has compiled and kept, so that no frame waits for its compiler.

llvmpipe compiles when something is drawn for the first time: 50 to 90 ms, on the thread that draws.
It keeps what it compiled in Mesa's folder for this machine, where other processes find it. So a
model that is asked for while frames are drawn is first drawn by a process of its own
(`heimdall.render.rehearsing`); once for each file, driver and version of our shaders.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from functools import cache
from pathlib import Path

from heimdall.errors import ConfigError, DeviceError
from heimdall.render.programs import SHADERS
from heimdall.system import python
from heimdall.system.child import STOPPED, watch
from heimdall.system.paths import cache_dir, replace_file

log = logging.getLogger(__name__)
_WHERE = ("MESA_SHADER_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "HEIMDALL_GL")  # Mesa's folder, ours


def have_kept(model: Path, driver: str, stop: threading.Event) -> None:
    """Have the driver keep the shaders of a model, unless it does; ends early once ``stop`` is set.
    Without success nothing is lost but time: they are compiled in frames."""
    try:
        place = cache_dir() / "shaders" / _name(model, driver)
    except (ConfigError, OSError):
        return
    if stop.is_set() or place.exists() or os.environ.get("MESA_SHADER_CACHE_DISABLE"):
        return
    command = python.command("heimdall.render.rehearsing", str(model))
    try:
        outcome = watch(command, stop=stop, yields=True)
        if not outcome.ended:
            replace_file(place, b"")
        elif outcome.ended != STOPPED:
            log.info("%s: its shaders are compiled in frames: %s", model.name, outcome.ended)
    except (DeviceError, OSError) as error:
        log.info("%s: its shaders are compiled in frames: %s", model.name, error)


def _name(model: Path, driver: str) -> str:
    digest = hashlib.sha256(model.read_bytes())
    where = "\0".join(os.environ.get(name, "") for name in _WHERE)
    digest.update("\0".join((driver, where, _ours())).encode())
    return digest.hexdigest()[:32]


@cache
def _ours() -> str:
    """Changes with our shaders."""
    files = sorted(SHADERS.iterdir())
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
