"""A graph on an OpenCL device: planned once, then run in ranges of ops on a state a job."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from heimdall.analyzer.graph import Graph
from heimdall.engine.base import LoadProgress, Network, Op, State
from heimdall.engine.checks import check_inputs, check_range
from heimdall.engine.fallback import FallbackOps
from heimdall.engine.opencl import edges as edge_ops
from heimdall.engine.opencl.cost import cost
from heimdall.engine.opencl.device import explain
from heimdall.engine.opencl.edges import find_edges
from heimdall.engine.opencl.launch import Arg, Ref
from heimdall.engine.opencl.lowered import Fallback
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.memory import needs_clearing, plan_arena
from heimdall.engine.opencl.placed import Array, Picture, PlacedOp, Storage
from heimdall.engine.opencl.placement import Placer
from heimdall.engine.opencl.planning import Bound, clear_halo, plan_step
from heimdall.engine.opencl.transfer import write

if TYPE_CHECKING:
    from heimdall.engine.opencl.engine import OpenCLEngine

_READY = tuple[cl.Kernel, tuple[int, ...], tuple[int, ...]]


class OpenCLState(State):
    """The buffers of one job, and kernels whose arguments point at them."""

    def __init__(
        self,
        buffers: dict[Storage | None, cl.Buffer],
        launches: list[list[_READY]],
        arguments: tuple[object, ...],
    ) -> None:
        self.buffers, self.launches = buffers, launches
        self._arguments = arguments  # kernels do not keep the buffers they are bound to
        self.position = 0
        self.host: dict[str, np.ndarray] = {}
        self.events: dict[int, tuple[cl.Event, cl.Event]] = {}
        self.fallback_ns: dict[int, int] = {}

    def buffer(self, storage: Storage) -> cl.Buffer:
        return self.buffers[storage if storage.dedicated else None]


class OpenCLNetwork(Network):
    """See ``heimdall.engine.base.Network``. Made by ``OpenCLEngine.load``."""

    def __init__(
        self,
        engine: OpenCLEngine,
        graph: Graph,
        force_fallback: Collection[str],
        on_progress: LoadProgress | None,
    ) -> None:
        self.graph = graph
        self._engine = engine
        self._module = lower(graph, force_fallback)
        self._edges = find_edges(self._module)
        self._placer = Placer(self._module, self._edges, engine.traits)
        self._placer.place()
        self._arena_floats = plan_arena(self._placer.storages)
        placed = self._placer.ops
        self._bound = self._plan(placed)
        self._fallbacks = {
            index: FallbackOps(graph, op.op.nodes, op.op.inputs, op.op.outputs)
            for index, op in enumerate(placed)
            if isinstance(op.op.spec, Fallback)
        }
        self.ops = tuple(self._op(item) for item in placed)
        self._constants = self._upload_constants()
        self._spare: OpenCLState | None = self._first_state(on_progress)

    # --- loading ---

    def _plan(self, placed: list[PlacedOp]) -> list[list[Bound]]:
        traits, storages = self._engine.traits, self._placer.storages
        bound: list[list[Bound]] = [[] for _ in placed]
        for storage in storages:
            if needs_clearing(storage, storages) and not self._written_by_host(storage):
                assert storage.picture is not None
                assert storage.first is not None
                picture = Picture(storage, *storage.picture)
                bound[storage.first].append(clear_halo(picture, traits))
        for index, item in enumerate(placed):
            for step in item.steps:
                if not isinstance(step.spec, Fallback):
                    bound[index].append(plan_step(step, traits))
        return bound

    def _written_by_host(self, storage: Storage) -> bool:
        """Outputs of fallback ops are uploaded with their halo."""
        assert storage.first is not None
        return isinstance(self._placer.ops[storage.first].op.spec, Fallback)

    def _op(self, item: PlacedOp) -> Op:
        flops, size = cost(item.op, self._module.shapes)
        fallback = isinstance(item.op.spec, Fallback)
        return Op(item.nodes[-1], item.op.kind, item.nodes, fallback, flops, size)

    def _upload_constants(self) -> list[list[dict[str, cl.Buffer]]]:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        context = self._engine.context
        shared: dict[tuple[str, tuple[int, ...], bytes], cl.Buffer] = {}

        def upload(array: np.ndarray) -> cl.Buffer:
            wanted = np.int32 if array.dtype.kind == "i" else np.float32
            data = np.ascontiguousarray(array, wanted)
            if data.nbytes > 4096:
                return cl.Buffer(context, flags, hostbuf=data)
            key = (data.dtype.str, data.shape, data.tobytes())  # index tables repeat
            if key not in shared:
                shared[key] = cl.Buffer(context, flags, hostbuf=data)
            return shared[key]

        try:
            return [
                [{name: upload(a) for name, a in b.plan.constants.items()} for b in bounds]
                for bounds in self._bound
            ]
        except cl.Error as error:
            raise explain(error, f"uploading the weights of {self.graph.name}") from error

    def _first_state(self, on_progress: LoadProgress | None) -> OpenCLState:
        """Build the kernels and run every op once on zeros: drivers finish compiling then."""
        kernels = [
            launch.kernel for bounds in self._bound for b in bounds for launch in b.plan.launches
        ]
        total = len(kernels) + len(self.ops)
        for done, kernel in enumerate(kernels):
            self._engine.programs.build(kernel)
            if on_progress:
                on_progress(done, total)
        state = self._make_state()
        for index in range(len(self.ops)):
            self._enqueue(state, index, index + 1)
            if on_progress:
                on_progress(len(kernels) + index + 1, total)
        self._zero(state)
        return state

    # --- states ---

    def new_state(self) -> OpenCLState:
        spare, self._spare = self._spare, None
        return spare or self._make_state()

    def _make_state(self) -> OpenCLState:
        context, flags = self._engine.context, int(cl.mem_flags.READ_WRITE)
        if self._engine.shares_memory:
            flags |= int(cl.mem_flags.ALLOC_HOST_PTR)
        scratch = max([1, *(b.plan.scratch_floats for bounds in self._bound for b in bounds)])
        try:
            buffers: dict[Storage | None, cl.Buffer] = {
                None: cl.Buffer(context, flags, 4 * max(1, self._arena_floats))
            }
            for storage in self._placer.storages:
                if storage.dedicated and storage.first is not None:
                    buffers[storage] = cl.Buffer(context, flags, 4 * storage.floats)
            temporary = cl.Buffer(context, flags, 4 * scratch)
            launches = [
                [
                    ready
                    for bound, constants in zip(bounds, uploaded, strict=True)
                    for ready in self._bind(bound, constants, buffers, temporary)
                ]
                for bounds, uploaded in zip(self._bound, self._constants, strict=True)
            ]
            state = OpenCLState(buffers, launches, (temporary, self._constants))
            self._zero(state)
        except cl.Error as error:
            raise explain(error, f"allocating a job of {self.graph.name}") from error
        return state

    def _bind(
        self,
        bound: Bound,
        constants: dict[str, cl.Buffer],
        buffers: dict[Storage | None, cl.Buffer],
        scratch: cl.Buffer,
    ) -> list[_READY]:
        def resolve(arg: Arg) -> Any:
            if not isinstance(arg, Ref):
                return arg
            if arg.name in constants:
                return constants[arg.name]
            if arg.name == "scratch":
                return scratch
            storage = bound.storages[arg.name]
            return buffers[storage if storage.dedicated else None]

        ready = []
        for launch in bound.plan.launches:
            kernel = self._engine.programs.kernel(launch.kernel)
            kernel.set_args(*(resolve(arg) for arg in launch.args))
            ready.append((kernel, launch.global_size, launch.local_size))
        return ready

    def _zero(self, state: OpenCLState) -> None:
        queue = self._engine.queue
        for buffer in state.buffers.values():
            cl.enqueue_fill_buffer(queue, buffer, np.float32(0), 0, buffer.size)
        queue.finish()

    # --- a job ---

    def write(self, state: State, inputs: Mapping[str, np.ndarray]) -> None:
        assert isinstance(state, OpenCLState)
        check_inputs(self.graph, inputs)
        state.host.clear()
        state.events.clear()
        state.fallback_ns.clear()
        state.position = 0
        for name, (tensor, chain) in self._edges.heads.items():
            array = np.asarray(inputs[name])
            if self._kept_on_host(name):
                state.host[name] = array.copy()
            for op in chain:
                array = edge_ops.apply(self._module, op, [array])
            if tensor != name and self._kept_on_host(tensor):
                state.host[tensor] = array.copy()
            value = self._value(tensor)
            if value is not None and value.storage.first is not None:
                self._upload(state, value, array)

    def _kept_on_host(self, name: str) -> bool:
        read = any(name in item.inputs for item in self._fallbacks.values())
        return name in self._placer.host and (read or self._value(name) is None)

    def _value(self, name: str) -> Picture | Array | None:
        return self._placer.pictures.get(name) or self._placer.arrays.get(name)

    def _upload(self, state: OpenCLState, value: Picture | Array, array: np.ndarray) -> None:
        try:
            write(self._engine.transfer, state.buffer(value.storage), value, array)
        except cl.Error as error:
            raise explain(error, f"writing inputs of {self.graph.name}") from error

    def run(self, state: State, start: int, end: int) -> int:
        assert isinstance(state, OpenCLState)
        check_range(self.ops, state.position, start, end)
        began = time.perf_counter_ns()
        self._enqueue(state, start, end)
        state.position = end
        return time.perf_counter_ns() - began

    def _enqueue(self, state: OpenCLState, start: int, end: int) -> None:
        queue, enqueue = self._engine.queue, cl.enqueue_nd_range_kernel
        last = None
        try:
            for index in range(start, end):
                first = None
                for kernel, size, local in state.launches[index]:
                    last = enqueue(queue, kernel, size, local)
                    first = first or last
                if first is not None and last is not None:
                    state.events[index] = (first, last)
            if last is not None:
                queue.flush()
                last.wait()
        except cl.Error as error:
            raise explain(error, f"running ops {start}..{end} of {self.graph.name}") from error

    def run_fallback(self, state: State, start: int, end: int) -> int:
        assert isinstance(state, OpenCLState)
        check_range(self.ops, state.position, start, end, fallback=True)
        began = time.perf_counter_ns()
        for index in range(start, end):
            before = time.perf_counter_ns()
            fallback = self._fallbacks[index]
            feeds = {name: self._on_host(state, name) for name in fallback.inputs}
            for name, array in fallback.run(feeds).items():
                state.host[name] = array
            for value, name in self._fallback_outputs(index):
                self._upload(state, value, state.host[name])
            state.fallback_ns[index] = time.perf_counter_ns() - before
        state.position = end
        return time.perf_counter_ns() - began

    def _fallback_outputs(self, index: int) -> list[tuple[Picture | Array, str]]:
        """The tensors of a fallback op that kernels read."""
        made = self._placer.ops[index].steps[-1].outputs
        return [(v, v.storage.name) for v in made if isinstance(v, (Picture, Array))]

    def _on_host(self, state: OpenCLState, name: str) -> np.ndarray:
        if name in state.host:
            return state.host[name]
        value = self._value(name)
        assert value is not None
        try:
            return self._engine.transfer.download(
                state.buffer(value.storage), value, self._module.shapes[name]
            )
        except cl.Error as error:
            raise explain(error, f"reading {name} of {self.graph.name}") from error

    def read(self, state: State) -> dict[str, np.ndarray]:
        assert isinstance(state, OpenCLState)
        if state.position != len(self.ops):
            raise ValueError(
                f"{self.graph.name} has run {state.position} of {len(self.ops)} ops: run the rest "
                "before reading"
            )
        arrays = {name: self._on_host(state, name) for name in self._placer.left}
        for op in self._edges.tails:
            arrays[op.output] = edge_ops.apply(
                self._module, op, [arrays[name] for name in op.inputs]
            )
        return {name: np.asarray(arrays[name], order="C") for name in self._module.outputs}

    def op_times(self, state: State) -> list[int] | None:
        assert isinstance(state, OpenCLState)
        times = [0] * len(self.ops)
        for index, (first, last) in state.events.items():
            times[index] = int(last.profile.end - first.profile.start)
        for index, elapsed in state.fallback_ns.items():
            times[index] = elapsed
        return times

    def close(self) -> None:
        self._spare = None
        self._constants = []
        self._bound = []
