"""Take a shuffle of channels into the convolutions that read it.

Networks of grouped convolutions (ShuffleNet) mix the groups by a reshape, a transpose and a
reshape, which move each number three times and compute nothing. A depthwise layer may as well
come before the shuffle, with its channels in the other order, and a layer that sums over channels
takes them in any order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from heimdall.engine.opencl.lowered import Conv, Lowered, Module, Reshape, Transpose


class _Shuffle(NamedTuple):
    """Channel c of ``shuffled`` is channel ``order[c]`` of ``x``."""

    x: str
    shuffled: str
    order: np.ndarray
    nodes: tuple[str, ...]


def fuse_shuffles(module: Module) -> None:
    """Fuse in place: shuffle, depthwise (or not), another convolution."""
    consumers = module.consumers()
    for transpose in list(module.ops):
        shuffle = _shuffle(module, consumers, transpose)
        if shuffle is None:
            continue
        reader = _only_conv(module, consumers, shuffle.shuffled)
        if reader is None:
            continue
        op, conv = reader
        if not conv.depthwise:
            module.replace(op, _reading(op, conv, shuffle.x, shuffle.order, shuffle.nodes))
            continue
        last = _only_conv(module, consumers, op.output)
        if last is not None and not last[1].depthwise and len(op.inputs) == 1:
            module.replace(op, _reordered(op, conv, shuffle))
            module.replace(last[0], _reading(*last, op.output, shuffle.order, ()))
    module.drop_unused()


def _shuffle(
    module: Module, consumers: dict[str, list[Lowered]], transpose: Lowered
) -> _Shuffle | None:
    """(1, g * k, h, w) -> (1, g, k, h, w) -> (1, k, g, h, w) -> (1, k * g, h, w)."""
    if not isinstance(transpose.spec, Transpose) or transpose.spec.perm != (0, 2, 1, 3, 4):
        return None
    before = module.producers().get(transpose.inputs[0])
    readers = consumers.get(transpose.output, [])
    if before is None or len(readers) != 1 or len(consumers[before.output]) != 1:
        return None
    after = readers[0]
    if not isinstance(before.spec, Reshape) or not isinstance(after.spec, Reshape):
        return None
    if {before.output, transpose.output} & set(module.outputs):
        return None
    x, split = module.shapes[before.inputs[0]], module.shapes[before.output]
    whole = (1, split[1] * split[2], *split[3:])
    if tuple(x) != whole or tuple(module.shapes[after.output]) != whole:
        return None
    order = np.arange(x[1]).reshape(split[1], split[2]).T.reshape(-1)
    nodes = before.nodes + transpose.nodes + after.nodes
    return _Shuffle(before.inputs[0], after.output, order, nodes)


def _only_conv(
    module: Module, consumers: dict[str, list[Lowered]], name: str
) -> tuple[Lowered, Conv] | None:
    """The convolution that alone reads a tensor, as its input and nothing else."""
    readers = consumers.get(name, [])
    if len(readers) != 1 or name in module.outputs:
        return None
    (op,) = readers
    conv = op.spec
    if not isinstance(conv, Conv) or conv.matrix or conv.spec.transposed:
        return None
    return (op, conv) if op.inputs[0] == name and name not in op.inputs[1:] else None


def _reordered(op: Lowered, conv: Conv, shuffle: _Shuffle) -> Lowered:
    """A depthwise layer before the shuffle, whose channels are those of x. No residual may have
    been added to it, which would have to be shuffled too."""
    back = np.argsort(shuffle.order)
    act = conv.spec.activation
    if len(act.lanes) > 1:
        act = replace(act, lanes=tuple(act.lanes[channel] for channel in back))
    fused = replace(
        conv,
        spec=replace(conv.spec, activation=act),
        weights=conv.weights[back],
        bias=None if conv.bias is None else conv.bias[back],
    )
    return replace(op, spec=fused, inputs=(shuffle.x,), nodes=shuffle.nodes + op.nodes)


def _reading(op: Lowered, conv: Conv, x: str, order: np.ndarray, nodes: tuple[str, ...]) -> Lowered:
    """A layer that takes its input channels in another order from ``x``."""
    if conv.spec.groups == 1:
        fused = replace(conv, weights=conv.weights[:, np.argsort(order)])
    else:
        if conv.spec.order:
            order = order[list(conv.spec.order)]
        spec = replace(conv.spec, order=tuple(int(channel) for channel in order))
        fused = replace(conv, spec=spec)
    return replace(op, spec=fused, inputs=(x, *op.inputs[1:]), nodes=nodes + op.nodes)
