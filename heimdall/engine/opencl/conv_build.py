"""The launches and constants of a convolution, put together from what its kernels share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.engine.opencl import conv_pack
from heimdall.engine.opencl.conv_pass import Pass
from heimdall.engine.opencl.conv_source import render
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.conv_tiles import Split
from heimdall.engine.opencl.launch import Arg, Launch, Plan, Ref, Traits, begin
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.ops_picture import ZERO_HALO


class ConvBuilder:
    """Collects launches and constants; packed weights of all passes share one buffer."""

    def __init__(self, layer: Layer, traits: Traits, tuned: Mapping[str, Any]) -> None:
        self.spec, self.x, self.y, self.residual = layer.spec, layer.x, layer.y, layer.residual
        self.traits, self.tuned = traits, tuned
        self.launches: list[Launch] = []
        self.scratch_floats = 0
        self.source = Ref("x")
        self.clears = layer.clears  # the halo of y must become zeros, by a launch of its own
        self._cleared = False  # unless the kernels that compute y see to it
        channels, lanes = self.y.channels, traits.block
        self.blocks = -(-channels // lanes)
        self.constants = {"b": conv_pack.pack_channels(layer.bias, channels, lanes)}
        if slopes := self.spec.activation.lanes:
            values = np.broadcast_to(np.array(slopes, np.float32), channels)
            self.constants["slope"] = conv_pack.pack_channels(values, channels, lanes)

    @property
    def plan(self) -> Plan:
        launches = tuple(self.launches)
        if self.clears and not self._cleared:
            launches = ZERO_HALO.plan_pictures((), [self.y], self.traits).launches + launches
        return Plan(launches, self.constants, self.scratch_floats)

    def _launch(
        self,
        name: str,
        part: Pass,
        split: Split,
        weights: str,
        variables: dict[str, Any],
        extra: tuple[Arg, ...],
        flatten: bool = False,
    ) -> None:
        """Append a launch: the arguments that all kernels share (conv_common.cl), then its own."""
        x, y = self.x, self.y
        planar = name == "conv_planar"  # its tiles are vectors of pixels wide
        scatter = y.block != self.traits.block and name not in ("conv_planar", "conv_stamp")
        height, width = self._grid(part, flatten)
        clears = self._clears(name, part, scatter)
        self._cleared |= clears
        args: list[Arg | int] = [self.source, Ref(weights)]
        args += self._results(part, (height, width), split.first, scatter)
        args += y.halo if clears else ()
        args += [*self._source(part), *part.taps]
        args += [part.tap_step[0] * x.row, part.tap_step[1] * x.block, *extra]
        tile = split.tile
        kernel = render(
            name,
            block=variables.pop("block", self.traits.block),
            tile_w=tile.width,
            tile_h=tile.height,
            **self._epilogue(scatter, clears),
            pixel=_pixel(x, part, self.traits),
            **variables,
        )
        step = split.tile.width * (self.traits.block if planar else 1)
        tiles = (-(-width // step), -(-height // tile.height) + clears, split.groups)
        local = local_size(tiles, self.traits)
        size = tuple(-(-count // side) * side for count, side in zip(tiles, local, strict=True))
        self.launches.append(Launch(kernel, size, local, whole(args)))

    def _clears(self, name: str, part: Pass, scatter: bool) -> bool:
        """Whether a launch zeros the halo of its blocks: a launch saved, 3 us on one core of a
        CPU and 10 us on two, whose threads wait for one another."""
        able = (
            name in ("conv_dense", "conv_depthwise", "conv_grouped", "conv_separable")
            and self.traits.kind == "cpu"
        )
        whole = part.out_size == (self.y.height, self.y.width) and part.out_step == (1, 1)
        return self.clears and able and whole and not scatter

    def _results(
        self, part: Pass, size: tuple[int, int], first: int, scatter: bool
    ) -> list[Arg | int]:
        """The arguments of the macro ``results``; ``size`` is (height, width) of the grid."""
        act, y, residual = self.spec.activation, self.y, self.residual
        args: list[Arg | int] = [Ref("b")]
        if act.lanes:
            args.append(Ref("slope"))
        if residual is not None:
            args += [Ref("residual"), *_target(residual, part)]
        args += [Ref("y"), *_target(y, part)]
        if scatter:
            args += [y.channels, _lane_step(y)]
            if residual is not None:
                args.append(_lane_step(residual))
        return [*args, size[1], size[0], np.float32(act.p), np.float32(act.q), first]

    def _epilogue(self, scatter: bool, clears: bool = False) -> dict[str, Any]:
        """The template variables of conv_common.cl that say how results are stored."""
        mode = "none"
        if self.residual is not None:
            mode = "before" if self.spec.residual_before_activation else "after"
        return {
            "activation": self.spec.activation.macro,
            "slopes": bool(self.spec.activation.lanes),
            "residual": mode,
            "scatter": scatter,
            "clears": clears,
            "device": self.traits.kind,
            "storage": self.traits.storage,
        }

    def _source(self, part: Pass) -> tuple[Arg, int, int]:
        """x_base, x_plane, x_row."""
        x = self.x
        base = x.origin + part.first[0] * x.row + part.first[1] * x.block
        first = begin(self.source, base, self.traits.dtype.itemsize)
        return first, x.plane, part.stride[0] * x.row

    def _x_pixel(self, part: Pass) -> np.int32:
        return np.int32(part.stride[1] * self.x.block)

    def _grid(self, part: Pass, flatten: bool) -> tuple[int, int]:
        """(height, width) of the outputs of a pass; a pointwise layer without halos is one
        long row, which leaves fewer cut tiles."""
        height, width = part.out_size
        tensors = [self.x, self.y, *([self.residual] if self.residual else [])]
        plain = part.stride == part.out_step == part.taps == (1, 1) and part.first == (0, 0)
        if flatten and plain and all(tensor.dense for tensor in tensors):
            return 1, height * width
        return height, width

    def _store_weights(self, packed: np.ndarray, name: str = "w") -> str:
        """Add packed weights, in the precision that tensors have."""
        return self._store(name, packed.astype(self.traits.dtype, copy=False))

    def _store(self, name: str, array: np.ndarray) -> str:
        """Add a constant under ``name`` or, when that is taken, ``name2``, ``name3``..."""
        key, number = name, 1
        while key in self.constants:
            number += 1
            key = f"{name}{number}"
        # a pass without taps (stride beyond the kernel) still needs a buffer to bind
        self.constants[key] = array if array.size else np.zeros(self.traits.block, array.dtype)
        return key


def _target(layout: Layout, part: Pass) -> tuple[int, int, int, int]:
    """Base, plane, row and pixel steps of the outputs of a pass in a tensor like y."""
    base = layout.origin + part.out_start[0] * layout.row + part.out_start[1] * layout.block
    return base, layout.plane, part.out_step[0] * layout.row, part.out_step[1] * layout.block


def whole(args: Sequence[Arg | int]) -> tuple[Arg, ...]:
    return tuple(np.int32(arg) if isinstance(arg, int) else arg for arg in args)


def _lane_step(layout: Layout) -> int:
    """Floats from one channel to the next in planar and NHWC tensors."""
    return layout.plane if layout.block == 1 else 1


def _pixel(x: Layout, part: Pass, traits: Traits) -> int | str:
    """Distance of the inputs of neighbouring outputs: a number in the source where it is
    common (addresses become constants), an argument where each layer would be a new variant."""
    common = x.block in (1, 3, traits.block) and part.stride[1] in (1, 2)
    return x.block * part.stride[1] if common else "x_pixel"


def local_size(tiles: tuple[int, int, int], traits: Traits) -> tuple[int, int, int]:
    """One work-item a group on CPUs; a patch of tiles on GPUs."""
    if traits.kind == "cpu":
        return 1, 1, 1
    wide = next(size for size in (16, 8, 4, 2, 1) if size <= tiles[0])
    high = next(size for size in (64 // wide, 8, 4, 2, 1) if size <= tiles[1])
    return wide, high, 1
