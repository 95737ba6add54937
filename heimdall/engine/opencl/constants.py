"""Constants of a network as they lie on a device: weights, index tables and the like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyopencl as cl

LINE = 64  # bytes; places in a buffer of many constants are counted in these
_SMALL_BYTES = 4096  # constants up to this size are index tables and the like, which repeat

Key = tuple[str, bytes]


def _stored(array: np.ndarray) -> tuple[np.ndarray, Key | None]:
    """An array as kernels read it, and what equal small ones have in common."""
    wanted = array.dtype if array.dtype == np.float16 else np.float32
    data = np.ascontiguousarray(array, np.int32 if array.dtype.kind == "i" else wanted)
    return data, (data.dtype.str, data.tobytes()) if data.nbytes <= _SMALL_BYTES else None


def uploader(context: cl.Context) -> Callable[[np.ndarray], cl.Buffer]:
    """A function that makes buffers, the same one for equal small arrays."""
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    shared: dict[Key, cl.Buffer] = {}

    def upload(array: np.ndarray) -> cl.Buffer:
        data, key = _stored(array)
        if key is None:
            return cl.Buffer(context, flags, hostbuf=data)
        if key not in shared:
            shared[key] = cl.Buffer(context, flags, hostbuf=data)
        return shared[key]

    return upload


@dataclass
class Constants:
    """Arrays one behind the other in one buffer, equal small ones once."""

    size: int = 0  # bytes
    _places: list[tuple[int, np.ndarray]] = field(default_factory=list)
    _known: dict[Key, int] = field(default_factory=dict)

    def add(self, array: np.ndarray) -> int:
        """Its place, in lines."""
        data, key = _stored(array)
        if key in self._known:
            return self._known[key]
        place = self.size // LINE
        self._places.append((self.size, data))
        self.size += -(-data.nbytes // LINE) * LINE
        if key is not None:
            self._known[key] = place
        return place

    def upload(self, queue: cl.CommandQueue) -> cl.Buffer:
        """The buffer, once: the host need not keep the arrays then."""
        buffer = cl.Buffer(queue.context, cl.mem_flags.READ_ONLY, max(1, self.size))
        for place, array in self._places:
            cl.enqueue_copy(queue, buffer, array, dst_offset=place)
        self._places.clear()
        return buffer
