r"""Tries what the engine needs of one device; run as a program of its own (see ``probe``).

    python -m heimdall.engine.opencl.trial \
        '{"device": 0, "label": "as device.label says", "known": {}, "compare": false}'

Each step is reported before it is taken, so that a watcher knows where a driver ended the
process. Steps that are ``known`` are left out, and those that are not among ``steps``, if there are
any. The kernels are few: PoCL takes 0.2 s for each.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.device import devices, finish, has_fma, is_gpu, label
from heimdall.engine.opencl.priority import extension_of, open_context, open_queue
from heimdall.engine.opencl.probe import gathered
from heimdall.engine.opencl.transfer import STAGED, Transfer, ways
from heimdall.engine.opencl.walk import LEAST
from heimdall.errors import HeimdallError
from heimdall.system.child import report

_ADD = """
{extension}
__kernel void add(__global {type} *x, {type} value) {{
    const int i = get_global_id(0);
    {hint}
    x[i] = x[i] * ({type})2 + value;
}}
"""
_SMALL, _LARGER = (16, 8), (64, 28)  # channels and side of the networks; 32 million multiply-adds
_TOLERANCE = 1e-3


class Trial:
    """One device, and what was found of it so far."""

    def __init__(self, index: int, name: str, known: dict[str, Any]) -> None:
        found = devices()
        if index >= len(found) or label(found[index]) != name:
            raise RuntimeError(f"{name} has disappeared")
        self.device = found[index]
        self.found = known

    @cached_property
    def context(self) -> cl.Context:
        return cl.Context([self.device])

    @cached_property
    def queue(self) -> cl.CommandQueue:
        return cl.CommandQueue(self.context, self.device)

    def keep(self, name: str, step: Callable[[], Any]) -> None:
        """Take a step, and report what came of it."""
        try:
            found = {"value": step(), "why": ""}
        except (cl.Error, HeimdallError, RuntimeError) as error:
            found = {"value": None, "why": " ".join(str(error).split())[:500]}
        self.found[name] = found
        report({"found": name, "value": found})

    def build(self, source: str) -> cl.Program:
        program = cl.Program(self.context, source)
        return program.build(options=["-cl-std=CL1.2"], cache_dir=False)  # type: ignore[arg-type]

    def doubles(
        self, program: cl.Program, dtype: type = np.float32, count: int = 4, local: int = 1
    ) -> None:
        """Run ``add`` and compare. Raises RuntimeError when the numbers are wrong."""
        values = np.arange(count).astype(dtype) / dtype(4)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(self.context, flags, hostbuf=values)
        cl.Kernel(program, "add")(self.queue, (count,), (local,), buffer, dtype(0.5))
        got = np.empty_like(values)
        cl.enqueue_copy(self.queue, got, buffer)
        expect(got, values * dtype(2) + dtype(0.5))


def expect(got: np.ndarray, wanted: np.ndarray, tolerance: float = 0.0) -> None:
    """Raises RuntimeError unless they agree to ``tolerance`` of the largest."""
    error = float(np.abs(got.astype(np.float64) - wanted).max())
    if not error <= tolerance * float(np.abs(wanted).max()):  # not a number is an error too
        raise RuntimeError(f"wrong numbers: {got.flat[0]:g} instead of {wanted.flat[0]:g}, say")


def source(kind: str = "float", hint: str = "", extension: str = "") -> str:
    return _ADD.format(type=kind, hint=hint, extension=extension)


def opens(trial: Trial) -> bool:
    """A context and queues, and bytes there and back."""
    _copies(trial.context, trial.queue)
    return True


def priority(trial: Trial) -> str:
    """The extension for queues of low priority, which take bytes there and back."""
    extension = extension_of(trial.device)
    context = open_context(trial.device, extension)
    _copies(context, open_queue(context, trial.device, extension=extension))
    return extension


def _copies(context: cl.Context, queue: cl.CommandQueue) -> None:
    values = np.arange(64, dtype=np.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, values.nbytes)
    cl.enqueue_copy(queue, buffer, values)
    got = np.empty_like(values)
    cl.enqueue_copy(queue, got, buffer)
    expect(got, values)


def prefetch(trial: Trial) -> bool:
    trial.doubles(trial.build(source(hint="__builtin_prefetch(x + i + 16);")))
    return True


def half(trial: Trial) -> bool:
    """The extension, and a kernel that computes with it."""
    if "cl_khr_fp16" not in trial.device.extensions.split():
        return False
    enabled = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable"
    try:
        trial.doubles(trial.build(source("half", extension=enabled)), np.float16)
    except TypeError:  # pyopencl cannot pass a half
        return False
    return True


def groups(trial: Trial) -> bool:
    """Work-groups of 64, which is what kernels for GPUs have."""
    if not is_gpu(trial.device):
        return False  # not needed there
    trial.doubles(trial.build(source()), count=256, local=64)
    return True


def clock(trial: Trial) -> bool:
    """Times of events follow one another, and are no longer than the host waited."""
    profiling = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(trial.context, trial.device, profiling)
    values = np.zeros(1 << 20, np.float32)
    buffer = cl.Buffer(trial.context, cl.mem_flags.READ_WRITE, values.nbytes)
    began = time.perf_counter_ns()
    events = [cl.enqueue_fill_buffer(queue, buffer, values[:1], 0, values.nbytes) for _ in "abc"]
    finish(queue)
    waited = time.perf_counter_ns() - began
    times = [t for e in events for t in (e.profile.queued, e.profile.start, e.profile.end)]
    starts = [time for event in events for time in (event.profile.start, event.profile.end)]
    if min(times) <= 0 or sorted(starts) != starts or starts[-1] == starts[0]:
        raise RuntimeError(f"events tell implausible times: {times}")
    if starts[-1] - starts[0] > 2 * waited + 1_000_000:
        raise RuntimeError(f"events tell {starts[-1] - starts[0]} ns of {waited} ns")
    return True


def reached(trial: Trial) -> list[str]:
    """The ways of reaching memory that work, the cheapest first: each is a step of its own."""
    for way in ways(trial.device):
        name = f"way {way}"
        if name not in trial.found:
            report({"step": name})
            trial.keep(name, partial(_there_and_back, trial, way))
    found = [way for way in ways(trial.device) if trial.found[f"way {way}"]["value"]]
    if not found:
        raise RuntimeError(trial.found[f"way {STAGED}"]["why"])
    return found


def _there_and_back(trial: Trial, way: str) -> bool:
    """Numbers written by the host, filled in part by the device, and read by the host."""
    transfer = Transfer(trial.context, trial.device, way)
    buffer = transfer.allocate(1024)
    values = np.arange(1024, dtype=np.float32)
    with transfer.opened(buffer, 0, 1024, write=True) as floats:
        floats[:] = values
    cl.enqueue_fill_buffer(trial.queue, buffer, np.full(1, 3, np.float32), 4 * 256, 4 * 256)
    finish(trial.queue)
    values[256:512] = 3
    with transfer.opened(buffer, 0, 1024, write=False) as floats:
        expect(np.array(floats), values)
    return True


def binaries(trial: Trial) -> bool:
    """A program is the same when it comes back from its binary."""
    made = trial.build(source())
    trial.doubles(made)
    kept: list[bytes] = made.get_info(cl.program_info.BINARIES)  # type: ignore[assignment]
    trial.doubles(cl.Program(trial.context, [trial.device], kept[:1]).build())
    return True


def network(trial: Trial) -> bool:
    """Two convolutions through the engine give what numpy computes; so they have where ``walk``
    works, and a compiler takes two seconds."""
    if trial.found["walk"]["value"]:
        return True
    _run_network(trial, *_SMALL)
    return True


def speed(trial: Trial) -> int:
    """The shortest time in ns of a network that is long enough to compare devices by."""
    return _run_network(trial, *_LARGER)


def walk(trial: Trial) -> bool:
    """Try one kernel that runs all launches: only where work-groups are of one work-item,
    and waiting ones keep no other from running."""
    if is_gpu(trial.device) or not has_fma(trial.device):  # without: 9 min for a network (llvmpipe)
        return False
    _run_network(trial, *_SMALL, repeats=LEAST // 2, walk=True)
    return True


def _run_network(
    trial: Trial, channels: int, side: int, repeats: int = 1, walk: bool = False
) -> int:
    from heimdall.engine.opencl.engine import OpenCLEngine

    graph, inputs, wanted = _network(channels, side, repeats)
    place = devices().index(trial.device)
    abilities = replace(gathered(trial.found), walk=walk)
    engine = OpenCLEngine(place, keep_kernels=False, abilities=abilities)
    loaded = engine.load(graph)
    state = loaded.new_state()
    times = []
    for _ in range(8 if side > 8 else 2):
        loaded.write(state, inputs)
        times.append(loaded.run(state, 0, len(loaded.ops)))
        expect(loaded.read(state)["y"], wanted, _TOLERANCE)
    return max(1, min(times))


def _network(
    channels: int, side: int, repeats: int = 1
) -> tuple[Any, dict[str, np.ndarray], np.ndarray]:
    """The graph, its input, and its output computed by numpy: two layers, so many times."""
    from onnx import TensorProto, helper, numpy_helper

    from heimdall.graph.graph import graph_from_model

    random = np.random.default_rng(1)
    x = random.uniform(-1, 1, (1, channels, side, side)).astype(np.float32)
    a = random.uniform(-1, 1, (channels, channels, 3, 3)).astype(np.float32) / 16
    b = random.uniform(-1, 1, (channels, channels, 1, 1)).astype(np.float32) / 8
    nodes, name = [], "x"
    for turn in range(repeats):
        last = "y" if turn == repeats - 1 else f"y{turn}"
        nodes += [
            helper.make_node("Conv", [name, "a"], [f"c{turn}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{turn}"], [f"r{turn}"]),
            helper.make_node("Conv", [f"r{turn}", "b"], [f"d{turn}"]),
            helper.make_node("Add", [f"d{turn}", f"r{turn}"], [last]),
        ]
        name = last
    shape = [1, channels, side, side]
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        nodes,
        "small",
        [value("x", TensorProto.FLOAT, shape)],
        [value("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(a, "a"), numpy_helper.from_array(b, "b")],
    )
    model = helper.make_model(body, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    y = x[0].astype(np.float64)
    for _ in range(repeats):
        padded = np.pad(y, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
        first = np.maximum(np.einsum("ihwkl,oikl->ohw", windows, a, optimize=True), 0)
        y = np.einsum("ihw,oi->ohw", first, b[:, :, 0, 0], optimize=True) + first
    return graph_from_model(model, "small"), {"x": x}, y[np.newaxis]


STEPS: dict[str, Callable[[Trial], Any]] = {
    "opens": opens,
    "clock": clock,
    "ways": reached,
    "priority": priority,
    "prefetch": prefetch,
    "groups": groups,
    "half": half,
    "binaries": binaries,
    "walk": walk,
    "network": network,
    "speed": speed,
}


def main() -> None:
    """Take every step that is not known, and report each."""
    with contextlib.suppress(AttributeError, OSError):  # the parent's policy, if it is real-time
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    task = json.loads(sys.argv[1])
    trial = Trial(task["device"], task["label"], task["known"])
    for name, step in STEPS.items():
        if name in trial.found or (name == "speed" and not task["compare"]):
            continue
        if name not in task.get("steps", STEPS):
            continue
        report({"step": name})
        trial.keep(name, partial(step, trial))
    report({"done": True})
    os._exit(0)  # what a driver does when it is unloaded is not asked


if __name__ == "__main__":
    main()
