"""Speed of the convolution kernels against onnxruntime's on the same number of threads.

    POCL_MAX_PTHREAD_COUNT=1 taskset -c 1 python benchmarks/conv.py

Both sides compute the same layer, turn about; the best time of each counts. onnxruntime's time is
that of its Conv node alone (from its profiler), without the reorders around a lone layer; ours is
that of the kernels (from the queue's profiler).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pyopencl as cl
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.opencl.activation import Activation
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_spec import ConvSpec, Layer
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout


def _same(side: int, stride: int = 1, groups: int = 1) -> ConvSpec:
    return ConvSpec((side, side), (stride, stride), pads=(side // 2,) * 4, groups=groups)


def _transposed(side: int, stride: int, pad: int) -> ConvSpec:
    return ConvSpec((side, side), (stride, stride), pads=(pad,) * 4, transposed=True)


# family, layer, input channels, output channels, height, width, input block (0: the device's)
LAYERS = [
    ("dense 3x3", _same(3), 64, 64, 52, 52, 0),
    ("dense 3x3", _same(3), 128, 128, 26, 26, 0),
    ("dense 3x3", _same(3), 256, 256, 13, 13, 0),
    ("dense 3x3", _same(3), 32, 32, 120, 160, 0),
    ("dense 3x3/2", _same(3, 2), 64, 128, 52, 52, 0),
    ("1x1", _same(1), 256, 64, 52, 52, 0),
    ("1x1", _same(1), 96, 24, 120, 160, 0),
    ("1x1", _same(1), 96, 96, 26, 26, 0),
    ("1x1", _same(1), 512, 512, 7, 7, 0),
    ("first 3x3/2", _same(3, 2), 3, 24, 416, 416, 1),
    ("first 9x9", _same(9), 3, 32, 240, 320, 1),
    ("few 9x9", _same(9), 32, 3, 240, 320, 0),
    ("planar 9x9", _same(9), 4, 3, 240, 320, 1),
    ("few 1x1", _same(1), 24, 1, 120, 160, 0),
    ("depthwise 3x3", _same(3, 1, 96), 96, 96, 52, 52, 0),
    ("depthwise 3x3/2", _same(3, 2, 96), 96, 96, 104, 104, 0),
    ("depthwise 5x5", _same(5, 1, 128), 128, 128, 24, 24, 0),
    ("grouped 3x3", _same(3, 1, 4), 128, 128, 26, 26, 0),
    ("transposed 2x2", _transposed(2, 2, 0), 64, 64, 40, 40, 0),
    ("transposed 4x4", _transposed(4, 2, 1), 64, 64, 40, 40, 0),
    ("full 1x1", _same(1), 1280, 512, 1, 1, 1280),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--block", type=int, default=16, help="NCHWc lanes of the device")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="families that start with this")
    options = parser.parse_args()
    context = cl.create_some_context(interactive=False)
    device = context.devices[0]
    threads = int(os.environ.get("POCL_MAX_PTHREAD_COUNT", device.max_compute_units))
    registers = 32 if options.block == 16 else 16
    traits = Traits("cpu", options.block, threads, registers)
    print(f"{device.name}, {threads} thread(s), block {options.block}")
    print(f"{'layer':<46}{'ms':>8}{'GFLOP/s':>9}{'ort ms':>9}{'GFLOP/s':>9}{'ratio':>7}")
    for family, spec, *shape, x_block in LAYERS:
        if family.startswith(options.only):
            layer = replace(spec, activation=Activation("relu"))
            _report(context, traits, threads, options.rounds, family, layer, shape, x_block)


def _report(
    context: cl.Context,
    traits: Traits,
    threads: int,
    rounds: int,
    family: str,
    spec: ConvSpec,
    shape: list[int],
    x_block: int,
) -> None:
    ic, oc, height, width = shape
    out = spec.output_size(height, width)
    rng = np.random.default_rng(0)
    ends = (ic, oc // spec.groups) if spec.transposed else (oc, ic // spec.groups)
    weights = rng.standard_normal((*ends, *spec.kernel), np.float32)
    picture = rng.standard_normal((ic, height, width), np.float32)
    halo = spec.required_halo((height, width), out)
    x = Layout(ic, height, width, x_block or traits.block, halo)
    y_block = {"full": oc, "plan": 1}.get(family[:4], traits.block)
    y = Layout(oc, *out, y_block)
    plan = plan_conv(Layer(spec, x, y, weights), traits)
    grid = height * width if spec.transposed else out[0] * out[1]
    flops = 2 * weights.size * grid
    repeats = max(1, int(1e8 / flops))
    run = _ours(context, plan, x.pack(picture), y.floats, repeats)
    with tempfile.TemporaryDirectory() as folder:
        session = _onnxruntime(spec, weights, picture, threads, Path(folder))
        best = float("inf")
        for _ in range(rounds):
            best = min(best, run())
            for _ in range(min(repeats, 20)):
                session.run(None, {"x": picture[None]})
        other = _conv_seconds(Path(session.end_profiling()))
    name = f"{family}  {ic} -> {oc}  {height} x {width}  ({len(plan.launches)})"
    print(
        f"{name:<46}{best * 1e3:8.3f}{flops / best / 1e9:9.1f}{other * 1e3:9.3f}"
        f"{flops / other / 1e9:9.1f}{other / best:7.2f}",
        flush=True,
    )


def _ours(
    context: cl.Context, plan: Plan, x: np.ndarray, floats: int, repeats: int
) -> Callable[[], float]:
    """A function that runs the plan and returns the seconds that the device worked for one run."""
    profiled = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=profiled)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = plan.constants | {"x": x, "y": np.zeros(floats, np.float32)}
    arrays["scratch"] = np.zeros(max(1, plan.scratch_floats), np.float32)
    buffers = {name: cl.Buffer(context, flags, hostbuf=array) for name, array in arrays.items()}
    ready = []
    for launch in plan.launches:
        program = cl.Program(context, launch.kernel.source).build()
        kernel = cl.Kernel(program, launch.kernel.name)
        kernel.set_args(*launch.bound(buffers.__getitem__))
        ready.append((kernel, launch.global_size, launch.local_size))

    def run(alive: object = buffers) -> float:  # kernels do not keep their buffers alive
        runs = [
            [cl.enqueue_nd_range_kernel(queue, *launch) for launch in ready] for _ in range(repeats)
        ]
        queue.finish()
        times = [sum(e.profile.end - e.profile.start for e in events) for events in runs]
        return min(times) / 1e9

    run()
    return run


def _onnxruntime(
    spec: ConvSpec, weights: np.ndarray, picture: np.ndarray, threads: int, folder: Path
) -> ort.InferenceSession:
    kind = "ConvTranspose" if spec.transposed else "Conv"
    attributes: dict[str, Any] = {"strides": spec.strides, "pads": spec.pads, "group": spec.groups}
    nodes = [helper.make_node(kind, ["x", "w"], ["c"], name="layer", **attributes)]
    nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, *picture.shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    return ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _conv_seconds(profile: Path) -> float:
    """The shortest run of the layer's compute nodes: Conv (and what was not fused into it)."""
    best: dict[str, float] = {}
    for event in json.loads(profile.read_text()):
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith("_kernel_time") and "eorder" not in name:
            best[name] = min(best.get(name, float("inf")), event["dur"])
    return max(sum(best.values()), 1) / 1e6


if __name__ == "__main__":
    main()
