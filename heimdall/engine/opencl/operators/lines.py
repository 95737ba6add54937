"""Operators that go along lines of a tensor: softmax, running sums, the place of the largest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands, plan_lines
from heimdall.engine.opencl.grid import chunked, ints, line_launch, source
from heimdall.engine.opencl.kernel_op import Shapes
from heimdall.engine.opencl.launch import Arg as Argument
from heimdall.engine.opencl.launch import Launch, Plan, Ref, Traits
from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.strided import Strided


@dataclass(frozen=True)
class Softmax(ArrayOp):
    axis: int
    log: bool = False

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (first,), constants = operands(inputs, traits)
        to = [Ref("y"), *ints(y.offset)]
        launch = softmax_launch(first, to, inputs[0].shape, self.axis, traits, log=self.log)
        return Plan((launch,), constants)


def softmax_launch(
    x: list[Argument],
    y: list[Argument],
    shape: Sequence[int],
    axis: int,
    traits: Traits,
    log: bool = False,
) -> Launch:
    """Softmax of an array of that shape; x and y, which may be the same, are ``buffer, base``.

    On a CPU by vectors, whose exp takes 0.35 ns a number: by scalars all took 9 ns, now 0.5.
    """
    count, inner = shape[axis], math.prod(shape[axis + 1 :])
    block, row = _lanes(count, inner, traits), inner == 1
    lines = math.prod(shape) // count // (1 if row else block)
    chunk, items = chunked(lines, count * (1 if row else block), traits)
    kernel = source("softmax", traits, block, row=row, log=log)
    return line_launch(kernel, items, [*x, *y, *ints(count, inner, lines, chunk)], traits)


@dataclass(frozen=True)
class Normalise(ArrayOp):
    """Layer normalisation (Ba et al. 2016) of the axes from ``axis`` on; not ``centred``: by their
    root mean square alone (Zhang and Sennrich 2019). Inputs: x, a scale and, optionally, a shift of
    these axes."""

    axis: int
    epsilon: float
    centred: bool = True

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        args, constants = operands(inputs, traits)
        count = math.prod(inputs[0].shape[self.axis :])
        lines = math.prod(inputs[0].shape) // count
        chunk, items = chunked(lines, count, traits)
        kinds = {"shifted": len(inputs) > 2, "centred": self.centred}
        kernel = source("normalise", traits, _lanes(count, 1, traits), **kinds)
        whole = [arg for each in args for arg in each]
        whole += [Ref("y"), *ints(y.offset, count, lines, chunk), np.float32(self.epsilon)]
        return Plan((line_launch(kernel, items, whole, traits),), constants)

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        x, *rest = inputs
        return list(outputs) == [x] and all(each == x[self.axis :] for each in rest)


def _lanes(count: int, inner: int, traits: Traits) -> int:
    """How many numbers a vector holds: of a line of ``count``, or of lines side by side."""
    if traits.kind == "gpu":
        return 1
    sizes = (1 << power for power in range(traits.block.bit_length()))
    return max(size for size in sizes if (size <= count if inner == 1 else inner % size == 0))


@dataclass(frozen=True)
class Cumulate(ArrayOp):
    """Running sums; ``exclusive``: without the value itself; ``reverse``: from the end."""

    axis: int
    exclusive: bool
    reverse: bool

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        kinds = {"exclusive": self.exclusive, "reverse": self.reverse}
        return plan_lines("cumulate", inputs[0], self.axis, y, traits, **kinds)


@dataclass(frozen=True)
class Arg(ArrayOp):
    """The index of a value for which no other is ``better`` (a comparison)."""

    axis: int
    better: str

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        return plan_lines("arg", inputs[0], self.axis, y, traits, better=self.better)


def _rows(context: Context, chain: Chain) -> tuple[str, int]:
    """The tensor and the axis that Softmax and its kin go along: before opset 13 all axes from
    ``axis`` on are one."""
    x, rank = context.node.inputs[0], len(context.x)
    old = context.graph.opset < 13
    axis = context.attribute("axis", 1 if old else -1)
    if not old:
        return x, axis % rank
    axis += rank if axis < 0 else 0
    if axis < rank and math.prod(context.x[axis + 1 :]) == 1:
        return x, axis
    return chain.reshape(x, (math.prod(context.x[:axis]), math.prod(context.x[axis:]))), 1


@register("Softmax", "LogSoftmax")
def _softmax(context: Context) -> list[Lowered]:
    chain = Chain(context)
    x, axis = _rows(context, chain)
    return chain.end(
        chain.add(Softmax(axis, context.node.op_type == "LogSoftmax"), chain.shape(x), x)
    )


@register("Hardmax")
def _hardmax(context: Context) -> list[Lowered]:
    chain = Chain(context)
    x, axis = _rows(context, chain)
    shape = list(chain.shape(x))
    count, shape[axis] = shape[axis], 1
    first = chain.add(Arg(axis, ">"), shape, x)
    places = np.arange(count).reshape([-1] + [1] * (len(shape) - 1 - axis))
    return chain.end(chain("equal", first, chain.constant(places)))


@register("ArgMax", "ArgMin", any_type=True)
def _arg(context: Context) -> list[Lowered] | None:
    """Indices are whole floats until they leave the device: 2^24 is more than an axis has."""
    if not context.is_float(context.node.inputs[0]):
        return None
    better = ">" if context.node.op_type == "ArgMax" else "<"
    better += "=" if context.attribute("select_last_index", 0) else ""
    axis = context.attribute("axis", 0) % len(context.x)
    return [context.op(Arg(axis, better), context.node.inputs[0])]


@register("CumSum")
def _cum_sum(context: Context) -> list[Lowered] | None:
    axis = context.scalar(1)
    if axis is None:
        return None
    flags = (bool(context.attribute(name, 0)) for name in ("exclusive", "reverse"))
    return [context.op(Cumulate(int(axis) % len(context.x), *flags), context.node.inputs[0])]
