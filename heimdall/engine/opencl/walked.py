"""Many launches of a job in one enqueue, by the kernel that walks over them (kernels/walk.cl)."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.program import set_arguments
from heimdall.engine.opencl.slices import SLICE_NS, shares
from heimdall.engine.opencl.walk import Walk
from heimdall.engine.opencl.work import Buffers, Enqueued, Work

_BATCH_NS = SLICE_NS // 2  # an urgent job waits for an enqueue to end
_SHARES = 8  # of a piece's tiles a core takes at a time: few, for each costs 0.1 us
_LINE_BYTES = 64  # a line of the cache: see kernels/walk.cl

Tiles = tuple[int, int, int]  # row in the table, first tile, end


class Walked(Work):
    """One kernel object a job. What it shall do is set before each enqueue, which copies it."""

    def __init__(self, engine: Opened, compiled: Compiled, walk: Walk, buffers: Buffers) -> None:
        self._queue, self._compiled, self._walk = engine.queue, compiled, walk
        self._context, self._units = engine.context, engine.traits.compute_units
        self._whole = [(s.row, 0, s.tiles) for layer in walk.strides for s in layer]
        self._firsts = list(accumulate((len(layer) for layer in walk.strides), initial=0))
        self._kernel = engine.programs.kernel(walk.kernel)
        self._bound = [buffers[None], compiled.weights, *(buffers[s] for s in walk.dedicated)]
        self._before, self._set = (0, 0), 0
        self.cut()

    def cut(self) -> None:
        """List the pieces: each launch as a whole, as ``try_launch`` needs it; then those of all
        ops, in order."""
        walk, compiled = self._walk, self._compiled
        pieces, times, ends = list(self._whole), [0.0] * len(self._whole), [len(self._whole)]
        for strides, taken_ns, ops in zip(
            walk.strides, compiled.taken_ns, compiled.ops_of, strict=True
        ):

            def cut_into(launch: int, count: int, of=strides) -> list[Tiles]:  # type: ignore[no-untyped-def]
                return _split(of[launch].row, of[launch].tiles, count)

            for op in shares(taken_ns, ops, cut_into):
                pieces += [tiles for tiles, _ in op]
                times += [elapsed_ns for _, elapsed_ns in op]
                ends.append(len(pieces))
        self._ends, self._until_ns = ends, list(accumulate(times, initial=0.0))
        self._bind([(*each, self._at_a_time(each)) for each in pieces])

    def _at_a_time(self, tiles: Tiles) -> int:
        return max(1, (tiles[2] - tiles[1]) // (_SHARES * self._units))

    def _bind(self, pieces: list[tuple[int, int, int, int]]) -> None:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        listed = cl.Buffer(self._context, flags, hostbuf=np.array(pieces, np.int32))
        size = 2 * _LINE_BYTES * (len(pieces) if self._units > 1 else 1)
        counters = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
        cl.enqueue_fill_buffer(self._queue, counters, np.int32(0), 0, size)
        count = np.int32(len(pieces))
        args = [*self._bound, self._compiled.table, listed, counters, count]
        self._task = len(args)
        self._held = args  # setting an argument does not keep it (OpenCL 3.0 API, 5.9.2)
        set_arguments(self._kernel, args)
        self._before = (0, 0)

    def try_launch(self, layer: int, launch: int) -> cl.Event:
        first = self._firsts[layer] + launch
        return self._run(first, first + 1)

    @property
    def counts(self) -> list[int]:
        return [end - start for start, end in zip(self._ends, self._ends[1:], strict=False)]

    def enqueue(self, start: int, end: int) -> list[Enqueued]:
        """As few enqueues as may be, none of which takes long; an op has its own where it is all
        that is asked for."""
        events, first, last = [], self._ends[start], self._ends[end]
        while first < last:
            limit = self._until_ns[first] + _BATCH_NS
            until = min(last, max(first + 1, bisect_right(self._until_ns, limit) - 1))
            events.append(self._run(first, until))
            first = until
        return [((start, end), events)]

    def _run(self, first: int, end: int) -> cl.Event:
        task = np.array([first, end, *self._before, self._set, 0, 0, 0], np.int32)
        self._kernel.set_arg(self._task, task)
        self._before, self._set = (first, end), 1 - self._set
        return cl.enqueue_nd_range_kernel(self._queue, self._kernel, (self._units,), (1,))


def _split(row: int, tiles: int, pieces: int) -> list[Tiles]:
    count = min(pieces, tiles)
    return [(row, tiles * i // count, tiles * (i + 1) // count) for i in range(count)]
