"""A graph on an OpenCL device: planned once, then run in ranges of ops on a state a job."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pyopencl as cl

from heimdall.engine.base import LoadProgress
from heimdall.engine.checks import check_inputs, check_range, check_read
from heimdall.engine.network import LoadedNetwork, Memory
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.device import explain, explaining, finish
from heimdall.engine.opencl.kept import HeldTensor, KeptTensor, is_dense
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.placed import Storage, Stored
from heimdall.engine.opencl.state import OpenCLState
from heimdall.graph.graph import Zeros
from heimdall.system import forks


class OpenCLNetwork(LoadedNetwork[OpenCLState]):
    """See ``heimdall.engine.base.Network``. Made by ``OpenCLEngine.load``."""

    def __init__(
        self,
        engine: Opened,
        compiled: Compiled,
        on_progress: LoadProgress | None = None,
        one_by_one: bool = False,
    ) -> None:
        self.graph = compiled.graph
        self.ops, self.exits = compiled.ops, compiled.exits
        self._engine = engine
        self._compiled = compiled
        self._module, self._edges, self._placer = (
            compiled.module,
            compiled.placer.edges,
            compiled.placer,
        )
        self._values: dict[str, Stored | None] = {}  # of tensors, as far as they were asked for
        spare = self._first_state(on_progress or (lambda done, total: None), one_by_one)
        self._spare = [spare]  # popped by one thread, also without a GIL

    def _first_state(self, on_progress: LoadProgress, one_by_one: bool) -> OpenCLState:
        """Build the kernels, and let every op run once on zeros unless that was done before."""
        kernels = self._compiled.kernels
        total = len(kernels) + len(self._compiled.bound)
        done = count(1)

        def tell() -> None:
            on_progress(next(done), total)

        compiled = one_by_one
        for kernel in kernels:
            compiled |= self._engine.programs.build(kernel)
            tell()
        state = OpenCLState(self._engine, self._compiled)
        if not self._compiled.is_warm:
            with explaining(f"trying the kernels of {self.graph.name}"):
                state.warm_up(tell, wait=compiled)
        return state

    def loaded_in(self, context: cl.Context) -> bool:
        """True if the network runs on queues of that context."""
        return bool(self._engine.context == context)

    @property
    def needs(self) -> Sequence[frozenset[int]]:
        return self._compiled.needs

    @property
    def until_ns(self) -> Sequence[float]:
        """What all ops before each one take, and what all do, by what layers took when a state was
        first made."""
        return self._compiled.until_ns

    @property
    def tuned(self) -> bool:
        return all(map(self._engine.tuning.knows, self._compiled.convolutions))

    @property
    def memory(self) -> Memory:
        return self._compiled.memory

    # --- a job ---

    def new_state(self) -> OpenCLState:
        try:
            spare = self._spare.pop()
        except IndexError:
            return OpenCLState(self._engine, self._compiled)
        with explaining(f"trying the kernels of {self.graph.name}"):
            spare.settle()
        return spare

    def write(self, state: OpenCLState, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(self.graph, inputs)
        state.rewind()
        there = self._adopted(state, inputs)
        state.written = True
        for name, (tensor, chain) in self._edges.heads.items():
            if not chain and (name in there or self._copied(state, name, inputs[name])):
                continue
            array = np.asarray(inputs[name])
            if self._kept_on_host(name):
                state.host[name] = array.copy()
            for op in chain:
                array = op.spec.on_host([array], self._module.shapes[op.output])
            if tensor != name and self._kept_on_host(tensor):
                state.host[tensor] = array.copy()
            value = self._value(tensor)
            if value is not None and value.storage.first is not None:
                self._upload(state, value, array)

    def _adopted(self, state: OpenCLState, inputs: Mapping[str, Any]) -> set[str]:
        """Caches that need not be written: they were written in place, by this job or by another
        one, and are this job's own from now on; or they are zeros, which the device writes."""
        there: set[str] = set()
        held: dict[Storage | None, cl.Buffer] = {}
        for name in self._placer.in_place.values():
            given, value = inputs.get(name), self._value(name)
            if isinstance(given, Zeros) and value is not None:
                self._clear(state, value)
                there.add(name)
            elif isinstance(given, HeldTensor) and value is not None:
                own = state.buffer(value.storage) is given.buffer
                if not own and given.fits(self._engine.transfer, value):
                    held[value.storage] = given.buffer
                    own = True
                if own:
                    there.add(name)
        if held:
            state.adopt(held)
        return there

    def _clear(self, state: OpenCLState, value: Stored) -> None:
        """Outputs show a whole cache: rows of the last conversation must not be among them."""
        if not state.written:
            return
        buffer, zero = state.buffer(value.storage), self._compiled.dtype.type(0)
        with explaining(f"clearing a cache of {self.graph.name}"):
            cl.enqueue_fill_buffer(self._engine.queue, buffer, zero, 0, buffer.size).wait()

    def _copied(self, state: OpenCLState, name: str, given: Any) -> bool:
        """Whether an input was on the device already, and has been copied there."""
        value = self._value(name)
        if not isinstance(given, KeptTensor) or value is None or value.storage.first is None:
            return False
        with explaining(f"writing the state of {self.graph.name}"):
            there = state.buffer(value.storage)
            return not self._kept_on_host(name) and given.copy_to(
                self._engine.transfer, there, value
            )

    def keep(self, state: OpenCLState, names: Collection[str]) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for name in names:
            value = self._value(name)
            if name in self._placer.in_place and value is not None:
                there, known = state.buffer(value.storage), state.held.get(name)
                if known is None or known.buffer is not there:
                    tensor = self.graph.tensors[name]
                    known = HeldTensor(self._engine.transfer, tensor, value, there)
                    state.held[name] = known
                found[name] = known
            elif name in self._placer.left and name not in state.host and value and is_dense(value):
                tensor, there = self.graph.tensors[name], state.buffer(value.storage)
                with explaining(f"keeping {name} of {self.graph.name}"):
                    found[name] = KeptTensor(self._engine.transfer, tensor, value, there)
        return {**found, **super().keep(state, [name for name in names if name not in found])}

    def _kept_on_host(self, name: str) -> bool:
        read = any(name in item.inputs for item in self._compiled.fallbacks.values())
        return name in self._placer.host and (read or self._value(name) is None)

    def _value(self, name: str) -> Stored | None:
        if name not in self._values:
            self._values[name] = next(iter(self._placer.forms(name)), None)
        return self._values[name]

    def _upload(self, state: OpenCLState, value: Stored, array: np.ndarray) -> None:
        with explaining(f"writing inputs of {self.graph.name}"):
            self._engine.transfer.upload(state.buffer(value.storage), value, array)

    def run(self, state: OpenCLState, start: int, end: int) -> int:
        return self.run_parts(state, start, (end,), lambda part: True)[1]

    def run_parts(
        self, state: OpenCLState, start: int, ends: Sequence[int], go_on: Callable[[int], bool]
    ) -> tuple[int, int]:
        check_range(self, state, start, ends[-1])
        first, began = start, time.perf_counter_ns()
        parts: list[list[cl.Event]] = []
        state.in_flight = True
        try:
            for index, end in enumerate(ends):
                if index >= 2:
                    _wait(parts[index - 2])
                    if not go_on(index):
                        break
                parts.append(state.enqueue(start, end))
                start = end
            for part in parts[-2:]:  # the last one may hold no launch
                _wait(part)
            state.in_flight = False
        except cl.Error as error:
            raise explain(error, f"running ops {start}..{end} of {self.graph.name}") from error
        finally:
            self._finish(state)
        state.progress.add(first, start)
        waited_ns = time.perf_counter_ns() - began
        launches = [event for part in parts for event in part]
        if not launches or not self._engine.times_ops:
            return start, waited_ns
        # By the device's clock: how long this thread then waits to be woken is not its time.
        device_ns = int(launches[-1].profile.end - launches[0].profile.queued)
        return start, min(waited_ns, device_ns)

    def _finish(self, state: OpenCLState) -> None:
        """After an error: the parts that were started end, before the state is used again."""
        if state.in_flight and not forks.forked():
            with contextlib.suppress(cl.Error):
                finish(self._engine.queue)
                state.in_flight = False

    def run_fallback(self, state: OpenCLState, start: int, end: int) -> int:
        check_range(self, state, start, end, fallback=True)
        began = time.perf_counter_ns()
        for index in range(start, end):
            before = time.perf_counter_ns()
            fallback = self._compiled.fallbacks[index]
            feeds = {
                name: self._on_host(state, name, order)
                for order, name in enumerate(fallback.inputs)
            }
            for name, array in fallback.run(feeds).items():
                state.host[name] = array
            layer = self._placer.ops[self._compiled.layer_of[index]]
            for value in layer.steps[-1].outputs:  # those that kernels read
                self._upload(state, value, state.host[value.storage.name])
            state.fallback_ns[index] = time.perf_counter_ns() - before
        state.progress.add(start, end)
        return time.perf_counter_ns() - began

    def _on_host(self, state: OpenCLState, name: str, order: int | None = None) -> np.ndarray:
        """A tensor, in the memory kept for that input of a fallback op if ``order`` is given."""
        if name in state.host:
            return state.host[name]
        value = self._value(name)
        assert value is not None
        memory = None if order is None else state.kept(order, value.storage.floats)
        return self._download(state, name, value, memory)

    def _download(
        self, state: OpenCLState, name: str, value: Stored, memory: np.ndarray | None = None
    ) -> np.ndarray:
        buffer, shape = state.buffer(value.storage), self._module.shapes[name]
        with explaining(f"reading {name} of {self.graph.name}"):
            found = self._engine.transfer.download(buffer, value, shape, memory)
        return self._typed(name, found)

    def _typed(self, name: str, array: np.ndarray) -> np.ndarray:
        """Truth values and indices are floats on the device."""
        tensor = self.graph.tensors.get(name)
        return array if tensor is None else array.astype(tensor.dtype, copy=False)

    def read(self, state: OpenCLState, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        names = check_read(self, state, leave)
        needed, tails = set(names), []
        for op in reversed(self._edges.tails):
            if not needed.isdisjoint(op.outputs):
                needed.update(op.inputs)
                tails.append(op)
        left = [name for name in self._placer.left if name in needed]
        arrays = {name: self._on_host(state, name) for name in left}
        for op in reversed(tails):
            read = [arrays[name] for name in op.inputs]
            arrays[op.output] = op.spec.on_host(read, self._module.shapes[op.output])
        return {name: np.asarray(self._typed(name, arrays[name]), order="C") for name in names}

    @property
    def handovers(self) -> Mapping[int, tuple[str, ...]]:
        return {op: tuple(cut.names) for op, cut in self._compiled.handovers.items()}

    def hand_over(self, state: OpenCLState) -> dict[str, np.ndarray]:
        cut = self._compiled.cut_at(state.position)
        host, download = state.host, self._download
        return {
            name: host[name] if name in host else download(state, name, cut.value(name))
            for name in cut.names
        }

    def take_over(
        self,
        state: OpenCLState,
        op: int,
        inputs: Mapping[str, np.ndarray],
        tensors: Mapping[str, np.ndarray],
    ) -> None:
        cut = self._compiled.cut_at(op)
        self.write(state, inputs)
        for name in cut.on_host:
            state.host[name] = tensors[name]
        for name, value in cut.on_device:
            self._upload(state, value, tensors[name])
        state.progress.begin(op)

    def op_times(self, state: OpenCLState) -> list[int] | None:
        if not self._engine.times_ops:
            return None
        times = [0] * len(self.ops)
        for (op, end), events in state.events.items():
            if end - op > 1:
                return None
            times[op] = int(events[-1].profile.end - events[0].profile.start)
        for index, elapsed in state.fallback_ns.items():
            times[index] = elapsed
        return times

    def longest_enqueue_ns(self, state: OpenCLState) -> int | None:
        if not self._engine.times_ops:
            return None
        events = (event for made in state.events.values() for event in made)
        return max((int(event.profile.end - event.profile.start) for event in events), default=0)

    def close(self) -> None:
        self._spare.clear()


def _wait(events: Sequence[cl.Event]) -> None:
    forks.check()
    if events:
        events[-1].wait()
