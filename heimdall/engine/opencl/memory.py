"""Places in one arena for storages that do not live at the same time.

A tight arena keeps activations in the caches: centerface went from 21.8 to 19.4 ms on one core.
"""

from __future__ import annotations

from collections.abc import Sequence

from heimdall.engine.opencl.placed import Storage


def plan_arena(storages: Sequence[Storage]) -> int:
    """Set ``offset`` of every live storage that is not dedicated; return the arena's floats.

    Largest first, each at the lowest offset that is free during its whole life: within a few
    percent of the lower bound on the bundled networks.
    """
    placed: list[Storage] = []
    used = [item for item in storages if item.first is not None and not item.dedicated]
    for item in sorted(used, key=lambda item: (-item.floats, item.first)):
        item.offset = _lowest_gap(item, [other for other in placed if _overlap(item, other)])
        placed.append(item)
    return max((item.offset + item.floats for item in placed), default=0)


def _overlap(a: Storage, b: Storage) -> bool:
    assert a.first is not None and b.first is not None  # noqa: PT018
    return a.first <= b.last and b.first <= a.last


def _lowest_gap(item: Storage, neighbours: list[Storage]) -> int:
    offset = 0
    for other in sorted(neighbours, key=lambda other: other.offset):
        if other.offset - offset >= item.floats:
            break
        offset = max(offset, other.offset + other.floats)
    return offset


def needs_clearing(item: Storage, storages: Sequence[Storage]) -> bool:
    """True when the zeros in the halo are overwritten by others between two runs.

    Storages that are never cleared were zeroed when the state was made.
    """
    if item.picture is None or not any(item.halo) or item.dedicated or item.first is None:
        return False
    for other in storages:
        if other is item or other.dedicated or other.first is None:
            continue
        apart = (
            other.offset >= item.offset + item.floats or item.offset >= other.offset + other.floats
        )
        same = other.layout == item.layout and not other.filled
        if not apart and not same:
            return True
    return False
