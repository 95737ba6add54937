"""Join each depthwise convolution with the pointwise one that alone reads it, where that pays."""

from __future__ import annotations

from functools import partial

from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Conv, Lowered, Module, Separable
from heimdall.engine.opencl.neighbours import Neighbours
from heimdall.engine.opencl.separable_tiles import separable_gains


def fuse_separable(module: Module, traits: Traits) -> None:
    """Fuse in place, for a device with ``traits``."""
    if traits.kind == "cpu":
        Neighbours(module).join_pairs(partial(_joined, traits=traits))


def _joined(around: Neighbours, op: Lowered, reader: Lowered, traits: Traits) -> Lowered | None:
    first, second, shapes = op.spec, reader.spec, around.module.shapes
    if not isinstance(first, Conv) or not isinstance(second, Conv):
        return None
    window, point = first.spec, second.spec
    x, y = shapes[op.inputs[0]], shapes[reader.output]
    plain = window.dilations == (1, 1) and not window.transposed and len(op.inputs) == 1
    square = window.kernel in ((3, 3), (5, 5)) and window.strides in ((1, 1), (2, 2))
    pointwise = point.kernel == point.strides == (1, 1) and not any(point.pads)
    dense = point.groups == 1 and not point.transposed and not second.matrix
    if not (first.depthwise and plain and square and pointwise and dense):
        return None
    if window.activation.lanes or len(y) != 4 or y[0] != 1 or op.output in reader.inputs[1:]:
        return None
    if not separable_gains(x[1], y[1], traits):
        return None
    inputs, nodes = op.inputs + reader.inputs[1:], op.nodes + reader.nodes
    return Lowered(Separable(first, second), inputs, reader.outputs, nodes)
