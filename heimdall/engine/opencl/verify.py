"""What every rewrite of a module must keep, checked after each: see ``passes``.

A network whose ops read unwritten tensors, or whose shapes do not fit, would read and write
memory that is not its own. What fits before a pass and not after it is the pass's mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heimdall.engine.opencl.kernel_op import Shape
from heimdall.engine.opencl.lowered import Lowered, Module


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
        if id(op) not in fitting and (problem := misfit(module, op)):
            yield op, problem
    for name in module.outputs:
        if name not in made:
            yield None, f"nothing makes the output {name!r}"
    if lost := module.graph.needed - stood_for:
        yield None, f"no op stands for node {min(lost)!r}"


def misfit(module: Module, op: Lowered) -> str:
    """What is wrong with the tensors of an op; empty when nothing is."""
    shapes = module.shapes
    try:
        inputs, outputs = [shapes[name] for name in op.inputs], [shapes[n] for n in op.outputs]
    except KeyError as error:
        return f"{error} has no shape"
    if op.spec.falls_back:
        strange = {*op.inputs, *op.outputs} - module.graph.tensors.keys()
        return f"runs in onnxruntime, where no tensor is called {min(strange)!r}" if strange else ""
    try:
        fits = op.spec.fits(inputs, outputs)
    except (IndexError, ValueError):  # too few tensors, or axes
        fits = False
    return "" if fits else f"does not make {_said(outputs)} of {_said(inputs)}"


def _said(shapes: Sequence[Shape]) -> str:
    return " and ".join("x".join(map(str, shape)) or "a number" for shape in shapes) or "nothing"
