"""Many launches of a job in one enqueue, by the kernel that walks over them (kernels/walk.cl)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
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
_PIECE_BYTES = 16  # four int32

Tiles = tuple[int, int, int]  # row in the table, first tile, end


class _Walker:
    """A kernel object of its own, on one queue. What it shall do is set before each enqueue, which
    copies it; what cores count of a launch is cleared by the next one."""

    def __init__(
        self, queue: cl.CommandQueue, kernel: cl.Kernel, bound: Sequence[cl.Buffer], counted: int
    ) -> None:
        """``bound``: all that it takes but its counters, of which there are ``counted``, and the
        pieces last."""
        size = 2 * _LINE_BYTES * counted
        counters = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size)
        cl.enqueue_fill_buffer(queue, counters, np.zeros(1, np.int32), 0, size)
        args: list[cl.Buffer | np.generic] = [
            *bound,
            counters,
            np.int32(bound[-1].size // _PIECE_BYTES),
        ]
        set_arguments(kernel, args)
        self._queue, self._kernel, self._task = queue, kernel, len(args)
        self._held = args  # setting an argument does not keep it (OpenCL 3.0 API, 5.9.2)
        self._before, self._set = (0, 0), 0

    def run(self, first: int, end: int, units: int) -> cl.Event:
        """Enqueue pieces ``[first, end)`` for so many cores."""
        task = np.array([first, end, *self._before, self._set, 0, 0, 0], np.int32)
        self._kernel.set_arg(self._task, task)
        self._before, self._set = (first, end), 1 - self._set
        return cl.enqueue_nd_range_kernel(self._queue, self._kernel, (units,), (1,))


class Walked(Work):
    """One kernel object a job, and one more for each other queue that it gets to."""

    def __init__(self, engine: Opened, compiled: Compiled, walk: Walk, buffers: Buffers) -> None:
        self._queue, self._compiled, self._walk = engine.queue, compiled, walk
        self._programs, self._units = engine.programs, engine.traits.compute_units
        self._whole = [(s.row, 0, s.tiles) for layer in walk.strides for s in layer]
        self._firsts = list(accumulate((len(layer) for layer in walk.strides), initial=0))
        self._kernels: dict[cl.CommandQueue, cl.Kernel] = {}
        self._bound = [buffers[None], walk.weights, *(buffers[s] for s in walk.dedicated)]
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
        listed = cl.Buffer(self._queue.context, flags, hostbuf=np.array(pieces, np.int32))
        self._args = [*self._bound, self._walk.table, listed]
        self._counted = len(pieces) if self._units > 1 else 1
        self._walkers: dict[cl.CommandQueue, _Walker] = {}
        self._walker(self._queue)

    def _walker(self, queue: cl.CommandQueue) -> _Walker:
        if queue not in self._walkers:
            if queue not in self._kernels:
                self._kernels[queue] = self._programs.kernel(self._walk.kernel)
            self._walkers[queue] = _Walker(queue, self._kernels[queue], self._args, self._counted)
        return self._walkers[queue]

    def try_launch(self, layer: int, launch: int) -> cl.Event:
        first = self._firsts[layer] + launch
        return self._walker(self._queue).run(first, first + 1, self._units)

    @property
    def counts(self) -> list[int]:
        return [end - start for start, end in zip(self._ends, self._ends[1:], strict=False)]

    def enqueue(self, queue: cl.CommandQueue, start: int, end: int, beside: int) -> list[Enqueued]:
        """As few enqueues as may be, none of which takes long; an op has its own where it is all
        that is asked for. Each queue gets its share of the cores: none waits for another one."""
        events, first, last = [], self._ends[start], self._ends[end]
        walker, units = self._walker(queue), max(1, self._units // (1 + beside))
        while first < last:
            limit = self._until_ns[first] + _BATCH_NS
            until = min(last, max(first + 1, bisect_right(self._until_ns, limit) - 1))
            events.append(walker.run(first, until, units))
            first = until
        return [((start, end), events)]


def _split(row: int, tiles: int, pieces: int) -> list[Tiles]:
    count = min(pieces, tiles)
    return [(row, tiles * i // count, tiles * (i + 1) // count) for i in range(count)]
