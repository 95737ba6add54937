"""How many handles (files, sockets) of this process one part of it may take."""

from __future__ import annotations

import sys

_SHARE = 8  # of all that the system lets the process have


def affordable(wanted: int) -> int:
    """So many of those that are ``wanted`` that files of the rest of the program still open: an
    eighth of all, and at least one. Windows has no such bound."""
    if sys.platform == "win32":
        return wanted
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if most == resource.RLIM_INFINITY else max(1, min(wanted, most // _SHARE))
