"""What a graph becomes on a device: ops, kernels and weights, shared by all its networks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, count
from math import prod

import numpy as np
import pyopencl as cl

from heimdall.engine.fallback import FallbackOps
from heimdall.engine.network import Memory, Op
from heimdall.engine.opencl.constants import uploader
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.device import explaining
from heimdall.engine.opencl.exits import exits_on
from heimdall.engine.opencl.handover import DeviceCut, find_cuts
from heimdall.engine.opencl.launch import Kernel, Traits
from heimdall.engine.opencl.limits import check_fits
from heimdall.engine.opencl.lowered import Conv, Module
from heimdall.engine.opencl.memory import in_order, needs_clearing, place_scratch, plan_arena
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.order import Order
from heimdall.engine.opencl.passes import lower_for
from heimdall.engine.opencl.placed import Picture, PlacedOp, Storage
from heimdall.engine.opencl.placement import Placer
from heimdall.engine.opencl.planning import Bound, clear_halo, conv_layer, plan_step
from heimdall.engine.opencl.slices import ops_for
from heimdall.engine.opencl.walk import Walk, make_walk
from heimdall.graph.branches import direct
from heimdall.graph.graph import Graph


class Compiled:
    """A graph lowered, placed and planned, with its packed weights on the device.

    Nothing in it belongs to a job. A layer is what lowering and placement made, ``layer_of`` tells
    the layer of each op (see ``slices``). ``taken_ns`` is what each launch of each layer takes;
    the first state that warms up finds that out.
    """

    def __init__(self, engine: Opened, graph: Graph, force_fallback: Collection[str]) -> None:
        traits, itemsize = engine.traits, engine.traits.dtype.itemsize
        self.graph, self.dtype = graph, traits.dtype
        self.module = lower_for(graph, traits, force_fallback)
        self.placer = Placer(self.module, traits)
        self.placer.place()
        layers, storages = self.placer.ops, self.placer.storages
        self.dedicated = [s for s in storages if s.dedicated and s.first is not None]
        self._order = Order(layers)
        meet = self._order.meet if engine.plans_branches else in_order
        floats = plan_arena(storages, meet=meet)
        check_fits(graph, storages, floats, engine.device, itemsize)
        # Scratch memory holds floats: twice the room where tensors are half.
        wide = np.dtype(np.float32).itemsize // itemsize
        bound, self._scratch = _with_scratch(layers, _plan(layers, storages, engine), wide)
        self.arena_floats = place_scratch(self._scratch, storages, floats, meet=meet)
        ops = [_ops(*each, self.module, traits) for each in zip(layers, bound, strict=True)]
        self.ops_of = [len(each) for each in ops]  # a layer
        self.layer_of = [layer for layer, count in enumerate(self.ops_of) for _ in range(count)]
        self.ops = tuple(op for each in ops for op in each)
        self.exits = exits_on(self.module, layers, self.ops_of)
        self.fallbacks = {
            index: FallbackOps(graph, lowered.nodes, lowered.inputs, lowered.outputs)
            for index, lowered in enumerate(layers[layer].op for layer in self.layer_of)
            if self.ops[index].fallback
        }
        self.constants, self.walk = _upload(bound, self.dedicated, engine, graph.name)
        # The device has them now: the host need not keep a second copy of all weights.
        self.bound = [[replace(b, plan=replace(b.plan, constants={})) for b in op] for op in bound]
        self.is_warm = False
        self.taken_ns = [[1 for b in op for _ in b.plan.launches] for op in self.bound]

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
    def needs(self) -> tuple[frozenset[int], ...]:
        """See ``Network.needs``: the ops of a layer follow each other, and those of the layers
        that it waits for."""
        shared = (each for each in self.placer.storages if not each.dedicated)
        needs = self._order.needs([*shared, *self._scratch])
        ends, found = list(accumulate(self.ops_of)), []
        for op, layer in enumerate(self.layer_of):
            first = op == ends[layer] - self.ops_of[layer]
            found.append(frozenset(ends[each] - 1 for each in needs[layer]) if first else {op - 1})
        return tuple(direct(found))

    @cached_property
    def until_ns(self) -> list[float]:
        """What all ops before each one take, and at last all of them, once a state has run."""
        each_ns = [sum(ns) / ops for ns, ops in zip(self.taken_ns, self.ops_of, strict=True)]
        return list(accumulate((each_ns[layer] for layer in self.layer_of), initial=0.0))

    @cached_property
    def handovers(self) -> dict[int, DeviceCut]:
        """Where another processor can go on; found when first asked for. With exits what is
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
            buffers = {self.walk.weights.int_ptr: self.walk.weights.size}
        floats = self.arena_floats + sum(s.floats for s in self.dedicated)
        return Memory(
            weights_bytes=sum(buffers.values()), activation_bytes=self.dtype.itemsize * floats
        )


def _plan(
    layers: Sequence[PlacedOp], storages: Sequence[Storage], engine: Opened
) -> list[list[Bound]]:
    """The plans of each layer, also those that clear halos where no convolution can do so by the
    way; one that can is told to."""
    steps = [step for item in layers for step in item.steps]
    clears: dict[int, list[Bound]] = {}  # before a step
    for storage in storages:
        if not needs_clearing(storage, storages):
            continue
        assert storage.picture is not None
        assert storage.first is not None
        step = steps[storage.first]
        y = step.outputs[0]
        if step.spec.window and isinstance(y, Picture) and y.storage is storage and y.whole:
            step.clears = True
        elif not step.spec.falls_back:  # its outputs are uploaded with their halo
            picture = Picture(storage, *storage.picture)
            clears.setdefault(storage.first, []).append(clear_halo(picture, engine.traits))
    bound: list[list[Bound]] = []
    number = count()
    for item in layers:
        bound.append([])
        for step in item.steps:
            bound[-1] += clears.get(next(number), ())
            if not step.spec.falls_back:
                bound[-1].append(plan_step(step, engine.traits, engine.tuning))
    return bound


def _with_scratch(
    layers: Sequence[PlacedOp], planned: Sequence[list[Bound]], wide: int
) -> tuple[list[list[Bound]], list[Storage]]:
    """The plans with their scratch memory, one piece for each layer that needs some, and these
    pieces. Each float in them takes as much as ``wide`` numbers of tensors."""
    bound: list[list[Bound]] = []
    made: list[Storage] = []
    first = 0
    for item, plans in zip(layers, planned, strict=True):
        end = first + len(item.steps)
        floats = max((each.plan.scratch_floats for each in plans), default=0)
        own = {}
        if floats:
            made.append(Storage("scratch", None, wide * floats, first=first, last=end - 1))
            own = {"scratch": made[-1]}
        bound.append([replace(each, storages=each.storages | own) for each in plans])
        first = end
    return bound, made


def _ops(item: PlacedOp, bound: Sequence[Bound], module: Module, traits: Traits) -> list[Op]:
    """What the scheduler sees of a layer; every tensor is touched once, at least."""
    op, name, fallback = item.op, item.nodes[-1], item.op.spec.falls_back
    nodes = tuple(reversed(dict.fromkeys(reversed(item.nodes))))  # each once, the last one last
    inputs, outputs = ([module.shapes[n] for n in names] for names in (op.inputs, op.outputs))
    flops = op.spec.operations(inputs, outputs[0])
    touched = sum(map(prod, (*inputs, *outputs))) + op.spec.weight_count
    size = traits.dtype.itemsize * touched
    launches = [launch for each in bound for launch in each.plan.launches]
    count = 1 if fallback else ops_for(flops, size, launches, traits)
    names = [f"{name} [{part}/{count}]" for part in range(1, count + 1)] if count > 1 else [name]
    flops, size = flops // count, size // count
    return [Op(each, op.kind, nodes, fallback, flops, size) for each in names]


def _upload(
    bound: Sequence[Sequence[Bound]], dedicated: list[Storage], engine: Opened, name: str
) -> tuple[list[list[dict[str, cl.Buffer]]], Walk | None]:
    """The constants of each plan of each layer by name; or the walk that has them all."""
    with explaining(f"uploading the weights of {name}"):
        if walk := make_walk(bound, dedicated, engine):
            return [], walk
        upload = uploader(engine.context)
        constants = [[b.plan.constants.items() for b in op] for op in bound]
        return [[{n: upload(a) for n, a in each} for each in op] for op in constants], None
