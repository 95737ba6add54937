"""The version of this engine: what was measured or found with another one has expired."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """Changes with every edit of this package's code and kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".cl"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
