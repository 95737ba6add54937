"""Ops over row-major arrays that bring their own kernel: what is computed, and how, in a class."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from heimdall.engine.opencl.grid import ints, line_launch, source
from heimdall.engine.opencl.kernel_op import OpSpec
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.strided import Strided
from heimdall.errors import ModelError

Input = Strided | np.ndarray
_EXACT_HALF = 2048  # whole numbers up to there are exact in half precision


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


@dataclass(frozen=True)
class IndexedOp(ArrayOp):
    """One whose input ``index`` holds indices, at which a table or a cache of ``reached`` lines is
    read. ``exact``: they lie in memory as float, though tensors are half; placement says so."""

    index: ClassVar[int]
    exact: bool = field(default=False, kw_only=True)

    def check_exact(self, reached: int, traits: Traits) -> None:
        """Raise ModelError where indices up to there are numbers that tensors cannot hold."""
        if traits.storage == "half" and not self.exact and reached > _EXACT_HALF:
            raise ModelError(
                f"{reached} lines are reached by computed indices that half precision rounds (from "
                f"{_EXACT_HALF} on): run this network with precision='fp32'"
            )

    @property
    def of_indices(self) -> dict[str, object]:
        """For ``source``: what a kernel takes for the type of its indices."""
        return {"Index": "float" if self.exact else "S"}


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
