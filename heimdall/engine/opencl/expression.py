"""Chains of elementwise operators as one expression, and its OpenCL C.

``sigmoid(x * scale + y)`` is three steps over two operands. Fusing such chains into one kernel
saves a pass over memory for each step. Scalars become kernel arguments, so that layers which
differ in them only share one kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from heimdall.engine.opencl.functions import FUNCTIONS


@dataclass(frozen=True)
class Operand:
    """The n-th tensor of an expression."""

    index: int


@dataclass(frozen=True)
class Result:
    """The value of the n-th step."""

    index: int


Value = Operand | Result | float


@dataclass(frozen=True)
class Step:
    """One of ``functions.FUNCTIONS`` applied to operands, earlier results and scalars."""

    function: str
    args: tuple[Value, ...]


@dataclass(frozen=True)
class Expression:
    """Steps in order; the last one is the value. ``arity`` tensors are read."""

    steps: tuple[Step, ...]
    arity: int

    @classmethod
    def of(cls, function: str, *args: Value) -> Expression:
        """A single step."""
        arity = len({arg.index for arg in args if isinstance(arg, Operand)})
        return cls((Step(function, args),), arity)

    @property
    def scalars(self) -> tuple[float, ...]:
        """The scalar arguments in the order of ``code``."""
        return tuple(arg for step in self.steps for arg in step.args if isinstance(arg, float))

    @property
    def may_overflow(self) -> bool:
        """True when padding lanes may become infinite or NaN and must be masked."""
        numbers = [
            arg for step in self.steps if step.function != "clip"  # its limits may be infinite
            for arg in step.args if isinstance(arg, float)
        ]  # fmt: skip
        finite = all(FUNCTIONS[step.function].finite for step in self.steps)
        return not (finite and all(map(math.isfinite, numbers)))

    @property
    def code(self) -> str:
        """OpenCL C that declares ``t0..tn`` from vectors ``v0..`` and scalars ``s0..``."""
        lines, scalars = [], 0
        for index, step in enumerate(self.steps):
            names = []
            for arg in step.args:
                if isinstance(arg, Operand):
                    names.append(f"v{arg.index}")
                elif isinstance(arg, Result):
                    names.append(f"t{arg.index}")
                else:
                    names.append(f"(V)(s{scalars})")
                    scalars += 1
            lines.append(f"V t{index} = {FUNCTIONS[step.function].code.format(*names)};")
        return " ".join(lines)

    @property
    def contracted(self) -> Expression:
        """With ``a - b * s`` as one step of one rounding, where the value is rounded to steps: as
        what adds quantised numbers does it."""
        steps = self.steps
        if not any(step.function == "round" for step in steps):
            return self
        uses = [arg for step in steps for arg in step.args]
        for index, step in enumerate(steps):
            second = step.args[1] if step.function == "sub" else None
            if not isinstance(second, Result) or uses.count(second) > 1:
                continue
            product = steps[second.index]
            if product.function == "mul" and isinstance(product.args[1], float):
                joined = Step("sub_product", (step.args[0], *product.args))
                kept = _without((*steps[:index], joined, *steps[index + 1 :]), second.index)
                return Expression(kept, self.arity).contracted
        return self

    def renumbered(self, operands: dict[int, Value], offset: int) -> tuple[Step, ...]:
        """The steps with operands replaced and results shifted by ``offset``."""

        def moved(arg: Value) -> Value:
            if isinstance(arg, Operand):
                return operands[arg.index]
            return Result(arg.index + offset) if isinstance(arg, Result) else arg

        return tuple(Step(step.function, tuple(map(moved, step.args))) for step in self.steps)


def _without(steps: tuple[Step, ...], gone: int) -> tuple[Step, ...]:
    """Steps but one, whose result is unused."""

    def moved(arg: Value) -> Value:
        behind = isinstance(arg, Result) and arg.index > gone
        return Result(arg.index - 1) if behind else arg  # type: ignore[union-attr]

    kept = steps[:gone] + steps[gone + 1 :]
    return tuple(Step(step.function, tuple(map(moved, step.args))) for step in kept)


def compose(
    outer: Expression,
    outer_inputs: tuple[str, ...],
    name: str,
    inner: Expression,
    inner_inputs: tuple[str, ...],
) -> tuple[Expression, tuple[str, ...]]:
    """Replace operand ``name`` of ``outer`` by ``inner``; return the expression and its inputs."""
    inputs = tuple(dict.fromkeys([*inner_inputs, *(i for i in outer_inputs if i != name)]))
    index = {tensor: Operand(i) for i, tensor in enumerate(inputs)}
    first = inner.renumbered({i: index[t] for i, t in enumerate(inner_inputs)}, 0)
    inner_value = Result(len(first) - 1)
    operands: dict[int, Value] = {
        i: inner_value if tensor == name else index[tensor] for i, tensor in enumerate(outer_inputs)
    }
    second = outer.renumbered(operands, len(first))
    return Expression(first + second, len(inputs)), inputs
