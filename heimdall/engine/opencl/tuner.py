"""Measures variants of each convolution of a network on the device, and remembers the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.compiled import Compiled
from heimdall.engine.opencl.device import explain
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.launched import Enqueue
from heimdall.engine.opencl.tuning import Layer, Tuned

if TYPE_CHECKING:
    from heimdall.engine.opencl.engine import OpenCLEngine

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


def tune(
    engine: OpenCLEngine, compiled: Compiled, progress: Callable[[int, int], None]
) -> dict[str, tuple[int, int]]:
    """Choose the variant of every convolution anew; tell ``engine.tuning``, which is not saved.

    Returns (ns of the default, ns of the best variant) by the layer's signature.
    """
    layers = {layer.signature: layer for layer in compiled.convolutions}
    found = {}
    for done, (signature, layer) in enumerate(layers.items()):
        progress(done, len(layers))
        try:
            found[signature] = _tune_layer(engine, layer)
        except cl.Error as error:
            raise explain(error, f"tuning {compiled.graph.name}") from error
    progress(len(layers), len(layers))
    return found


def _tune_layer(engine: OpenCLEngine, layer: Layer) -> tuple[int, int]:
    variants = _variants(engine, layer)
    trials = [_Trial(engine, layer, plan) for _, plan in variants]
    times = [trial.run() for trial in trials]
    for _ in range(ROUNDS):  # in turn: a disturbance hits all alike
        times = [min(ns, trial.run()) for ns, trial in zip(times, trials, strict=True)]
    best = times.index(min(times))
    if times[best] > CLEARLY * times[0]:
        best = 0
    engine.tuning.set(layer, variants[best][0])
    return times[0], times[best]


def _variants(engine: OpenCLEngine, layer: Layer) -> list[tuple[Tuned, Plan]]:
    """The default first, then those whose launches differ from all before."""
    traits = engine.traits
    options: list[Tuned] = [{}, {"winograd": False}]
    depthwise = layer.spec.groups == layer.x.channels == layer.y.channels > 1
    tiles = (_DEPTHWISE if depthwise else _DENSE)[_registers(traits)]
    options += [{"tile": list(tile), "winograd": False} for tile in tiles]
    found: list[tuple[Tuned, Plan]] = []
    for tuned in options:
        plan = layer.plan(traits, tuned)
        if all(plan.launches != other.launches for _, other in found):
            found.append((tuned, plan))
    return found


def _registers(traits: Traits) -> str:
    if traits.kind == "gpu":
        return "gpu"
    return "large" if traits.registers >= 32 else "small"


class _Trial:
    """One variant with buffers of its own, filled with zeros."""

    def __init__(self, engine: OpenCLEngine, layer: Layer, plan: Plan) -> None:
        self._queue, self._times_ops = engine.queue, engine.times_ops
        self._buffers = {"x": self._zeros(engine, layer.x.bytes)}
        self._buffers["y"] = self._zeros(engine, layer.y.bytes)
        if layer.residual is not None:
            self._buffers["residual"] = self._zeros(engine, layer.residual.bytes)
        self._buffers["scratch"] = self._zeros(engine, 4 * max(1, plan.scratch_floats))
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        for name, array in plan.constants.items():
            data = np.ascontiguousarray(array)
            self._buffers[name] = cl.Buffer(engine.context, flags, hostbuf=data)
        self._enqueues: list[Enqueue] = []
        for launch in plan.launches:
            kernel = engine.programs.kernel(launch.kernel)
            kernel.set_args(*self._resolve(launch.args))
            self._enqueues.append(Enqueue(kernel, launch.global_size, launch.local_size))

    def run(self) -> int:
        """Device time in ns; the host's where the device has no clock."""
        began = time.perf_counter_ns()
        events = [cl.enqueue_nd_range_kernel(self._queue, *each) for each in self._enqueues]
        events[-1].wait()
        if not self._times_ops:
            return time.perf_counter_ns() - began
        return int(events[-1].profile.end - events[0].profile.start)

    def _zeros(self, engine: OpenCLEngine, size: int) -> cl.Buffer:
        buffer = cl.Buffer(engine.context, cl.mem_flags.READ_WRITE, size)
        cl.enqueue_fill_buffer(self._queue, buffer, np.float32(0), 0, size)
        return buffer

    def _resolve(self, args: Sequence[Arg]) -> list[Any]:
        return [self._buffers[arg.name] if isinstance(arg, Ref) else arg for arg in args]
