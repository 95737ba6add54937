"""What an op computes, as a record, and all that the engine asks about it, in one class a kind.

To add an op with a kernel of its own is to write such a class: a ``PictureOp``, or an ``ArrayOp``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.expression import Step
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.strided import Strided

Input = Layout | Strided | np.ndarray
Inputs = Sequence[Input]
Layouts = Sequence[Layout]
Shape = tuple[int, ...]
Shapes = Sequence[Shape]


class OpSpec(ABC):  # noqa: B024  (its kinds are abstract)
    """A frozen dataclass whose fields say what is computed.

    ``falls_back``: onnxruntime computes it on the CPU. ``moves``: it computes nothing, so that
    placement may make a view of it; ``on_entry``: the host can do it (``on_host``) while it writes
    inputs; ``on_exit``: while it reads outputs. ``fills_halo``: what it makes is the border of its
    input.
    """

    falls_back = False
    moves = False
    on_entry = False
    on_exit = False
    fills_halo = False

    @property
    def window(self) -> ConvSpec | None:
        """How a convolution slides over its first input."""
        return None

    @property
    def step(self) -> Step | None:
        """The only step of an elementwise op."""
        return None

    @property
    def weight_count(self) -> int:
        return 0

    @property
    def writes_channels(self) -> bool:
        """Whether the result can be some channels of a larger picture."""
        return self.window is not None

    @property
    def ignores_halo(self) -> bool:
        """Whether it neither touches what is stored around its input, nor makes a view of it."""
        return False

    @property
    def wants_pictures(self) -> bool:
        """Whether an input of the network that it reads should come as a picture."""
        return False

    def operations(self, inputs: Shapes, y: Shape) -> int:
        """What the op must at least compute, given all shapes: a multiply-add counts as two."""
        return max([*map(math.prod, inputs), math.prod(y)])

    def fits(self, inputs: Shapes, outputs: Shapes) -> bool:
        """True if the op makes such outputs of such inputs; ``verify`` asks after every pass."""
        return True

    def on_host(self, arrays: Sequence[np.ndarray], shape: Shape) -> np.ndarray:
        """The result, of that shape: a view where numpy can make one."""
        raise NotImplementedError


class PictureOp(OpSpec):
    """An op over pictures in blocks of channels, of the same layout as its outputs.

    ``vectors``: it makes one value a channel, written one after the other without a halo.
    """

    vectors = False
    ignores_halo = True

    @abstractmethod
    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        """The launches. Refs: "i0".. for what lies on the device, "y" (and "y1") for the outputs,
        "scratch" for a temporary, and those of ``constants``."""

    @property
    def writes_channels(self) -> bool:
        return not self.vectors

    @property
    def wants_pictures(self) -> bool:
        return True


def only(inputs: Sequence[Input]) -> Layout:
    """The one picture of an op that reads no more."""
    (x,) = inputs
    assert isinstance(x, Layout)
    return x
