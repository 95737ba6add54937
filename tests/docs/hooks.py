"""scripts/site_hook.py as a module: it is no part of a package."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

HOOK = Path(__file__).resolve().parents[2] / "scripts" / "site_hook.py"


@cache
def site_hook() -> Any:
    """The hook, loaded once."""
    spec = importlib.util.spec_from_file_location("site_hook", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
