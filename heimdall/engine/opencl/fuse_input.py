"""Fold the scaling of a picture into the convolution that reads it: (x - mean) / deviation costs
nothing then, and a first layer reads the picture as it comes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.engine.opencl.fuse_conv import Affine, affine, channel_values, step_of
from heimdall.engine.opencl.lowered import Conv, Lowered, Module, Pad


def fuse_input_scales(module: Module) -> None:
    """Fuse in place: conv(x * scale + shift) becomes one convolution of x.

    Its padding was of zeros *after* the scaling: x is padded with -shift / scale, which must be
    the same for all channels.
    """
    for op in list(module.ops):
        if (fused := _fused(module, op)) is not None:
            module.replace(op, *fused)
    module.drop_unused()


def _fused(module: Module, op: Lowered) -> list[Lowered] | None:
    """What replaces a convolution whose input is scaled, or None."""
    conv = op.spec
    if not isinstance(conv, Conv) or conv.matrix or conv.spec.transposed or conv.spec.groups > 1:
        return None
    if conv.spec.activation.exact:
        return None
    found = _scaling(module, op)
    if found is None:
        return None
    x, (scale, shift), nodes = found
    pads, before = conv.spec.pads, []
    name = x
    if any(pads):
        fills = -shift / scale
        if not np.all(fills == fills[0]):
            return None
        _, channels, height, width = module.shapes[x]
        top, left, bottom, right = pads
        padded = (1, channels, height + top + bottom, width + left + right)
        name = module.tensor(f"{op.output}/padded", padded)
        before = [Lowered(Pad("constant", pads, fill=float(fills[0])), (x,), (name,), nodes)]
        nodes = ()
    weights = conv.weights * scale.reshape(1, -1, 1, 1)
    bias = (conv.bias if conv.bias is not None else 0.0) + np.einsum(
        "oikl,i->o", conv.weights.astype(np.float64), shift
    )
    spec = replace(conv.spec, pads=(0, 0, 0, 0))
    fused = replace(
        conv, spec=spec, weights=weights.astype(np.float32), bias=bias.astype(np.float32)
    )
    return [*before, replace(op, spec=fused, inputs=(name, *op.inputs[1:]), nodes=nodes + op.nodes)]


def _scaling(module: Module, op: Lowered) -> tuple[str, Affine, tuple[str, ...]] | None:
    """The tensor behind the scalings in front of a convolution, all of them in one, and their
    nodes; None when there is none, or when another node reads one of the tensors."""
    producers, consumers = module.producers(), module.consumers()
    name = op.inputs[0]
    nodes: tuple[str, ...] = ()
    channels = module.shapes[name][1]
    scale, shift = np.ones(channels), np.zeros(channels)
    while name not in op.inputs[1:] and name not in module.outputs:
        step = producers.get(name)
        affine = _affine(module, step, channels) if step else None
        if step is None or affine is None or len(consumers[name]) > 1:
            break
        shift = shift + scale * affine[1]
        scale = scale * affine[0]
        name = next(other for other in step.inputs if other not in module.constants)
        nodes = step.nodes + nodes
    alone = len(consumers[name]) == 1 and np.all(scale)
    return (name, (scale, shift), nodes) if nodes and alone else None


def _affine(module: Module, op: Lowered, channels: int) -> Affine | None:
    """An elementwise op of one step as scale and shift: + - * / by a constant."""
    variables = [name for name in op.inputs if name not in module.constants]
    found = step_of(module, variables[0], op) if len(variables) == 1 else None
    if found is None:
        return None
    step, sides = found
    value = channel_values(module, sides, channels, dtype=np.float64)
    return None if value is None else affine(step.function, sides[0] is None, value)
