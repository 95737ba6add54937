"""A convolution as plain passes over its input.

A pass computes outputs on a grid of ``out_step`` from taps at even distances. A Conv is one
pass. A ConvTranspose of stride s is s x s of them: outputs whose place has the same remainder
modulo s see the same subset of the kernel, so no input is multiplied by the zeros that a
stretched picture would hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from heimdall.engine.opencl.conv_spec import ConvSpec


@dataclass(frozen=True, eq=False)
class Pass:
    """Output pixel ``out_start + out_step * i`` reads the inputs
    ``first + stride * i + tap_step * k`` for k = 0 .. taps - 1, along each axis (y, x).

    ``weights``: [output channel, input channel of its group, taps y, taps x].
    """

    weights: np.ndarray
    first: tuple[int, int]
    stride: tuple[int, int]
    tap_step: tuple[int, int]
    out_start: tuple[int, int]
    out_step: tuple[int, int]
    out_size: tuple[int, int]

    @property
    def taps(self) -> tuple[int, int]:
        return self.weights.shape[2], self.weights.shape[3]


def passes(spec: ConvSpec, weights: np.ndarray, out: tuple[int, int]) -> list[Pass]:
    """The passes that compute an output of ``out`` = (height, width)."""
    if not spec.transposed:
        top, left = spec.pads[:2]
        return [Pass(weights, (-top, -left), spec.strides, spec.dilations, (0, 0), (1, 1), out)]
    weights = _output_major(weights, spec.groups)
    rows = _phases(spec, 0, out[0])
    columns = _phases(spec, 1, out[1])
    return [
        Pass(
            weights[:, :, row.kernel][:, :, :, column.kernel],
            (row.first, column.first),
            (1, 1),
            (row.step, column.step),
            (row.start, column.start),
            spec.strides,
            (row.count, column.count),
        )
        for row in rows
        for column in columns
    ]


def _output_major(weights: np.ndarray, groups: int) -> np.ndarray:
    """ConvTranspose weights [ic, oc/g, kh, kw] -> Conv weights [oc, ic/g, kh, kw]."""
    ic, per_group, kh, kw = weights.shape
    grouped = weights.reshape(groups, ic // groups, per_group, kh, kw).transpose(0, 2, 1, 3, 4)
    return grouped.reshape(groups * per_group, ic // groups, kh, kw)


@dataclass(frozen=True)
class _Phase:
    """The outputs of one remainder along one axis, and the kernel indices they see."""

    kernel: list[int]  # descending: along growing input indices
    first: int
    step: int
    start: int
    count: int


def _phases(spec: ConvSpec, axis: int, out: int) -> list[_Phase]:
    """Output o takes weight k from input (o + pad - k * dilation) / stride where that is whole."""
    stride, pad = spec.strides[axis], spec.pads[axis]
    size, dilation = spec.kernel[axis], spec.dilations[axis]
    found = []
    for start in range(min(stride, out)):
        fits = (k for k in range(size) if (start + pad - k * dilation) % stride == 0)
        kernel = sorted(fits, reverse=True)
        first = (start + pad - kernel[0] * dilation) // stride if kernel else 0
        step = dilation // gcd(dilation, stride)
        found.append(_Phase(kernel, first, step, start, -(-(out - start) // stride)))
    return found
