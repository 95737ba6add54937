"""Ops over row-major arrays that bring their own kernel: what is computed, and how, in a class."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from heimdall.engine.opencl.grid import ints, line_launch, source
from heimdall.engine.opencl.kernel_op import OpSpec
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided

Input = Strided | np.ndarray


class ArrayOp(OpSpec):
    """An op over row-major arrays. One output.

    Inputs and output are contiguous arrays; inputs that are constants of the network are numpy's.
    """

    @abstractmethod
    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        """The launches. Refs: "i0".. for arrays of the device, "y", and those of ``constants``."""


def operands(
    inputs: Sequence[Input], traits: Traits
) -> tuple[list[list[Arg]], dict[str, np.ndarray]]:
    """``buffer, base`` of every input as kernel arguments, and the arrays of constants."""
    args, constants = [], {}
    for index, value in enumerate(inputs):
        if isinstance(value, np.ndarray):
            name, offset = f"c{index}", 0
            constants[name] = np.ascontiguousarray(value, traits.dtype).reshape(-1)
        else:
            name, offset = f"i{index}", value.offset
        args.append([Ref(name), *ints(offset)])
    return args, constants


def plan_lines(
    kernel: str, x: Input, axis: int, y: Strided, traits: Traits, **variables: object
) -> Plan:
    """A kernel whose work-items do a line along ``axis`` of x each."""
    (first,), constants = operands([x], traits)
    count, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    lines = math.prod(x.shape) // count
    args = [*first, Ref("y"), *ints(y.offset, count, inner, lines)]
    return Plan(
        (line_launch(source(kernel, traits, 1, **variables), lines, args, traits),), constants
    )
