"""Where files are: apps, assets and profiles beside the package (in a wheel: inside it), and
caches; and how a file is replaced."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from pathlib import Path

import platformdirs

from heimdall.errors import ConfigError

_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED = _PACKAGE / "_bundled"
ROOT = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

APPS = ROOT / "apps"
ASSETS = ROOT / "assets"
PROFILES = ROOT / "profiles"


def bundled(name: str | Path, folder: str) -> Path:
    """A file as it is called; where there is none, the one of that name that comes along, in this
    folder of the assets."""
    found, ours = Path(name), ASSETS / folder / name
    return ours if not found.exists() and ours.is_file() else found


def cache_dir() -> Path:
    """The user's cache folder for profiles, tuned kernels and optimised graphs.

    ``HEIMDALL_CACHE`` overrides it (the tests use a temporary one). Raises ConfigError where
    there can be no such folder.
    """
    chosen = os.environ.get("HEIMDALL_CACHE")
    path = Path(chosen or platformdirs.user_cache_dir("heimdall", appauthor=False))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"there can be no cache folder {path} ({error.strerror or error}); "
            "set HEIMDALL_CACHE to a folder that can be written"
        ) from error
    return path


def slug(device: str) -> str:
    """A device's name as a part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:80] or "device"


def replace_file(path: Path, content: bytes) -> None:
    """Write beside ``path`` and rename: readers see the old file or the whole new one.

    Makes the folder. Raises OSError; the old file is untouched then.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
