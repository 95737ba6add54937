"""The memory of one job on the device, and kernels whose arguments point into it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyopencl as cl

from heimdall.engine.network import State
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.device import explaining, finish
from heimdall.engine.opencl.kept import HeldTensor
from heimdall.engine.opencl.launched import Launched
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.placed import Storage
from heimdall.engine.opencl.slices import SLICE_NS
from heimdall.engine.opencl.walked import Walked
from heimdall.engine.opencl.work import Work
from heimdall.system import forks


class OpenCLState(State):
    """The buffers of one job, and the work that is bound to them.

    Raises DeviceError when the device has no room for it.
    """

    def __init__(self, engine: Opened, compiled: Compiled) -> None:
        super().__init__()
        self.progress.begin()  # there is memory to run on, whatever it holds
        self._queue, self._times_ops = engine.queue, engine.times_ops
        self._engine = engine
        self._compiled = compiled  # kernels do not keep the buffers they are bound to
        self.host: dict[str, np.ndarray] = {}
        self.events: dict[tuple[int, int], list[cl.Event]] = {}  # by range of ops
        self.written = False  # True once it may hold something of an inference
        self.in_flight = False  # True while work may run that was not waited for
        self.fallback_ns: dict[int, int] = {}
        self._kept: dict[int, np.ndarray] = {}
        self.held: dict[str, HeldTensor] = {}  # its caches, as they were handed out last
        transfer = engine.transfer
        with explaining(f"allocating a job of {compiled.graph.name}"):
            self._buffers: dict[Storage | None, cl.Buffer] = {
                None: transfer.allocate(compiled.arena_floats),
                **{each: transfer.of(each).allocate(each.floats) for each in compiled.dedicated},
            }
            self.work = self._bound(engine)
            self._zero()
        self._first_runs: list[list[cl.Event]] = []

    def _bound(self, engine: Opened) -> Work:
        """The work on these buffers."""
        compiled, walk = self._compiled, self._compiled.walk
        if walk:
            return Walked(engine, compiled, walk, self._buffers)
        return Launched(engine, compiled, self._buffers)

    def adopt(self, buffers: Mapping[Storage | None, cl.Buffer]) -> None:
        """Have these for the job's own, instead of what it had there."""
        self._buffers.update(buffers)
        with explaining(f"binding a job of {self._compiled.graph.name}"):
            self.work = self._bound(self._engine)

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

    def rewind(self) -> None:
        """Forget the last inference."""
        self.host.clear()
        self.events.clear()
        self.fallback_ns.clear()
        self.progress.begin()

    def warm_up(self, on_layer: Callable[[], None], *, wait: bool) -> None:
        """Enqueue every layer once, on zeros; ``settle`` must follow.

        ``wait`` for each: where drivers compile now, that is what takes the time. Else the
        device works through them while the host prepares the next network.
        """
        for layer, taken in enumerate(self._compiled.taken_ns):
            events = [self.work.try_launch(layer, launch) for launch in range(len(taken))]
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
        for layer, (events, taken) in enumerate(zip(runs, self._compiled.taken_ns, strict=True)):
            for launch, event in enumerate(events):
                again = partial(self.work.try_launch, layer, launch)
                elapsed_ns = self._taken_ns(event, again)
                if elapsed_ns > SLICE_NS / 2:  # it may have been disturbed
                    elapsed_ns = min(elapsed_ns, self._taken_ns(again(), again))
                taken[launch] = max(elapsed_ns, 1)
        self._compiled.is_warm = True
        self.work.cut()
        self._zero()

    def _taken_ns(self, event: cl.Event, again: Callable[[], cl.Event]) -> int:
        """What a launch took on the device; where that has no clock, once more by the host's."""
        event.wait()
        if self._times_ops:
            return int(event.profile.end - event.profile.start)
        began = time.perf_counter_ns()
        again().wait()
        return time.perf_counter_ns() - began

    def enqueue(
        self, start: int, end: int, queue: cl.CommandQueue | None = None, beside: int = 0
    ) -> list[cl.Event]:
        """Enqueue ops ``[start, end)``; the first and the last event, if there are any. On the
        engine's queue, or on another one with work on ``beside`` others at the same time."""
        edges: list[cl.Event] = []
        queue = queue or self._queue
        for ops, events in self.work.enqueue(queue, start, end, beside):
            if events:
                self.events[ops] = events
                edges = [edges[0] if edges else events[0], events[-1]]
        if edges:
            queue.flush()
        return edges

    def __del__(self) -> None:
        """Memory must not go while the device still works on it (see ``warm_up``, and a run that
        an error has ended): a driver keeps buffers, but not the host's memory behind them."""
        if forks.forked():
            return
        if getattr(self, "_first_runs", None) or getattr(self, "in_flight", False):
            with contextlib.suppress(cl.Error):
                finish(self._queue)

    def _zero(self) -> None:
        zero = self._compiled.dtype.type(0)
        for buffer in self._buffers.values():
            cl.enqueue_fill_buffer(self._queue, buffer, zero, 0, buffer.size)
        finish(self._queue)
