"""Join each depthwise convolution with the pointwise one that alone reads it, where that pays."""

from __future__ import annotations

from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Conv, Lowered, Module, Separable
from heimdall.engine.opencl.separable_tiles import separable_gains


def fuse_separable(module: Module, traits: Traits) -> None:
    """Fuse in place, for a device with ``traits``. The joined op takes the place of the pointwise
    layer, which is always legal because no other op waits for the depthwise one."""
    if traits.kind != "cpu":
        return
    producers, consumers = module.producers(), module.consumers()
    for op in list(module.ops):
        first = producers.get(op.inputs[0]) if op.inputs else None
        if first is None or first.output in module.outputs or len(consumers[first.output]) != 1:
            continue
        if first.output in op.inputs[1:] or not _fits(module, first, op, traits):
            continue
        pair = Separable(first.spec, op.spec)  # type: ignore[arg-type]
        inputs = first.inputs + op.inputs[1:]
        module.replace(op, Lowered(pair, inputs, op.outputs, first.nodes + op.nodes))
        module.replace(first)


def _fits(module: Module, first: Lowered, second: Lowered, traits: Traits) -> bool:
    if not isinstance(first.spec, Conv) or not isinstance(second.spec, Conv):
        return False
    window, point = first.spec.spec, second.spec.spec
    x, y = module.shapes[first.inputs[0]], module.shapes[second.output]
    plain = window.dilations == (1, 1) and not window.transposed and len(first.inputs) == 1
    square = window.kernel in ((3, 3), (5, 5)) and window.strides in ((1, 1), (2, 2))
    pointwise = point.kernel == point.strides == (1, 1) and not any(point.pads)
    dense = point.groups == 1 and not point.transposed and not second.spec.matrix
    if not (first.spec.depthwise and plain and square and pointwise and dense):
        return False
    if window.activation.lanes or len(y) != 4 or y[0] != 1:
        return False
    return separable_gains(x[1], y[1], traits)
