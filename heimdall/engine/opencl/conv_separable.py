"""A depthwise convolution and the 1x1 convolution that reads it, as one launch on a CPU.

Half of the layers of a mobile network are such pairs. Where several cores share the work, each
launch costs the time in which they wait for the last one and are woken again, 8-15 us, and one
layer of a small network takes 30.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heimdall.engine.opencl import conv_pack
from heimdall.engine.opencl.conv_build import ConvBuilder
from heimdall.engine.opencl.conv_check import check
from heimdall.engine.opencl.conv_pass import passes
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.conv_tiles import Split
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import Separable
from heimdall.engine.opencl.separable_tiles import NEAR_FLOATS, separable_cut


def plan_separable(
    pair: Separable, inputs: Sequence[Layout], y: Layout, traits: Traits, clears: bool = False
) -> Plan:
    """Launches and packed constants of both convolutions.

    ``inputs``: x and, if there is one, the residual. Refs as ``plan_conv``; all tensors are in
    blocks of ``traits.block`` channels, and the halo of x is what
    ``pair.depthwise`` requires. y must not share memory with x or the residual.

    Raises ModelError when sizes, halo or layouts do not fit each other.
    """
    inner, outer, (x, *residual) = pair.depthwise, pair.pointwise, inputs
    between = Layout(x.channels, y.height, y.width, traits.block)
    first = Layer(inner.spec, x, between, inner.weights, inner.bias)
    rest = outer.weights, outer.bias, residual[0] if residual else None, clears
    second = Layer(outer.spec, between, y, *rest)
    check(first, traits)
    check(second, traits)
    build = _Builder(replace(second, x=x), traits, {})
    build.add(first, outer.weights)
    return build.plan


class _Builder(ConvBuilder):
    """The epilogue and the results are the pointwise layer's, the window the depthwise one's."""

    def add(self, first: Layer, matrix: np.ndarray) -> None:
        """``matrix`` are the weights of the pointwise layer."""
        spec, x, lanes = first.spec, self.x, self.traits.block
        (part,) = passes(spec, first.weights, (self.y.height, self.y.width))
        cut = separable_cut(x.channels, self.y, self.traits)
        tile, end = cut.tile, cut.rest + cut.tile.half
        whole = self.blocks - end
        last = -(-(x.channels - (x.blocks - 1) * lanes) // 4)
        packed = [
            conv_pack.pack_dense(rows, count * lanes, lanes, 4, last)
            for rows, count in (
                (matrix[: whole * lanes], tile.blocks),
                (matrix[whole * lanes :], end),
            )
            if len(rows)
        ]
        name = self._store_weights(conv_pack.pack_depthwise(first.weights, lanes))
        inner_bias = self._store("inner_b", conv_pack.pack_channels(first.bias, x.channels, lanes))
        pointwise = self._store_weights(np.concatenate(packed), "pointwise")
        act = spec.activation
        counts = (x.blocks, last, whole)
        extra: tuple[Arg, ...] = (
            *(Ref(inner_bias), np.float32(act.p), np.float32(act.q), Ref(pointwise)),
            *(np.int32(count) for count in counts),
        )
        kernel = {
            "taps": spec.kernel[0],
            "stride": spec.strides[0],
            "inner": act.macro.replace("ACT", "ACT_INNER", 1),
            "room": NEAR_FLOATS // lanes,
            "out_blocks": tile.blocks,
            "rest": cut.rest,
            "half": int(tile.half),
        }
        self._launch("conv_separable", part, Split(tile, 0, 1), name, kernel, extra)
