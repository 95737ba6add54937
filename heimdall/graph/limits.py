"""How large a model may be: asked for each tensor before anything of its size is allocated.

A model that keeps to these bounds takes at most ``CONSTANT_BYTES`` for its weights (twice while
it is read) and ``machine_bytes()`` for what is alive at once while it runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

TENSOR_BYTES = 2**31 - 1  # offsets of kernels, and a protobuf message, are 32-bit integers
CONSTANT_BYTES = 2**31 - 1  # of all weights together, as one message holds them


@cache
def machine_bytes() -> int:
    """The memory of this machine."""
    import psutil

    return int(psutil.virtual_memory().total)


def count(shape: Sequence[int]) -> int:
    """Elements of a tensor, in integers that do not overflow."""
    return math.prod(int(size) for size in shape)


def say_bytes(size: int) -> str:
    """A size for people: ``1,024 MB``."""
    return f"{size / 2**20:,.0f} MB" if size >= 2**20 else f"{size:,} bytes"
