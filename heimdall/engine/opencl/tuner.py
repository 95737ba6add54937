"""Measures variants of each convolution of a network on the device, and remembers the best.

A variant, the default included, is used only if it computes what onnxruntime computes, of random
numbers and the layer's own weights: a kernel that a driver compiles wrongly may be the fastest.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyopencl as cl

from heimdall.engine.base import Tried
from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_reference import reference
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.device import explaining
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.launched import Enqueue
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.opened import Opened
from heimdall.engine.opencl.program import Programs, set_arguments
from heimdall.engine.opencl.tuning import Tuned
from heimdall.errors import DeviceError

log = logging.getLogger(__name__)

# (output blocks, pixels wide, pixels high) tried beside what the tables say. Few: each may be a
# new kernel, which takes 0.2 s to compile.
_DENSE = {
    "large": ((2, 13, 1), (2, 8, 1), (2, 4, 2), (3, 8, 1), (4, 6, 1), (1, 13, 1)),
    "small": ((2, 6, 1), (3, 4, 1), (2, 4, 1), (1, 8, 1)),
    "gpu": ((2, 4, 1), (1, 4, 1), (2, 8, 1), (4, 4, 1), (2, 2, 1)),
}
_DEPTHWISE = {
    "large": ((1, 8, 2), (1, 5, 3), (1, 4, 4), (1, 13, 1), (1, 4, 2)),
    "small": ((1, 4, 2), (1, 4, 1), (1, 2, 2)),
    "gpu": ((1, 2, 1), (1, 1, 1), (1, 4, 1)),
}
ROUNDS = 7
CLEARLY = 0.97  # of the default's time: less is not worth a different kernel
# The largest difference from onnxruntime's result, of its largest value.
_SAME = 1e-4
_SAME_HALF = 6 * 2.0**-11  # six roundings of a half
_SAME_WINOGRAD = 1e-3  # against a direct kernel: its sums are of larger numbers


def tune(
    engine: Opened,
    compiled: Compiled,
    progress: Callable[[int, int], None],
    *,
    rounds: int = ROUNDS,
    again: bool = True,
) -> dict[str, Tried]:
    """Choose the variant of every convolution again, into ``engine.tuning``, which is saved after
    each. See ``OpenCLEngine.tune``; the names are the layers' signatures."""
    layers = {layer.signature: layer for layer in compiled.convolutions}
    if not again:
        layers = {name: each for name, each in layers.items() if not engine.tuning.knows(each)}
    # Of all variants only the chosen are worth a place on the disk.
    programs = Programs(engine.context, keep=False, prefetch=engine.abilities.prefetch)
    found = {}
    for done, (signature, layer) in enumerate(layers.items()):
        progress(done, len(layers))
        with explaining(f"tuning {compiled.graph.name}"):
            bench = _Bench(engine, programs, layer)
            found[signature] = _tune_layer(engine, bench, layer, rounds, compiled.graph.name)
        engine.tuning.save()
    progress(len(layers), len(layers))
    return found


def _tune_layer(engine: Opened, bench: _Bench, layer: Layer, rounds: int, network: str) -> Tried:
    """Each variant runs in turns with the default; the best one must win a second time, because
    the best of several measurements is the best by chance as well. If the default is wrong, the
    first right variant takes its place."""
    chosen = engine.tuning.lookup(layer) or {}
    right = _right(bench, layer, _variants(layer, engine.traits, chosen), network)
    wrong = right.count(False)
    candidates = itertools.compress(_variants(layer, engine.traits, chosen), right)
    first = next(candidates, None)
    if first is None:
        engine.tuning.set(layer, {})
        return Tried(0, 0, wrong)
    base_tuned, plan = first
    base = bench.prepare(plan)
    best, gain = base_tuned, CLEARLY
    for tuned, plan in candidates:
        before_ns, after_ns = bench.times((base, bench.prepare(plan)), rounds)
        if after_ns <= gain * before_ns:
            best, gain = tuned, after_ns / before_ns
    if best is not base_tuned:
        plan = plan_conv(layer, engine.traits, best)
        before_ns, after_ns = bench.times((base, bench.prepare(plan)), rounds)
        if after_ns <= CLEARLY * before_ns:
            _choose(engine, layer, best)
            return Tried(before_ns, after_ns, wrong)
    _choose(engine, layer, base_tuned)
    (before_ns,) = bench.times((base,), rounds)
    return Tried(before_ns, before_ns, wrong)


def _choose(engine: Opened, layer: Layer, tuned: Tuned) -> None:
    engine.tuning.set(layer, tuned)
    if tuned:
        for launch in plan_conv(layer, engine.traits, tuned).launches:
            engine.programs.build(launch.kernel)


def _right(
    bench: _Bench, layer: Layer, variants: Iterator[tuple[Tuned, Plan]], network: str
) -> list[bool]:
    """Of each variant, whether it runs and computes what the layer is. The default is compared,
    too: a driver may compile that one wrongly."""
    wanted = bench.wanted()
    right = []
    for tuned, plan in variants:
        name = dict(tuned) or "the default"
        try:
            variant = bench.prepare(plan)
            error = _error(bench.result(variant), wanted)
        except (cl.Error, DeviceError) as refused:
            right.append(False)
            log.warning(
                "%s: %s does not run with %s on this device: not used (%s)",
                *(network, layer.signature, name, refused),
            )
            continue
        right.append(error <= _tolerance(layer, variant))
        if not right[-1]:
            log.warning(
                "%s: %s computes something else with %s (off by %.1e of the largest): not used",
                *(network, layer.signature, name, error),
            )
    return right


def _variants(layer: Layer, traits: Traits, chosen: Tuned) -> Iterator[tuple[Tuned, Plan]]:
    """The default first, then those whose launches differ from all before; what is ``chosen`` so
    far is among them. One at a time: each has its own copy of the weights."""
    options: list[Tuned] = [{}, {"winograd": False}, chosen]
    depthwise = layer.spec.groups == layer.x.channels == layer.y.channels > 1
    tiles = (_DEPTHWISE if depthwise else _DENSE)[_registers(traits)]
    options += [{"tile": list(tile), "winograd": False} for tile in tiles]
    seen = []
    for tuned in options:
        plan = plan_conv(layer, traits, tuned)
        if plan.launches not in seen:
            seen.append(plan.launches)
            yield tuned, plan


def _registers(traits: Traits) -> str:
    if traits.kind == "gpu":
        return "gpu"
    return "large" if traits.registers >= 32 else "small"


def _tolerance(layer: Layer, variant: _Variant) -> float:
    if layer.half:
        return _SAME_HALF
    return _SAME_WINOGRAD if variant.winograd else _SAME


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, of the largest value; infinite where one is not a number."""
    with np.errstate(invalid="ignore"):  # the same infinity in both
        differences = np.where(found == wanted, 0.0, np.abs(found - wanted))
    largest = float(np.abs(wanted[np.isfinite(wanted)]).max(initial=1e-6))
    error = float(differences.max(initial=0.0)) / largest
    return math.inf if math.isnan(error) else error


@dataclass(frozen=True)
class _Variant:
    """Kernels with their arguments set; ``buffers`` must live as long as they may run."""

    enqueues: tuple[Enqueue, ...]
    buffers: Mapping[str, cl.Buffer]
    winograd: bool


class _Bench:
    """A layer's tensors on the device, by themselves: the same random numbers for all variants."""

    def __init__(self, engine: Opened, programs: Programs, layer: Layer) -> None:
        self._engine, self._programs, self._layer = engine, programs, layer
        self._dtype = engine.traits.dtype
        random = np.random.default_rng(0)
        tensors = {"x": layer.x, **({"residual": layer.residual} if layer.residual else {})}
        self._inputs = {
            name: random.uniform(-1, 1, _shape(layout)).astype(self._dtype)
            for name, layout in tensors.items()
        }
        self._buffers = {
            name: self._tensor(tensors[name], array) for name, array in self._inputs.items()
        }
        # What is not written shows: not a number where results belong, and where they do not
        # belong zero, which is to stay; or anything, where the variant has to zero it.
        nothing = np.full(_shape(layer.y), np.nan)
        self._before = layer.y.pack(nothing).astype(self._dtype)
        if layer.clears:
            self._before[:] = np.nan
        self._buffers["y"] = self._tensor(layer.y, nothing)

    def wanted(self) -> np.ndarray:
        """What y should be, channels first, by onnxruntime."""
        x, residual = self._inputs["x"], self._inputs.get("residual")
        floats = None if residual is None else residual.astype(np.float32)
        return reference(self._layer, x.astype(np.float32), floats)

    def prepare(self, plan: Plan) -> _Variant:
        """Build a variant's kernels and upload its weights."""
        engine, flags = self._engine, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        buffers = dict(self._buffers)
        buffers["scratch"] = self._zeros(4 * max(1, plan.scratch_floats))
        for name, array in plan.constants.items():
            data = np.ascontiguousarray(array)
            buffers[name] = cl.Buffer(engine.context, flags, hostbuf=data)
        enqueues = []
        for launch in plan.launches:
            kernel = self._programs.kernel(launch.kernel)
            set_arguments(kernel, launch.bound(buffers.__getitem__))
            enqueues.append(Enqueue(kernel, launch.global_size, launch.local_size))
        winograd = any("winograd" in launch.kernel.name for launch in plan.launches)
        return _Variant(tuple(enqueues), buffers, winograd)

    def result(self, variant: _Variant) -> np.ndarray:
        """What a variant makes of y, channels first. All is not a number where it has left
        something else than zeros around the picture."""
        queue, y = self._engine.queue, self._layer.y
        size = self._dtype.itemsize
        cl.enqueue_copy(queue, self._buffers["y"], self._before, dst_offset=size * y.offset)
        self._run(variant)
        floats = np.empty_like(self._before)
        cl.enqueue_copy(queue, floats, self._buffers["y"], src_offset=size * y.offset)
        (top, left, _, _), sides = y.halo, (y.stored_height, y.stored_width)
        stored = floats.astype(np.float32).reshape(y.blocks, *sides, y.block)
        picture = np.s_[:, top : top + y.height, left : left + y.width]
        found = stored[picture].transpose(0, 3, 1, 2).reshape(-1, y.height, y.width)[: y.channels]
        found = found.copy()
        stored[picture] = 0
        return np.full_like(found, np.nan) if stored.any() else found

    def times(self, variants: Sequence[_Variant], rounds: int) -> list[int]:
        """The shortest time in ns of each, in turns, so that a disturbance hits all alike."""
        for each in variants:
            self._run(each)
        found = [[self._run(each) for each in variants] for _ in range(rounds)]
        return [max(1, min(times)) for times in zip(*found, strict=True)]

    def _run(self, variant: _Variant) -> int:
        """Device time in ns; the host's where the device has no clock."""
        queue = self._engine.queue
        began = time.perf_counter_ns()
        events = [cl.enqueue_nd_range_kernel(queue, *each) for each in variant.enqueues]
        events[-1].wait()
        if not self._engine.times_ops:
            return time.perf_counter_ns() - began
        return int(events[-1].profile.end - events[0].profile.start)

    def _tensor(self, layout: Layout, array: np.ndarray) -> cl.Buffer:
        size = self._dtype.itemsize
        buffer = self._zeros(size * (layout.offset + layout.floats))
        packed = layout.pack(array).astype(self._dtype)
        cl.enqueue_copy(self._engine.queue, buffer, packed, dst_offset=size * layout.offset)
        return buffer

    def _zeros(self, size: int) -> cl.Buffer:
        size = -(-size // 4) * 4
        buffer = cl.Buffer(self._engine.context, cl.mem_flags.READ_WRITE, size)
        cl.enqueue_fill_buffer(self._engine.queue, buffer, np.zeros(1, np.float32), 0, size)
        return buffer


def _shape(layout: Layout) -> tuple[int, int, int]:
    return layout.channels, layout.height, layout.width
