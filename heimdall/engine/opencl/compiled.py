"""What a graph becomes on a device: ops, kernels and weights, shared by all its networks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, count

import numpy as np
import pyopencl as cl

from heimdall.engine.fallback import FallbackOps
from heimdall.engine.network import Memory, Op
from heimdall.engine.opencl.constants import uploader
from heimdall.engine.opencl.cost import cost
from heimdall.engine.opencl.device import explain
from heimdall.engine.opencl.edges import find_edges
from heimdall.engine.opencl.exits import exits_on
from heimdall.engine.opencl.handover import DeviceCut, find_cuts
from heimdall.engine.opencl.launch import Kernel, Traits
from heimdall.engine.opencl.limits import check_fits
from heimdall.engine.opencl.lowered import Conv, Fallback, Lowered, Separable
from heimdall.engine.opencl.memory import in_order, needs_clearing, place_scratch, plan_arena
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.order import Order
from heimdall.engine.opencl.passes import lower_for
from heimdall.engine.opencl.placed import ALIGN, Picture, PlacedOp, Step, Storage
from heimdall.engine.opencl.placement import Placer
from heimdall.engine.opencl.planning import Bound, clear_halo, conv_layer, plan_step
from heimdall.engine.opencl.slices import ops_for
from heimdall.engine.opencl.tuning import Layer
from heimdall.engine.opencl.walk import Walk, plan_walk
from heimdall.graph.branches import direct
from heimdall.graph.graph import Graph


class Compiled:
    """A graph lowered, placed and planned, with its packed weights on the device.

    Nothing in it belongs to a job. A layer is what lowering and placement made, ``layer_of`` tells
    the layer of each op (see ``slices``). ``taken_ns`` is what each launch of each layer takes;
    the first state that warms up finds that out.
    """

    def __init__(self, engine: Opened, graph: Graph, force_fallback: Collection[str]) -> None:
        self.graph = graph
        self.dtype = engine.traits.dtype
        self._place(engine, force_fallback)
        self._meet = self._order.meet if engine.plans_branches else in_order
        self.arena_floats = plan_arena(self.placer.storages, meet=self._meet)
        check_fits(
            graph,
            self.placer.storages,
            self.arena_floats,
            engine.device,
            self.dtype.itemsize,
        )
        bound = self._plan(engine)
        self._add_scratch(bound, engine)
        ops = [self._ops(*each, engine.traits) for each in zip(self.placer.ops, bound, strict=True)]
        self.ops_of = [len(each) for each in ops]  # a layer
        self.layer_of = [layer for layer, count in enumerate(self.ops_of) for _ in range(count)]
        self.ops = tuple(op for each in ops for op in each)
        self.exits = exits_on(self.module, self.placer.ops, self.ops_of)
        self.fallbacks = {
            index: self._fallback(self.placer.ops[layer].op)
            for index, layer in enumerate(self.layer_of)
            if self.ops[index].fallback
        }
        self.walk = self._walk(engine, bound)
        self._upload(engine, bound)
        # The device has them now: the host need not keep a second copy of all weights.
        self.bound = [[replace(b, plan=replace(b.plan, constants={})) for b in op] for op in bound]
        self.is_warm = False
        self.taken_ns = [[1 for b in op for _ in b.plan.launches] for op in self.bound]

    def _place(self, engine: Opened, force_fallback: Collection[str]) -> None:
        self.module = lower_for(self.graph, engine.traits, force_fallback)
        self.edges = find_edges(self.module)
        self.placer = Placer(self.module, self.edges, engine.traits)
        self.placer.place()

    def _plan(self, engine: Opened) -> list[list[Bound]]:
        traits, storages = engine.traits, self.placer.storages
        steps = [step for op in self.placer.ops for step in op.steps]
        clears: dict[int, list[Bound]] = {}  # before a step
        for storage in storages:
            if not needs_clearing(storage, storages):
                continue
            assert storage.picture is not None
            assert storage.first is not None
            step = steps[storage.first]
            if _convolves_all_of(storage, step):
                step.clears = True
            elif not isinstance(step.spec, Fallback):  # its outputs are uploaded with their halo
                picture = Picture(storage, *storage.picture)
                clears.setdefault(storage.first, []).append(clear_halo(picture, traits))
        bound: list[list[Bound]] = []
        number = count()
        for item in self.placer.ops:
            bound.append([])
            for step in item.steps:
                bound[-1] += clears.get(next(number), ())
                if not isinstance(step.spec, Fallback):
                    bound[-1].append(plan_step(step, traits, engine.tuning))
        return bound

    def _add_scratch(self, bound: list[list[Bound]], engine: Opened) -> None:
        """Each op's scratch memory, in the arena. Kernels get it as a sub-buffer.

        It holds floats: twice the room where tensors are half.
        """
        wide = np.dtype(np.float32).itemsize // self.dtype.itemsize
        made: list[Storage] = []
        self._scratch: list[tuple[int, Storage]] = []  # with the layer whose it is
        first = 0
        for layer, (item, plans) in enumerate(zip(self.placer.ops, bound, strict=True)):
            last = first + len(item.steps) - 1
            floats = max([0, *(each.plan.scratch_floats for each in plans)])
            if floats:
                made.append(Storage("scratch", None, wide * floats, first=first, last=last))
                for each in plans:
                    each.storages["scratch"] = made[-1]
                self._scratch.append((layer, made[-1]))
                if engine.plans_branches:
                    self._order.use_scratch(layer, made[-1])
            first = last + 1
        align = max(ALIGN, engine.device.mem_base_addr_align // (8 * self.dtype.itemsize))  # bits
        self.arena_floats = place_scratch(
            made,
            self.placer.storages,
            self.arena_floats,
            align,
            finite=wide == 1,
            meet=self._meet,
        )

    def _ops(self, item: PlacedOp, bound: list[Bound], traits: Traits) -> list[Op]:
        """What the scheduler sees of a layer."""
        name, fallback = item.nodes[-1], isinstance(item.op.spec, Fallback)
        nodes = tuple(reversed(dict.fromkeys(reversed(item.nodes))))  # each once, the last one last
        flops, size = cost(item.op, self.module.shapes, self.dtype.itemsize)
        launches = [launch for each in bound for launch in each.plan.launches]
        count = 1 if fallback else ops_for(flops, size, launches, traits)
        names = [f"{name} [{part}/{count}]" for part in range(1, count + 1)]
        if count == 1:
            names = [name]
        flops, size = flops // count, size // count
        return [Op(each, item.op.kind, nodes, fallback, flops, size) for each in names]

    def _fallback(self, op: Lowered) -> FallbackOps:
        return FallbackOps(self.graph, op.nodes, op.inputs, op.outputs)

    def _walk(self, engine: Opened, bound: list[list[Bound]]) -> Walk | None:
        walk = plan_walk(bound, self.dedicated, engine.traits) if engine.abilities.walk else None
        fits = walk is not None and walk.constants.size <= engine.device.max_mem_alloc_size
        return walk if fits else None

    def _upload(self, engine: Opened, bound: list[list[Bound]]) -> None:
        self.constants: list[list[dict[str, cl.Buffer]]] = []
        try:
            if self.walk is None:
                upload = uploader(engine.context)
                self.constants = [
                    [{name: upload(a) for name, a in b.plan.constants.items()} for b in op]
                    for op in bound
                ]
                return
            self.weights = self.walk.constants.upload(engine.queue)
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
            self.table = cl.Buffer(engine.context, flags, hostbuf=self.walk.table)
        except cl.Error as error:
            raise explain(error, f"uploading the weights of {self.graph.name}") from error

    @property
    def kernels(self) -> list[Kernel]:
        """All that must be built."""
        if self.walk is not None:
            return [self.walk.kernel]
        return [launch.kernel for op in self.bound for b in op for launch in b.plan.launches]

    @property
    def convolutions(self) -> list[Layer]:
        """Every convolution."""
        steps = (step for op in self.placer.ops for step in op.steps)
        half = self.dtype == np.float16
        return [conv_layer(step, half) for step in steps if isinstance(step.spec, Conv)]

    @cached_property
    def dedicated(self) -> list[Storage]:
        """Storages with a buffer of their own."""
        return [s for s in self.placer.storages if s.dedicated and s.first is not None]

    @cached_property
    def _order(self) -> Order:
        return Order(self.placer.ops)

    @cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """See ``Network.needs``: the ops of a layer follow each other, and those of the layers
        that it waits for."""
        for layer, scratch in self._scratch:
            self._order.use_scratch(layer, scratch)
        self._order.share(each for each in self.placer.storages if not each.dedicated)
        ends, found = list(accumulate(self.ops_of)), []
        for op, layer in enumerate(self.layer_of):
            first = op == ends[layer] - self.ops_of[layer]
            waits = [ends[each] - 1 for each in self._order.needs[layer]] if first else [op - 1]
            found.append(frozenset(waits))
        return tuple(direct(found))

    @cached_property
    def until_ns(self) -> list[float]:
        """What all ops before each one take, and at last all of them, once a state has run."""
        each_ns = [sum(ns) / ops for ns, ops in zip(self.taken_ns, self.ops_of, strict=True)]
        return list(accumulate((each_ns[layer] for layer in self.layer_of), initial=0.0))

    @cached_property
    def handovers(self) -> dict[int, DeviceCut]:
        """Where another processor can go on; found when somebody first asks. With exits what is
        alive depends on which of their heads ran: nowhere."""
        return {} if self.exits else find_cuts(self.placer, self.graph, self.ops_of)

    def cut_at(self, op: int) -> DeviceCut:
        """The cut before ``op``. Raises ValueError where there is none."""
        if op not in self.handovers:
            raise ValueError(f"{self.graph.name} cannot be handed over before op {op}")
        return self.handovers[op]

    @property
    def memory(self) -> Memory:
        """Weights once, activations a job; see ``Network.memory``."""
        buffers = {b.int_ptr: b.size for op in self.constants for d in op for b in d.values()}
        if self.walk is not None:
            buffers = {self.weights.int_ptr: self.weights.size}
        floats = self.arena_floats + sum(s.floats for s in self.dedicated)
        return Memory(
            weights_bytes=sum(buffers.values()), activation_bytes=self.dtype.itemsize * floats
        )


def _convolves_all_of(storage: Storage, step: Step) -> bool:
    y = step.outputs[0]
    convolves = isinstance(step.spec, (Conv, Separable))
    return convolves and isinstance(y, Picture) and y.storage is storage and y.whole
