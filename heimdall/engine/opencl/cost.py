"""What a lowered op must at least compute and move."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from heimdall.engine.opencl.kernel_op import KernelOp, Shape
from heimdall.engine.opencl.lowered import Conv, Fallback, Lowered, Separable


def cost(op: Lowered, shapes: Mapping[str, Shape], itemsize: int) -> tuple[int, int]:
    """(operations, bytes): a multiply-add counts as two; every tensor is touched once, of whose
    numbers each takes ``itemsize`` bytes."""
    read = sum(prod(shapes[name]) for name in op.inputs)
    written = sum(prod(shapes[name]) for name in op.outputs)
    spec = op.spec
    if isinstance(spec, Conv):
        taps = prod(spec.weights.shape[1:])
        points = prod(shapes[op.inputs[0] if spec.spec.transposed else op.output])
        return 2 * taps * points, itemsize * (read + written + spec.weights.size)
    if isinstance(spec, Separable):
        parts = (spec.depthwise.weights, spec.pointwise.weights)
        height, width = shapes[op.output][2:]
        taps = sum(part.size for part in parts)  # every weight is used once a pixel
        return 2 * taps * height * width, itemsize * (read + written + taps)
    if isinstance(spec, KernelOp):
        inputs = [tuple(shapes[name]) for name in op.inputs]
        return spec.operations(inputs, shapes[op.output]), itemsize * (read + written)
    return (0 if isinstance(spec, Fallback) else max(read, written)), itemsize * (read + written)
