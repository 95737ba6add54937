"""What the machine itself can do: the speed of a large matrix product, and of copying memory."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime as ort
import pyopencl as cl
from onnx import TensorProto, helper

from heimdall.engine.opencl.engine import OpenCLEngine

_SIDE = 1024
_ROUNDS = 8
_COPIED = 1 << 26  # bytes: far more than the caches hold
_ITEM = 1 << 10  # vectors a work-item copies
_COPY = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void copy(__global const float16 *restrict x, __global float16 *restrict y) {
    const size_t first = get_global_id(0) * %d;
    for (size_t i = first; i < first + %d; i++) y[i] = x[i];
}
""" % (_ITEM, _ITEM)  # noqa: UP031  (braces are C's)


def gemm_gflops(cores: int) -> float:
    """onnxruntime's product of two square float32 matrices, the best of a few runs."""
    shape = [_SIDE, _SIDE]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "aby"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["a", "b"], ["y"])], "g", values[:2], values[2:]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = cores
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    random = np.random.default_rng(0)
    feeds = {name: random.random(shape, np.float32) for name in "ab"}
    best_s = min(_timed(lambda: session.run(None, feeds)) for _ in range(_ROUNDS))
    return 2 * _SIDE**3 / best_s / 1e9


def copy_gbs(engine: OpenCLEngine) -> float:
    """Bytes read and written per ns by a plain OpenCL kernel, out of the caches."""
    flags = cl.mem_flags.READ_WRITE
    x, y = (cl.Buffer(engine.context, flags, _COPIED) for _ in range(2))
    for buffer in (x, y):
        cl.enqueue_fill_buffer(engine.queue, buffer, np.ones(1, np.float32), 0, _COPIED)
    kernel = cl.Kernel(cl.Program(engine.context, _COPY).build(cache_dir=False), "copy")  # type: ignore[arg-type]
    kernel.set_args(x, y)
    size = (_COPIED // 64 // _ITEM,)

    def run() -> None:
        cl.enqueue_nd_range_kernel(engine.queue, kernel, size, (1,)).wait()

    return 2 * _COPIED / min(_timed(run) for _ in range(_ROUNDS)) / 1e9


def _timed(run: object) -> float:
    assert callable(run)
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s
