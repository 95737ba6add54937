"""Sliding windows: pools, and convolutions.

Pictures have kernels of their own. What is not a picture, another number of axes, batches, or
weights that are computed, has one simple kernel for all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.grid import chunked, ints, line_launch, source
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.lowered import Conv, Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.ops_picture import Pool
from heimdall.engine.opencl.ops_reduce import Reduce
from heimdall.engine.opencl.strided import Strided

Mode = Literal["max", "average", "lp", "conv"]
_MOST_IMAGES = 8  # of a batch: each is a convolution of its own


@dataclass(frozen=True)
class Window(ArrayOp):
    """Over arrays (batch, channels, ...). ``pads`` are all those before, then all those behind.

    Inputs: x and, for a convolution, weights and bias.
    """

    mode: Mode
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int = 1
    transposed: bool = False
    count_pads: bool = False
    power: float = 2.0

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        x, axes = inputs[0], len(self.kernel)
        bases, constants = operands(inputs, traits)
        args = [arg for base in bases for arg in base]
        depth = 1
        if self.mode == "conv":
            depth = x.shape[1] // self.groups
            args += ints(depth, y.shape[1] // self.groups, self.groups)
        for a in range(axes):
            args += ints(x.shape[a + 2], y.shape[a + 2], self.kernel[a], self.strides[a])
            args += ints(self.dilations[a], self.pads[a], self.pads[a + axes])
        chunk, items = chunked(y.size, depth * math.prod(self.kernel), traits)
        args += [*ints(y.shape[1]), np.float32(self.power)]
        args += [Ref("y"), *ints(y.offset, y.size, chunk)]
        kernel = source(
            "window",
            traits,
            1,
            axes=axes,
            mode=self.mode,
            counted=self.count_pads,
            transposed=self.transposed,
            bias=len(inputs) > 2,
        )
        return Plan((line_launch(kernel, items, args, traits),), constants)

    def operations(self, inputs: Sequence[tuple[int, ...]], y: tuple[int, ...]) -> int:
        if self.mode != "conv":
            return math.prod(y) * math.prod(self.kernel)
        points = math.prod(inputs[0] if self.transposed else y)
        return 2 * points * math.prod(inputs[1][1:])


def _window(context: Context, mode: Mode, kernel: Sequence[int]) -> Window:
    """Attributes of the node, ``auto_pad`` as pads. Raises ValueError where they do not fit."""
    rank = len(kernel)
    strides = tuple(context.attribute("strides", [1] * rank))
    dilations = tuple(context.attribute("dilations", [1] * rank))
    if {len(strides), len(dilations), len(context.x) - 2} != {rank}:
        raise ValueError(f"a window of {rank} axes over {context.x}")
    transposed = context.node.op_type == "ConvTranspose"
    window = Window(mode, tuple(kernel), strides, dilations, (), transposed=transposed)
    return replace(window, pads=_pads(context, window))


def _pads(context: Context, window: Window) -> tuple[int, ...]:
    """All those before, then all those behind."""
    rank = len(window.kernel)
    automatic = context.attribute("auto_pad", "NOTSET") or "NOTSET"
    sized = window.transposed and context.attribute("output_shape")
    if automatic == "NOTSET" and not sized:
        pads = tuple(context.attribute("pads", [0] * (2 * rank)))
        if len(pads) != 2 * rank:
            raise ValueError(f"{len(pads)} pads of {rank} axes")
        return pads
    if automatic == "VALID":
        return (0,) * (2 * rank)
    sides = []
    for axis in range(rank):
        stride = window.strides[axis]
        reach = (window.kernel[axis] - 1) * window.dilations[axis] + 1
        size, out = context.x[axis + 2], context.y[axis + 2]
        if window.transposed:
            extra = context.attribute("output_padding", [0] * rank)[axis]
            total = max(0, (size - 1) * stride + extra + reach - out)
        else:
            total = max(0, (-(-size // stride) - 1) * stride + reach - size)
        half = total // 2 if automatic == "SAME_UPPER" else total - total // 2
        sides.append((half, total - half))
    return (*(before for before, _ in sides), *(behind for _, behind in sides))


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return first, second


_POOLS: dict[str, Mode] = {"MaxPool": "max", "AveragePool": "average", "LpPool": "lp"}


@register(*_POOLS)
def _pool(context: Context) -> list[Lowered] | None:
    if len(context.outputs) > 1:
        return None
    x, kernel = context.node.inputs[0], tuple(context.attribute("kernel_shape"))
    mode = _POOLS[context.node.op_type]
    window = _window(context, mode, kernel)
    counted = mode == "average" and bool(context.attribute("count_include_pad", 0))
    uneven = counted and context.attribute("ceil_mode", 0)
    if mode != "lp" and context.is_picture() and not uneven:
        if mode == "average" and kernel == context.x[2:] and not any(window.pads):
            return [context.op(Reduce("mean", (2, 3)), x)]
        top, left, bottom, right = window.pads
        strides, dilations = _pair(window.strides), _pair(window.dilations)
        pads = (top, left, bottom, right)
        return [context.op(Pool(mode, _pair(kernel), strides, pads, dilations, counted), x)]  # type: ignore[arg-type]
    power = float(context.attribute("p", 2))
    return [context.op(replace(window, count_pads=counted, power=power), x)]


@register("Conv", "ConvTranspose")
def _conv(context: Context) -> list[Lowered] | None:
    x, weights, *_ = context.node.inputs
    bias = context.node.inputs[2] if context.has(2) else ""
    kernel = context.shape(weights)[2:]
    window = _window(context, "conv", kernel)
    window = replace(window, groups=context.attribute("group", 1))
    if min(window.pads, default=0) < 0:
        return None
    known = context.constant(1) is not None and (not bias or context.constant(2) is not None)
    batch, _, *size = context.x
    if not known or len(kernel) > 2 or batch > _MOST_IMAGES or not kernel:
        return [context.op(window, x, weights, *((bias,) if bias else ()))]
    if len(kernel) == 1:
        window, size = _flat(window), [1, *size]
    conv = _conv_of(context, window)
    if batch == 1 and len(kernel) == 2:
        return [context.op(conv, x)]
    chain = Chain(context)
    shape = (1, context.y[1], *([1] * (len(kernel) == 1)), *context.y[2:])
    made = []
    for image in range(batch):
        one = chain.slice(x, 0, image, 1) if batch > 1 else x
        made.append(chain.add(conv, shape, chain.reshape(one, (1, context.x[1], *size))))
    return chain.end(chain.concat(0, *made) if batch > 1 else made[0])


def _flat(window: Window) -> Window:
    """A window along one axis as one of a single row."""
    before, behind = window.pads
    return replace(
        window,
        kernel=(1, *window.kernel),
        strides=(1, *window.strides),
        dilations=(1, *window.dilations),
        pads=(0, before, 0, behind),
    )


def _conv_of(context: Context, window: Window) -> Conv:
    weights = context.constant(1)
    assert weights is not None
    top, left, bottom, right = window.pads
    spec = ConvSpec(
        _pair(window.kernel),
        _pair(window.strides),
        _pair(window.dilations),
        (top, left, bottom, right),
        window.groups,
        transposed=window.transposed,
    )
    return Conv(spec, weights.reshape(*weights.shape[:2], *window.kernel), context.constant(2))
