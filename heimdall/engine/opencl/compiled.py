"""What a graph becomes on a device: ops, kernels and weights, shared by all its networks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from heimdall.analyzer.graph import Graph
from heimdall.engine.base import Memory, Op
from heimdall.engine.fallback import FallbackOps
from heimdall.engine.opencl.cost import cost
from heimdall.engine.opencl.device import explain
from heimdall.engine.opencl.edges import find_edges
from heimdall.engine.opencl.launch import Launch
from heimdall.engine.opencl.limits import check_fits
from heimdall.engine.opencl.lowered import Conv, Fallback
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.memory import needs_clearing, place_scratch, plan_arena
from heimdall.engine.opencl.placed import ALIGN, Picture, PlacedOp, Step, Storage
from heimdall.engine.opencl.placement import Placer
from heimdall.engine.opencl.planning import Bound, clear_halo, conv_layer, plan_step
from heimdall.engine.opencl.tuning import Layer

if TYPE_CHECKING:
    from heimdall.engine.opencl.engine import OpenCLEngine

_SMALL_BYTES = 4096  # constants up to this size are index tables and the like, which repeat


class Compiled:
    """A graph lowered, placed and planned, with its packed weights on the device.

    Nothing in it belongs to a job. ``pieces`` says in how many enqueues each launch of each op
    is made (see ``slices``); the first state that warms up finds that out.
    """

    def __init__(self, engine: OpenCLEngine, graph: Graph, force_fallback: Collection[str]) -> None:
        self.graph = graph
        self._place(engine, force_fallback)
        if not self.placer.ops:  # nothing but views: yet a network needs an op to schedule
            self._place(engine, [node.name for node in graph.nodes])
        self.arena_floats = plan_arena(self.placer.storages)
        check_fits(graph, self.placer.storages, self.arena_floats, engine.device)
        bound = self._plan(engine)
        self._add_scratch(bound, engine.device)
        self.fallbacks = {
            index: FallbackOps(graph, op.op.nodes, op.op.inputs, op.op.outputs)
            for index, op in enumerate(self.placer.ops)
            if isinstance(op.op.spec, Fallback)
        }
        self.ops = tuple(self._op(item) for item in self.placer.ops)
        self.constants = self._upload(engine.context, bound)
        # The device has them now: the host need not keep a second copy of all weights.
        self.bound = [[replace(b, plan=replace(b.plan, constants={})) for b in op] for op in bound]
        self.is_warm = False
        self.pieces = [[1 for b in op for _ in b.plan.launches] for op in self.bound]

    def _place(self, engine: OpenCLEngine, force_fallback: Collection[str]) -> None:
        self.module = lower(self.graph, force_fallback)
        self.edges = find_edges(self.module)
        self.placer = Placer(self.module, self.edges, engine.traits)
        self.placer.place()

    def _plan(self, engine: OpenCLEngine) -> list[list[Bound]]:
        traits, storages = engine.traits, self.placer.storages
        bound: list[list[Bound]] = [[] for _ in self.placer.ops]
        for storage in storages:
            if needs_clearing(storage, storages) and not self._written_by_host(storage):
                assert storage.picture is not None
                assert storage.first is not None
                if step := _convolution_of(storage, self.placer.ops[storage.first]):
                    step.clears = True
                    continue
                picture = Picture(storage, *storage.picture)
                bound[storage.first].append(clear_halo(picture, traits))
        for index, item in enumerate(self.placer.ops):
            for step in item.steps:
                if not isinstance(step.spec, Fallback):
                    bound[index].append(plan_step(step, traits, engine.tuning))
        return bound

    def _add_scratch(self, bound: list[list[Bound]], device: cl.Device) -> None:
        align = max(ALIGN, device.mem_base_addr_align // 32)  # bits: kernels get a sub-buffer
        needs = {
            op: max(each.plan.scratch_floats for each in steps)
            for op, steps in enumerate(bound)
            if any(each.plan.scratch_floats for each in steps)
        }
        storages = self.placer.storages
        made, self.arena_floats = place_scratch(needs, storages, self.arena_floats, align)
        for op, scratch in made.items():
            for each in bound[op]:
                each.storages["scratch"] = scratch

    def _written_by_host(self, storage: Storage) -> bool:
        """Outputs of fallback ops are uploaded with their halo."""
        assert storage.first is not None
        return isinstance(self.placer.ops[storage.first].op.spec, Fallback)

    def _op(self, item: PlacedOp) -> Op:
        flops, size = cost(item.op, self.module.shapes)
        fallback = isinstance(item.op.spec, Fallback)
        return Op(item.nodes[-1], item.op.kind, item.nodes, fallback, flops, size)

    def _upload(
        self, context: cl.Context, bound: list[list[Bound]]
    ) -> list[list[dict[str, cl.Buffer]]]:
        upload = _uploader(context)
        try:
            return [
                [{name: upload(a) for name, a in b.plan.constants.items()} for b in op]
                for op in bound
            ]
        except cl.Error as error:
            raise explain(error, f"uploading the weights of {self.graph.name}") from error

    @property
    def launches(self) -> list[Launch]:
        """All launches, in order."""
        return [launch for op in self.bound for b in op for launch in b.plan.launches]

    @property
    def layers(self) -> list[Layer]:
        """Every convolution."""
        steps = (step for op in self.placer.ops for step in op.steps)
        return [conv_layer(step) for step in steps if isinstance(step.spec, Conv)]

    @cached_property
    def dedicated(self) -> list[Storage]:
        """Storages with a buffer of their own."""
        return [s for s in self.placer.storages if s.dedicated and s.first is not None]

    @property
    def memory(self) -> Memory:
        """Weights once, activations a job; see ``Network.memory``."""
        buffers = {b.int_ptr: b.size for op in self.constants for d in op for b in d.values()}
        floats = self.arena_floats + sum(s.floats for s in self.dedicated)
        return Memory(weights_bytes=sum(buffers.values()), activation_bytes=4 * floats)


def _convolution_of(storage: Storage, item: PlacedOp) -> Step | None:
    """The step of an op that computes all of a picture, if it is a convolution."""
    for step in item.steps:
        y = step.outputs[0]
        if isinstance(step.spec, Conv) and isinstance(y, Picture) and y.storage is storage:
            return step if y.whole else None
    return None


def _uploader(context: cl.Context) -> Callable[[np.ndarray], cl.Buffer]:
    """A function that makes buffers, the same one for equal small arrays."""
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    shared: dict[tuple[str, tuple[int, ...], bytes], cl.Buffer] = {}

    def upload(array: np.ndarray) -> cl.Buffer:
        wanted = np.int32 if array.dtype.kind == "i" else np.float32
        data = np.ascontiguousarray(array, wanted)
        if data.nbytes > _SMALL_BYTES:
            return cl.Buffer(context, flags, hostbuf=data)
        key = (data.dtype.str, data.shape, data.tobytes())
        if key not in shared:
            shared[key] = cl.Buffer(context, flags, hostbuf=data)
        return shared[key]

    return upload
