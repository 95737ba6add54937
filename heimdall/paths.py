"""Where apps, assets and profiles are: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent
_BUNDLED = _PACKAGE / "_bundled"
ROOT = _BUNDLED if _BUNDLED.is_dir() else _PACKAGE.parent

APPS = ROOT / "apps"
ASSETS = ROOT / "assets"
PROFILES = ROOT / "profiles"


def cache_dir() -> Path:
    """The user's cache folder for profiles, tuned kernels and optimised graphs.

    ``HEIMDALL_CACHE`` overrides it (the tests use a temporary one).
    """
    chosen = os.environ.get("HEIMDALL_CACHE")
    path = Path(chosen or platformdirs.user_cache_dir("heimdall", appauthor=False))
    path.mkdir(parents=True, exist_ok=True)
    return path
