"""Find instance norm and gates such as hard-swish, which networks spell out in small operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from heimdall.engine.opencl.expression import Expression, Operand, Step
from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.neighbours import Neighbours
from heimdall.engine.opencl.operators.lines import Normalise
from heimdall.engine.opencl.operators.products import MatMul
from heimdall.engine.opencl.ops_elementwise import Elementwise
from heimdall.engine.opencl.ops_picture import Moments
from heimdall.engine.opencl.ops_reduce import Reduce


def _step(op: Lowered | None, *functions: str) -> Step | None:
    """The single step of an elementwise op, where it is one of ``functions``."""
    step = op.spec.step if op else None
    return step if step and step.function in functions else None


def _scalar(step: Step) -> float | None:
    """The scalar of a two-argument step whose other argument is a tensor."""
    numbers = [arg for arg in step.args if isinstance(arg, float)]
    return numbers[0] if len(step.args) == 2 and len(numbers) == 1 else None


def fuse_moments(module: Module) -> None:
    """Instance norm spelled out: (x - mean) / sqrt(mean((x - mean)^2) + eps)."""
    producers = module.producers()
    for op in list(module.ops):
        _fuse_one_moments(module, producers, op)
    module.drop_unused()


def _fuse_one_moments(module: Module, producers: dict[str, Lowered], division: Lowered) -> None:
    if _step(division, "div") is None or len(division.inputs) != 2:
        return
    centred, root = (producers.get(name) for name in division.inputs)
    shifted = producers.get(root.inputs[0]) if root and _step(root, "sqrt") else None
    step = _step(shifted, "add")
    epsilon = _scalar(step) if step else None
    variance = producers.get(shifted.inputs[0]) if shifted else None
    square = producers.get(variance.inputs[0]) if variance else None
    if (
        epsilon is None
        or centred is None
        or not _step(centred, "sub")
        or not _step(square, "square")
    ):
        return
    assert variance is not None
    assert square is not None
    assert root is not None
    mean = producers.get(centred.inputs[1]) if len(centred.inputs) == 2 else None
    x = centred.inputs[0]
    if mean is None or mean.inputs[0] != x or square.inputs[0] != centred.output:
        return
    picture = len(module.shapes[x]) == 4 and module.shapes[x][0] == 1
    over_picture = Reduce("mean", (2, 3))
    if not picture or mean.spec != over_picture or variance.spec != over_picture:
        return
    assert shifted is not None
    nodes = mean.nodes + square.nodes + variance.nodes + shifted.nodes + root.nodes
    deviation = module.tensor(f"{root.output}/deviation", module.shapes[mean.output])
    moments = Lowered(Moments(epsilon), (x,), (mean.output, deviation), nodes)
    multiply = Elementwise(Expression.of("mul", Operand(0), Operand(1)))
    product = replace(division, spec=multiply, inputs=(centred.output, deviation))
    for op, by in ((mean, moments), (division, product)):
        module.replace(op, by)
        producers |= dict.fromkeys(by.outputs, by)


def fuse_lengths(module: Module) -> None:
    """Normalisation by the root mean square, spelled out: x / sqrt(mean(x^2) + eps) * scale."""
    _rewrite(module, _normalised)


def _normalised(module: Module, uses: _Uses, op: Lowered) -> tuple[Lowered, ...]:
    if not _step(op, "mul") or len(op.inputs) != 2:
        return ()
    scale = next((name for name in op.inputs if name in module.constants), None)
    if scale is None:
        return ()
    divided = uses.producers.get(op.inputs[1 - op.inputs.index(scale)])
    found = _divided(uses, divided)
    if divided is None or found is None:
        return ()
    x, root, nodes = found
    shifted = uses.producers.get(root.inputs[0]) if _step(root, "sqrt") else None
    step = _step(shifted, "add")
    epsilon = _scalar(step) if step else None
    mean = uses.producers.get(shifted.inputs[0]) if shifted else None
    square = uses.producers.get(mean.inputs[0]) if mean else None
    last = len(module.shapes[x]) - 1
    if epsilon is None or mean is None or mean.spec != Reduce("mean", (last,)):
        return ()
    if not _step(square, "square") or square is None or square.inputs[0] != x:
        return ()
    if module.shapes[scale] != module.shapes[x][last:] or not last:
        return ()
    assert shifted is not None
    nodes = square.nodes + mean.nodes + shifted.nodes + root.nodes + nodes + op.nodes
    return (Lowered(Normalise(last, epsilon, centred=False), (x, scale), op.outputs, nodes),)


def _divided(uses: _Uses, op: Lowered | None) -> tuple[str, Lowered, tuple[str, ...]] | None:
    """x and the root of x / root or x * (1 / root), and the nodes that divide."""
    if op is None or len(op.inputs) != 2:
        return None
    if _step(op, "div"):
        root = uses.producers.get(op.inputs[1])
        return None if root is None else (op.inputs[0], root, op.nodes)
    if not _step(op, "mul"):
        return None
    for x, name in (op.inputs, op.inputs[::-1]):
        inverse = uses.producers.get(name)
        step = _step(inverse, "reciprocal", "div")
        if inverse is None or step is None or len(inverse.inputs) != 1:
            continue
        root = uses.producers.get(inverse.inputs[0])
        if root is not None and (step.function == "reciprocal" or step.args[0] == 1.0):
            return x, root, inverse.nodes + op.nodes
    return None


def fuse_gates(module: Module) -> None:
    """x * clip(x + 3, 0, 6) / 6, x * sigmoid(x) and relatives become single steps."""
    _rewrite(module, _hard_sigmoid)
    _rewrite(module, _gate)
    # where numbers are rounded to steps, two scalings and their product differ in some of them
    if not any(_step(op, "round") for op in module.ops):
        Neighbours(module).join_pairs(_merged_scales)
        Neighbours(module).join_pairs(_without_scale)
        Neighbours(module).join_pairs(_scaled_product)
    module.drop_unused()


def _rewrite(module: Module, change: _Change) -> None:
    """One walk: what ``change`` makes of an op, if anything, takes its place."""
    uses = _Uses(module.producers(), module.consumers())
    ops: list[Lowered] = []
    for op in module.ops:
        by = change(module, uses, op) or (op,)
        uses.producers.update((each.output, each) for each in by if each is not op)
        ops += by
    module.ops = ops
    module.drop_unused()


class _Uses(NamedTuple):
    """The op that writes, and those that read a tensor: the latter as before the walk."""

    producers: dict[str, Lowered]
    consumers: dict[str, list[Lowered]]


_Change = Callable[[Module, _Uses, Lowered], tuple[Lowered, ...]]


def _gate(module: Module, uses: _Uses, op: Lowered) -> tuple[Lowered, ...]:
    """x * sigmoid(x), with a factor wherever it stands."""
    producers = uses.producers
    if not _step(op, "mul") or len(op.inputs) != 2:
        return ()
    (a, scale_a, nodes_a), (b, scale_b, nodes_b) = (
        _unscaled(producers, name) for name in op.inputs
    )
    for x, gate in ((a, producers.get(b)), (b, producers.get(a))):
        step = _step(gate, "hard_sigmoid", "sigmoid")
        if gate is None or step is None or gate.inputs[0] != x:
            continue
        function = "silu" if step.function == "sigmoid" else "hard_swish"
        inner = module.tensor(f"{op.output}/gated", module.shapes[op.output])
        nodes = gate.nodes + nodes_a + nodes_b + op.nodes
        product = Elementwise(Expression.of(function, *step.args))
        scaled = Elementwise(Expression.of("mul", Operand(0), scale_a * scale_b))
        gated = Lowered(product, (x,), (inner,), nodes)
        return gated, replace(op, spec=scaled, inputs=(inner,))
    return ()


def _merged_scales(around: Neighbours, before: Lowered, op: Lowered) -> Lowered | None:
    """Two scalings in a row are one."""
    factor, inner = _factor(op), _step(before, "mul")
    inner_scale = _scalar(inner) if inner else None
    if factor is None or inner_scale is None:
        return None
    scaling = Elementwise(Expression.of("mul", Operand(0), inner_scale * factor))
    return replace(op, spec=scaling, inputs=before.inputs, nodes=before.nodes + op.nodes)


def _without_scale(around: Neighbours, before: Lowered, op: Lowered) -> Lowered | None:
    """A scaling by 1 is none."""
    factor = _factor(op)
    if factor is None or abs(factor - 1.0) >= 1e-6 or not isinstance(before.spec, Elementwise):
        return None
    return replace(before, outputs=op.outputs, nodes=before.nodes + op.nodes)


def _scaled_product(around: Neighbours, before: Lowered, op: Lowered) -> Lowered | None:
    """A product that is scaled, as that of queries and keys, is stored once."""
    factor, product = _factor(op), before.spec
    if factor is None or not isinstance(product, MatMul):
        return None
    spec, nodes = replace(product, scale=product.scale * factor), before.nodes + op.nodes
    return replace(op, spec=spec, inputs=before.inputs, nodes=nodes)


def _factor(op: Lowered) -> float | None:
    """What an op multiplies its input by; None for any other op, c / x and x / 0 among them."""
    step = _step(op, "mul", "div")
    scale = _scalar(step) if step else None
    if step is None or scale is None or step.function == "mul":
        return scale
    return None if step.args[0] == scale or scale == 0.0 else 1.0 / scale


def _hard_sigmoid(module: Module, uses: _Uses, op: Lowered) -> tuple[Lowered, ...]:
    """clip(x + b, 0, h) = h * hard_sigmoid(x / h + b / h), where that leads to a gate: by itself it
    would make 54.999996 of 55."""
    step = _step(op, "clip")
    shifted = uses.producers.get(op.inputs[0]) if step and op.inputs else None
    add = _step(shifted, "add")
    shift = _scalar(add) if add else None
    if step is None or shifted is None or shift is None:
        return ()
    low, high = step.args[1:]
    if low != 0.0 or not isinstance(high, float) or not 0.0 < high < 1e30:
        return ()
    if not _becomes_gate(uses, op.output, shifted.inputs[0], high):
        return ()
    unit = module.tensor(f"{op.output}/unit", module.shapes[op.output])
    gate = Expression.of("hard_sigmoid", Operand(0), 1.0 / high, shift / high)
    scaled = Elementwise(Expression.of("mul", Operand(0), high))
    made = Lowered(Elementwise(gate), shifted.inputs, (unit,), shifted.nodes + op.nodes)
    return made, replace(op, spec=scaled, inputs=(unit,))


def _becomes_gate(uses: _Uses, name: str, x: str, high: float) -> bool:
    """Whether a tensor of 0 .. ``high`` is scaled to 0 .. 1, or multiplied by (a multiple of) x."""
    for op in uses.consumers.get(name, []):
        factor = _factor(op)
        if factor is None:
            others = [_unscaled(uses.producers, other)[0] for other in op.inputs if other != name]
            if _step(op, "mul") and _unscaled(uses.producers, x)[0] in others:
                return True
            continue
        near = abs(high * factor - 1.0) < 1e-3  # exporters write 0.1666 for 1/6
        if near or _becomes_gate(uses, op.output, x, high * factor):
            return True
    return False


def _unscaled(producers: dict[str, Lowered], name: str) -> tuple[str, float, tuple[str, ...]]:
    """The tensor behind multiplications by scalars, their product, and their nodes."""
    factor = 1.0
    nodes: tuple[str, ...] = ()
    while (step := _step(producers.get(name), "mul")) and (scale := _scalar(step)) is not None:
        factor *= scale
        nodes = producers[name].nodes + nodes
        name = producers[name].inputs[0]
    return name, factor, nodes
