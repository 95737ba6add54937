"""Ops with kernels of their own, as records: what is computed, how, and over which layouts.

Everything that the engine asks about such an op is in its class: to add one is to write one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.strided import Strided

Input = Layout | Strided | np.ndarray
Shape = tuple[int, ...]


class KernelOp(ABC):  # noqa: B024  (its kinds are abstract)
    """A frozen dataclass whose fields say what is computed."""

    def operations(self, inputs: Sequence[Shape], y: Shape) -> int:
        """What the op must at least compute, given all shapes: a multiply-add counts as two."""
        return max([*map(math.prod, inputs), math.prod(y)])

    def fits(self, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> bool:
        """True if the op makes such outputs of such inputs; ``verify`` asks after every pass."""
        return True

    @property
    def wants_pictures(self) -> bool:
        """Whether an input of the network that it reads should come as a picture."""
        return False


class PictureOp(KernelOp):
    """An op over pictures in blocks of channels, of the same layout as its outputs.

    ``vectors``: it makes one value a channel, written one after the other without a halo.
    ``ignores_halo``: it neither reads nor writes what is stored around its input.
    """

    vectors: ClassVar[bool] = False
    ignores_halo: ClassVar[bool] = True

    @abstractmethod
    def plan_pictures(
        self, inputs: Sequence[Input], outputs: Sequence[Layout], traits: Traits
    ) -> Plan:
        """The launches. Refs: "i0".. for what lies on the device, "y" (and "y1") for the outputs,
        "scratch" for a temporary, and those of ``constants``."""

    @property
    def wants_pictures(self) -> bool:
        return True


def only(inputs: Sequence[Input]) -> Layout:
    """The one picture of an op that reads no more."""
    (x,) = inputs
    assert isinstance(x, Layout)
    return x
