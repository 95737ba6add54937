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

    The output is a contiguous array, and so are inputs unless ``reads`` says more; those that are
    constants of the network are numpy's.
    """

    def reads(self, index: int, view: Strided) -> bool:
        """Whether input ``index`` may lie like this; else it is copied."""
        return view.is_contiguous

    @abstractmethod
    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        """The launches. Refs: "i0".. for arrays of the device, "y", and those of ``constants``."""


def named(index: int, value: Input) -> str:
    """What input ``index`` is called by Refs."""
    return f"c{index}" if isinstance(value, np.ndarray) else f"i{index}"


def constants_of(inputs: Sequence[Input], traits: Traits) -> dict[str, np.ndarray]:
    """The arrays of constants among inputs."""
    return {
        named(index, value): np.ascontiguousarray(value, traits.dtype).reshape(-1)
        for index, value in enumerate(inputs)
        if isinstance(value, np.ndarray)
    }


def operands(
    inputs: Sequence[Input], traits: Traits
) -> tuple[list[list[Arg]], dict[str, np.ndarray]]:
    """``buffer, base`` of every input as kernel arguments, and the arrays of constants."""
    args: list[list[Arg]] = []
    for index, value in enumerate(inputs):
        offset = 0 if isinstance(value, np.ndarray) else value.offset
        args.append([Ref(named(index, value)), *ints(offset)])
    return args, constants_of(inputs, traits)


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
