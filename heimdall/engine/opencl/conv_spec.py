"""What a convolution is, apart from where its tensors lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heimdall.engine.opencl.activation import NONE, Activation
from heimdall.engine.opencl.layout import Halo, Layout


@dataclass(frozen=True)
class ConvSpec:
    """One ONNX Conv, ConvTranspose or Gemm with what is fused into it.

    ``pads`` are (top, left, bottom, right). A residual ``r`` is added before the activation,
    ``act(conv + r)``, or after it, ``act(conv) + r``. ConvTranspose (``transposed``) needs no
    output_padding here: the size of the output says it. A fully connected layer is a 1x1
    convolution over a matrix layout, or, right after Flatten, one whose kernel is the picture.
    With an ``order`` (of layers in groups) channel ``order[c]`` of x is taken for its channel c.
    """

    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: Halo = (0, 0, 0, 0)
    groups: int = 1
    transposed: bool = False
    activation: Activation = NONE
    residual_before_activation: bool = True
    order: tuple[int, ...] = ()

    def output_size(self, height: int, width: int) -> tuple[int, int]:
        """(height, width) of the output of a picture, without output_padding."""
        sizes = []
        for axis, size in enumerate((height, width)):
            reach = (self.kernel[axis] - 1) * self.dilations[axis] + 1
            padding = self.pads[axis] + self.pads[axis + 2]
            stride = self.strides[axis]
            if self.transposed:
                sizes.append((size - 1) * stride + reach - padding)
            else:
                sizes.append((size + padding - reach) // stride + 1)
        return sizes[0], sizes[1]

    def makes(self, size: Sequence[int], out: Sequence[int]) -> bool:
        """Whether it gives a picture of size ``out``; ``output_padding`` may add to that."""
        height, width = self.output_size(*size)
        if self.transposed:
            return out[0] >= height and out[1] >= width
        return tuple(out) == (height, width)

    def required_halo(self, size: Sequence[int], out: Sequence[int]) -> Halo:
        """Zeros that the input (``size`` = height, width) must store around its picture so
        that an output of size ``out`` can be computed without testing bounds."""
        before, after = [], []
        for axis in (0, 1):
            low, high = self._read_range(axis, out[axis])
            before.append(max(0, -low))
            after.append(max(0, high - (size[axis] - 1)))
        return before[0], before[1], after[0], after[1]

    def _read_range(self, axis: int, out: int) -> tuple[int, int]:
        """First and last input index that output indices 0..out-1 read along an axis."""
        stride, pad = self.strides[axis], self.pads[axis]
        reach = (self.kernel[axis] - 1) * self.dilations[axis]
        if not self.transposed:
            return -pad, (out - 1) * stride + reach - pad
        # output o reads inputs (o + pad - k * dilation) / stride where that is whole
        return -((reach - pad) // stride), (out - 1 + pad) // stride


@dataclass(frozen=True)
class Layer:
    """One convolution and where its tensors lie: all that its kernels depend on.

    ``weights`` (float32) are ONNX's: [oc, ic/groups, kh, kw], or [ic, oc/groups, kh, kw] when
    ``spec.transposed``.
    """

    spec: ConvSpec
    x: Layout
    y: Layout
    weights: np.ndarray
    bias: np.ndarray | None = None
    residual: Layout | None = None
    clears: bool = False  # the halo of y held something else
    half: bool = False  # tensors and weights are stored in half precision

    @cached_property
    def signature(self) -> str:
        """Equal for layers that run equally fast: sizes, not weights or places in memory.

        In words that stay when a kernel's text changes: choices are kept and shipped under it.
        """
        spec, x, y = self.spec, self.x, self.y
        parts = [
            f"{spec.kernel} stride {spec.strides} dilation {spec.dilations} groups {spec.groups}",
            f"{(x.channels, x.height, x.width)}/{x.block} halo {x.halo}",
            f"{(y.channels, y.height, y.width)}/{y.block} halo {y.halo}",
            "transposed" if spec.transposed else "",
            "residual" if self.residual else "",
            spec.activation.kind if spec.activation.kind != "none" else "",
            "half" if self.half else "",
        ]
        return ", ".join(part for part in parts if part)
