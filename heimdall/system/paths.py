"""Where files are: apps, assets and profiles beside the package (in a wheel: inside it), and
caches; and how a file is replaced. Who may write to a cache: see ``private``."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from heimdall.errors import ConfigError
from heimdall.system import private

log = logging.getLogger(__name__)

_PACKAGE = Path(__file__).resolve().parents[1]
_BUNDLED = _PACKAGE / "_bundled"
ROOT = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

APPS = ROOT / "apps"
ASSETS = ROOT / "assets"
PROFILES = ROOT / "profiles"

CACHE = "HEIMDALL_CACHE"  # the variable that names another folder; the tests use a temporary one
_STALE_S = 3600.0  # nothing is written for so long: whoever began it is gone

_choosing = threading.Lock()
_caches: dict[str, Path] = {}  # what is used, by what was asked for
_unused: dict[Path, str] = {}  # for a temporary cache, why the user's is not used
_unsaid: set[tuple[Path, int | None]] = set()
_swept: set[Path] = set()


def bundled(name: str | Path, folder: str) -> Path:
    """A file as it is called; where there is none, the one of that name that comes along, in this
    folder of the assets."""
    found, ours = Path(name), ASSETS / folder / name
    return ours if not os.path.exists(found) and os.path.isfile(ours) else found


def cache_dir() -> Path:
    """The user's cache folder for profiles, tuned kernels and optimised graphs; no other user can
    read or write it.

    ``HEIMDALL_CACHE`` overrides it. Where it cannot be used, or others could have changed what is
    in it, a warning says so, and there is a temporary one until this process ends; what is in the
    user's can be read there, too, if only writing failed. Raises ConfigError where there can be
    no such folder either.
    """
    asked = os.environ.get(CACHE) or platformdirs.user_cache_dir("heimdall", appauthor=False)
    with _choosing:
        path = _caches.get(asked)
        if path is None or not path.is_dir():
            path = _caches[asked] = _opened(Path(os.path.realpath(asked)))
    return path


def why_no_cache() -> str:
    """Why a temporary cache is used instead of the user's; empty where it is not."""
    return _unused.get(cache_dir(), "")


def _opened(path: Path) -> Path:
    try:
        private.prepare(path)
        return path
    except private.NotPrivateError as error:
        return _temporary(path, str(error), links=False)
    except OSError as error:
        why = f"it cannot be written ({error.strerror or error}); set {CACHE} to a folder that can"
        return _temporary(path, why, links=True)


def _temporary(path: Path, why: str, *, links: bool) -> Path:
    """A cache instead of ``path`` for this process and its children, ``links``: with what there is
    in that."""
    try:
        made = Path(os.path.realpath(tempfile.mkdtemp(prefix="heimdall-cache-")))
    except OSError as error:
        raise ConfigError(
            f"the cache {path} is not used: {why}. There can be no temporary one either ({error})"
        ) from error
    atexit.register(_remove, made, os.getpid())
    log.warning("the cache %s is not used: %s. Until this ends there is a temporary one", path, why)
    if links:
        _link(path, made)
    _unused[made] = f"the cache {path} is not used: {why}"
    os.environ[CACHE] = str(made)  # children find it, too
    return made


def _remove(made: Path, process_id: int) -> None:
    if process_id == os.getpid():  # a fork that ends takes nothing from its parent
        shutil.rmtree(made, ignore_errors=True)


def _link(path: Path, made: Path) -> None:
    with contextlib.suppress(OSError):  # as far as it can be read
        for file in path.rglob("*"):
            if file.is_file():
                link = made / file.relative_to(path)
                private.make(link.parent)
                link.symlink_to(file)


def slug(device: str) -> str:
    """A device's name as a part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")[:80] or "device"


def replace_file(
    path: Path, content: bytes | Sequence[bytes | memoryview], *, secret: bool = False
) -> None:
    """Write beside ``path`` and rename: readers see the old file or the whole new one, whose
    ``content`` may come in parts.

    Makes the folder. In the cache all is for this user alone, as is what is ``secret``. Raises
    OSError; the old file is untouched then.
    """
    kept = _cache_of(path) is not None
    own = kept or secret
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.part")
    try:
        private.make(path.parent, 0o700 if own else 0o777)
        with open(temporary, "xb", opener=private.opener if own else None) as file:
            file.writelines([content] if isinstance(content, bytes) else content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    if kept:
        _sweep(path.parent)


def say_unsaved(path: Path, error: OSError, otherwise: str) -> None:
    """A warning that a file of the cache cannot be written, and what happens ``otherwise``. Of each
    reason once, for what keeps one from being written keeps most."""
    reason = _cache_of(path) or path.parent, error.errno
    level = logging.DEBUG if reason in _unsaid else logging.WARNING
    _unsaid.add(reason)
    log.log(level, "%s cannot be saved (%s): %s", path, error.strerror or error, otherwise)


def _cache_of(path: Path) -> Path | None:
    """The cache that a file is in; None for one elsewhere."""
    return next((each for each in list(_caches.values()) if path.is_relative_to(each)), None)


def _sweep(folder: Path) -> None:
    """Remove, once, what processes that were killed had begun to write in a folder."""
    if folder in _swept:
        return
    _swept.add(folder)
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):  # another process was quicker
            if time.time() - part.stat().st_mtime > _STALE_S:
                part.unlink()
