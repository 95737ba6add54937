"""What every rewrite of a module must keep, checked after each: see ``passes``.

A network whose ops read unwritten tensors, or whose shapes do not fit, would read and write
memory that is not its own. What fits before a pass and not after it is the pass's mistake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.kernel_op import KernelOp
from heimdall.engine.opencl.lowered import (
    Cast,
    Concat,
    Conv,
    Expand,
    Fallback,
    Lowered,
    Module,
    Pad,
    Reshape,
    Separable,
    Shape,
    Slice,
    Transpose,
)
from heimdall.engine.opencl.strided import broadcasts


class BrokenModuleError(RuntimeError):
    """A pass has made what cannot be run: a mistake in Heimdall, not in the model."""


def verify(module: Module, after: str = "", fitting: Sequence[Lowered] = ()) -> None:
    """Raise BrokenModuleError unless the ops of a module can be run one after another.

    Each input must be made before it is read, no tensor twice, and all outputs; every tensor has a
    shape, and shapes fit what the op computes; ops stand for nodes of the graph, and every node
    that an output depends on is part of one. ``after`` is the pass to blame. ``fitting`` are ops
    whose shapes are known to fit.
    """
    for op, problem in _problems(module, {id(op) for op in fitting}):
        where = f"after {after}: " if after else ""
        if op is None:
            raise BrokenModuleError(f"{module.graph.name}, {where}{problem}")
        nodes = ", ".join(op.nodes) or "no node"
        raise BrokenModuleError(
            f"{module.graph.name}, {where}{op.kind} -> {', '.join(op.outputs)} ({nodes}): {problem}"
        )


def _problems(module: Module, fitting: set[int]) -> Iterator[tuple[Lowered | None, str]]:
    made = {*module.inputs, *module.constants}
    stood_for: set[str] = set()
    for op in module.ops:
        if not made.issuperset(op.inputs):
            (first, *_) = (name for name in op.inputs if name not in made)
            yield op, f"reads {first!r}, which nothing before it makes"
        if not made.isdisjoint(op.outputs):
            yield op, f"makes {min(made.intersection(op.outputs))!r}, which is there already"
        made.update(op.outputs)
        stood_for.update(op.nodes)
        if id(op) not in fitting and (problem := _misfit(module, op)):
            yield op, problem
    for name in module.outputs:
        if name not in made:
            yield None, f"nothing makes the output {name!r}"
    if lost := module.graph.needed - stood_for:
        yield None, f"no op stands for node {min(lost)!r}"


def _misfit(module: Module, op: Lowered) -> str:
    """What is wrong with the tensors of an op; empty when nothing is."""
    shapes = module.shapes
    try:
        inputs, outputs = [shapes[name] for name in op.inputs], [shapes[n] for n in op.outputs]
    except KeyError as error:
        return f"{error} has no shape"
    if isinstance(op.spec, Fallback):
        strange = {*op.inputs, *op.outputs} - module.graph.tensors.keys()
        return f"runs in onnxruntime, where no tensor is called {min(strange)!r}" if strange else ""
    spec = op.spec
    try:
        if isinstance(spec, KernelOp):
            fits = spec.fits(inputs, outputs)
        else:
            fits = _RULES[type(spec)](spec, inputs, outputs)
    except (IndexError, ValueError):  # too few tensors, or axes
        fits = False
    return "" if fits else f"does not make {_said(outputs)} of {_said(inputs)}"


def _said(shapes: Sequence[Shape]) -> str:
    return " and ".join("x".join(map(str, shape)) or "a number" for shape in shapes) or "nothing"


# --- one rule a kind of op without a record: whether it makes such outputs of such inputs ---

_Shapes = Sequence[Shape]


def _conv(spec: Conv, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x, *residual), (y,) = inputs, outputs
    channels, made = _channels(spec)
    if residual not in ([], [y]) or (spec.bias is not None and spec.bias.shape != (made,)):
        return False
    if spec.matrix:
        return (x[-1], y[-1]) == (channels, made) and math.prod(x[:-1]) == math.prod(y[:-1])
    pictures = len(x) == len(y) == 4 and x[0] == y[0] == 1
    return pictures and (x[1], y[1]) == (channels, made) and _slides(spec.spec, x, y)


def _channels(conv: Conv) -> tuple[int, int]:
    """The channels that a convolution reads, and those that it makes."""
    first, second = (int(size) for size in conv.weights.shape[:2])
    groups = conv.spec.groups
    return (first, second * groups) if conv.spec.transposed else (second * groups, first)


def _slides(spec: ConvSpec, x: Shape, y: Shape) -> bool:
    """Whether a window over x gives rows and columns of y; ``output_padding`` may add to them."""
    height, width = spec.output_size(x[2], x[3])
    if spec.transposed:
        return y[2] >= height and y[3] >= width
    return (y[2], y[3]) == (height, width)


def _separable(spec: Separable, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x, *rest), (y,) = inputs, outputs
    between = (1, x[1], *spec.depthwise.spec.output_size(x[2], x[3]))
    return _conv(spec.depthwise, [x], [between]) and _conv(spec.pointwise, [between, *rest], [y])


def _pad(spec: Pad, inputs: _Shapes, outputs: _Shapes) -> bool:
    ((_, channels, height, width),) = inputs
    top, left, bottom, right = spec.pads
    padded = (1, channels + sum(spec.channels), height + top + bottom, width + left + right)
    return [padded] == list(outputs)


def _concat(spec: Concat, inputs: _Shapes, outputs: _Shapes) -> bool:
    (y,), axis = outputs, spec.axis
    rest = {(x[:axis], x[axis + 1 :]) for x in inputs}
    return rest == {(y[:axis], y[axis + 1 :])} and sum(x[axis] for x in inputs) == y[axis]


def _slice(spec: Slice, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x,), (y,) = inputs, outputs
    axes = zip(spec.starts, spec.steps, x, y, strict=True)
    return all(
        0 <= first < size and 0 <= first + step * (count - 1) < size
        for first, step, size, count in axes
    )


def _transpose(spec: Transpose, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x,), (y,) = inputs, outputs
    turned = tuple(x[axis] for axis in spec.perm)
    return sorted(spec.perm) == list(range(len(x))) and y == turned


def _same_count(spec: Reshape | Cast, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x,), (y,) = inputs, outputs
    return math.prod(x) == math.prod(y)


def _expand(spec: Expand, inputs: _Shapes, outputs: _Shapes) -> bool:
    (x,), (y,) = inputs, outputs
    return broadcasts(x, y)


_RULES: dict[type, Callable[[Any, _Shapes, _Shapes], bool]] = {
    Cast: _same_count,
    Concat: _concat,
    Conv: _conv,
    Expand: _expand,
    Pad: _pad,
    Reshape: _same_count,
    Separable: _separable,
    Slice: _slice,
    Transpose: _transpose,
}
