"""The memory of one job on the device, and kernels whose arguments point into it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyopencl as cl

from heimdall.engine.base import State
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.device import explain, finish
from heimdall.engine.opencl.launch import Arg, Ref
from heimdall.engine.opencl.placed import Storage
from heimdall.engine.opencl.planning import Bound
from heimdall.engine.opencl.program import set_arguments
from heimdall.engine.opencl.slices import SLICE_NS, Size, cut, pieces_for, share_out

if TYPE_CHECKING:
    from heimdall.engine.opencl.engine import OpenCLEngine


class Enqueue(NamedTuple):
    """A kernel with its arguments set, over a range of work-items."""

    kernel: cl.Kernel
    size: Size
    local: Size
    offset: Size | None = None


class OpenCLState(State):
    """The buffers of one job, and what is enqueued for each op.

    A kernel object an op and job: its arguments are set once, and an enqueue costs 1-3 us.
    Raises DeviceError when the device has no room for it.
    """

    def __init__(self, engine: OpenCLEngine, compiled: Compiled) -> None:
        self._queue, self._times_ops = engine.queue, engine.times_ops
        self._compiled = compiled  # kernels do not keep the buffers they are bound to
        self.position = 0
        self.host: dict[str, np.ndarray] = {}
        self.events: dict[int, list[cl.Event]] = {}
        self.in_flight: list[cl.Event] = []  # the last launch of what nobody has waited for yet
        self.fallback_ns: dict[int, int] = {}
        self._kept: dict[int, np.ndarray] = {}
        allocate = engine.transfer.allocate
        self._dtype = compiled.dtype
        try:
            self._buffers: dict[Storage | None, cl.Buffer] = {None: allocate(compiled.arena_floats)}
            self._buffers |= {each: allocate(each.floats) for each in compiled.dedicated}
            self._regions: dict[tuple[int, int], cl.Buffer] = {}
            self._whole = [
                [
                    launch
                    for bound, constants in zip(op, uploaded, strict=True)
                    for launch in self._bind(engine, bound, constants)
                ]
                for op, uploaded in zip(compiled.bound, compiled.constants, strict=True)
            ]
            self._zero()
        except cl.Error as error:
            raise explain(error, f"allocating a job of {compiled.graph.name}") from error
        self._first_runs: list[list[cl.Event]] = []
        self.enqueues: list[list[Enqueue]] = []
        self._cut()

    def buffer(self, storage: Storage) -> cl.Buffer:
        """Where a storage lives."""
        return self._buffers[storage if storage.dedicated else None]

    def kept(self, order: int, floats: int) -> np.ndarray:
        """Memory for an input of a fallback op, the same for each op: new memory costs a page fault
        every 4 KB, half as much as to copy 6 MB."""
        known = self._kept.get(order)
        if known is None or len(known) < floats:
            known = self._kept[order] = np.empty(floats, np.float32)
        return known

    def _region(self, scratch: Storage) -> cl.Buffer:
        """Kernels find tensors by offsets into the arena, but their scratch memory by itself.

        It is kept as long as the kernels: to set an argument does not retain what is set (OpenCL
        3.0 API, 5.9.2), and drivers that use the object only when the kernel runs find it gone.
        """
        size = self._dtype.itemsize
        place = size * scratch.offset, size * scratch.floats
        if place not in self._regions:
            self._regions[place] = self._buffers[None].get_sub_region(*place)
        return self._regions[place]

    def rewind(self) -> None:
        """Forget the last inference."""
        self.host.clear()
        self.events.clear()
        self.fallback_ns.clear()
        self.position = 0

    def warm_up(self, on_layer: Callable[[], None], *, wait: bool) -> None:
        """Enqueue every layer once, on zeros; ``settle`` must follow.

        ``wait`` for each: where drivers compile now, that is what takes the time. Else the
        device works through them while the host prepares the next network.
        """
        for launches in self._whole:
            events = [cl.enqueue_nd_range_kernel(self._queue, *launch) for launch in launches]
            self._first_runs.append(events)
            if wait and events:
                events[-1].wait()
            on_layer()
        self._queue.flush()

    def settle(self) -> None:
        """Wait for ``warm_up``, and cut the launches that took too long. Tensors are zeros then."""
        runs, self._first_runs = self._first_runs, []
        if not runs:
            return
        for launches, events, taken in zip(self._whole, runs, self._compiled.taken_ns, strict=True):
            for index, (launch, event) in enumerate(zip(launches, events, strict=True)):
                elapsed_ns = self._taken_ns(launch, event)
                if elapsed_ns > SLICE_NS / 2:  # it may have been disturbed
                    again = cl.enqueue_nd_range_kernel(self._queue, *launch)
                    elapsed_ns = min(elapsed_ns, self._taken_ns(launch, again))
                taken[index] = max(elapsed_ns, 1)
        self._compiled.is_warm = True
        self._cut()
        self._zero()

    def _taken_ns(self, launch: Enqueue, event: cl.Event) -> int:
        """What a launch took on the device; where that has no clock, once more by the host's."""
        event.wait()
        if self._times_ops:
            return int(event.profile.end - event.profile.start)
        began = time.perf_counter_ns()
        cl.enqueue_nd_range_kernel(self._queue, *launch).wait()
        return time.perf_counter_ns() - began

    def __del__(self) -> None:
        """Memory must not go while the device still works on it (see ``warm_up``, and a run that
        an error has ended): a driver keeps buffers, but not the host's memory behind them."""
        if getattr(self, "_first_runs", None) or getattr(self, "in_flight", None):
            with contextlib.suppress(cl.Error):
                finish(self._queue)

    def _cut(self) -> None:
        compiled = self._compiled
        layers = zip(self._whole, compiled.taken_ns, compiled.ops_of, strict=True)
        self.enqueues = [op for layer in layers for op in _ops_of(*layer)]

    def _bind(
        self, engine: OpenCLEngine, bound: Bound, constants: dict[str, cl.Buffer]
    ) -> list[Enqueue]:
        def resolve(arg: Arg) -> Any:
            if not isinstance(arg, Ref):
                return arg
            if arg.name in constants:
                return constants[arg.name]
            storage = bound.storages[arg.name]
            return self._region(storage) if arg.name == "scratch" else self.buffer(storage)

        made = []
        for launch in bound.plan.launches:
            kernel = engine.programs.kernel(launch.kernel)
            set_arguments(kernel, [resolve(arg) for arg in launch.args])
            made.append(Enqueue(kernel, launch.global_size, launch.local_size))
        return made

    def _zero(self) -> None:
        for buffer in self._buffers.values():
            cl.enqueue_fill_buffer(self._queue, buffer, self._dtype.type(0), 0, buffer.size)
        finish(self._queue)


def _ops_of(launches: list[Enqueue], taken_ns: list[int], ops: int) -> list[list[Enqueue]]:
    """What to enqueue for each op of a layer, given what its launches take."""
    made: list[Enqueue] = []
    times: list[float] = []
    for launch, elapsed_ns in zip(launches, taken_ns, strict=True):
        reached = ceil(elapsed_ns * ops / sum(taken_ns))  # the most ops it is a part of
        pieces = reached * ceil(pieces_for(elapsed_ns) / reached)
        parts = cut(launch.size, launch.local, pieces)
        made += [launch._replace(size=size, offset=offset) for offset, size in parts]
        times += [elapsed_ns / len(parts)] * len(parts)
    return share_out(made, times, ops)
