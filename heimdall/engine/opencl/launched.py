"""A kernel object for each launch of a job: what is enqueued, op by op, where nothing walks."""

from __future__ import annotations

from typing import NamedTuple

import pyopencl as cl

from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.planning import Bound
from heimdall.engine.opencl.program import set_arguments
from heimdall.engine.opencl.slices import Size, cut, shares
from heimdall.engine.opencl.work import Buffers, Enqueued, Work


class Enqueue(NamedTuple):
    """A kernel with its arguments set, over a range of work-items."""

    kernel: cl.Kernel
    size: Size
    local: Size
    offset: Size | None = None


class Launched(Work):
    """Arguments are set once, and an enqueue costs 1-3 us."""

    def __init__(self, engine: Opened, compiled: Compiled, buffers: Buffers) -> None:
        self._queue, self._compiled, self._buffers = engine.queue, compiled, buffers
        self._whole = [
            [
                launch
                for bound, constants in zip(op, uploaded, strict=True)
                for launch in self._bind(engine, bound, constants)
            ]
            for op, uploaded in zip(compiled.bound, compiled.constants, strict=True)
        ]
        self._enqueues: list[list[Enqueue]] = []
        self.cut()

    def _bind(self, engine: Opened, bound: Bound, constants: dict[str, cl.Buffer]) -> list[Enqueue]:
        def buffer(name: str) -> cl.Buffer:
            if name in constants:
                return constants[name]
            storage = bound.storages[name]
            return self._buffers[storage if storage.dedicated else None]

        scratch, made = bound.scratch_bytes(self._compiled.dtype.itemsize), []
        for launch in bound.plan.launches:
            kernel = engine.programs.kernel(launch.kernel)
            set_arguments(kernel, launch.bound(buffer, scratch))
            made.append(Enqueue(kernel, launch.global_size, launch.local_size))
        return made

    def try_launch(self, layer: int, launch: int) -> cl.Event:
        return cl.enqueue_nd_range_kernel(self._queue, *self._whole[layer][launch])

    def cut(self) -> None:
        def pieces_of(launches: list[Enqueue], index: int, pieces: int) -> list[Enqueue]:
            launch = launches[index]
            parts = cut(launch.size, launch.local, pieces)
            return [launch._replace(size=size, offset=offset) for offset, size in parts]

        compiled = self._compiled
        layers = zip(self._whole, compiled.taken_ns, compiled.ops_of, strict=True)
        self._enqueues = [
            [enqueue for enqueue, _ in op]
            for launches, taken_ns, ops in layers
            for op in shares(taken_ns, ops, lambda *each, of=launches: pieces_of(of, *each))
        ]

    @property
    def counts(self) -> list[int]:
        return [len(op) for op in self._enqueues]

    def enqueue(self, queue: cl.CommandQueue, start: int, end: int, beside: int) -> list[Enqueued]:
        enqueue = cl.enqueue_nd_range_kernel
        return [
            ((op, op + 1), [enqueue(queue, *launch) for launch in self._enqueues[op]])
            for op in range(start, end)
        ]
