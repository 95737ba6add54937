"""Plans Conv, ConvTranspose and fully connected layers: which kernel, which tile, which weights.

Seven kernels cover all of them (kernels/conv_*.cl, kernels/winograd*.cl): *depthwise*; *grouped*,
for all other groups; *few*, for up to four output channels, whose lanes are input channels;
*planar*, from NCHW, whose lanes are pixels; *stamp*, for transposed layers to one channel;
*winograd*, for 3x3 layers of many channels; and *dense* for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from heimdall.engine.opencl import conv_pack, winograd
from heimdall.engine.opencl.conv_build import ConvBuilder, whole
from heimdall.engine.opencl.conv_check import check
from heimdall.engine.opencl.conv_pass import Pass, passes
from heimdall.engine.opencl.conv_source import render
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.conv_tiles import (
    Split,
    Tile,
    dense_tiles,
    depthwise_tile,
    few_tile,
    planar_tile,
)
from heimdall.engine.opencl.launch import Launch, Place, Plan, Ref, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.ops_array import plan_pack
from heimdall.engine.opencl.strided import Strided

_MOST_TAPS = 9  # of a window whose loops are unrolled
_FEW = 4  # at most this many outputs go to the few-outputs kernel
_LARGE_WINDOW = 9  # taps from which a layer of few channels is worth a planar copy of its input
_WIDTHS = 1, 2, 3, 4  # output blocks that a tile of the dense kernel may hold
_PLANAR = 8  # layers with at most this many channels on both sides are best planar


def plan_conv(layer: Layer, traits: Traits, tuned: Mapping[str, Any] | None = None) -> Plan:
    """Launches and packed constants of one convolution.

    Refs: "x", "y", "residual" when given, "scratch" and the names in ``Plan.constants``.
    ``tuned`` may force ``{"tile": (blocks, width, height)}`` where it fits,
    and ``{"winograd": False}`` the direct kernel.

    Any layouts work: x and y are fastest with ``block == traits.block`` (x also planar or NHWC
    with few channels). The halo of x must hold at least ``spec.required_halo`` zeros. Only the
    pixels of y are written (and the padding lanes of their blocks, with finite values), so its
    halo stays as it was: zero it once, and again if its memory held something else meanwhile;
    with ``clears`` the plan zeros it.
    y must not share memory with x or the residual (tiles overlap and are computed twice); x
    and the residual may be the same tensor.

    Raises ModelError when sizes, halo or layouts do not fit each other.
    """
    check(layer, traits)
    build = _Planner(layer, traits, tuned or {})
    parts = passes(layer.spec, layer.weights, (layer.y.height, layer.y.width))
    if build.is_stamp():
        build.add_stamp(parts[0], layer.weights)
    else:
        for part in parts:
            build.add(part)
    return build.plan


class _Planner(ConvBuilder):
    """Chooses a kernel and its tile for each pass."""

    def add(self, part: Pass) -> None:
        """Plan one pass with the kernel that suits it."""
        lanes, channels = self.traits.block, self.x.channels
        blocked = self.x.block == lanes
        if self.spec.groups == channels == self.y.channels > 1 and blocked:
            self._add_depthwise(part)
        elif self.spec.groups > 1:
            self._add_grouped(part)
        elif self._is_planar(part, self.x):
            self._add_planar(part)
        elif self._is_planar(part, planar := replace(self.x, block=1, offset=0)) and _gains(part):
            self._unpack(planar)
            self._add_planar(part)
        elif self.y.channels <= _FEW and blocked and 2 * channels >= lanes:
            self._add_few(part)
        elif plan := self._winograd(part):
            self._add_winograd(part, plan)
        else:
            self._add_dense(part)

    def is_stamp(self) -> bool:
        """True for transposed layers of kernels/conv_stamp.cl."""
        spec, x, y = self.spec, self.x, self.y
        plain = spec.transposed and spec.dilations == (1, 1) and not any(spec.pads)
        apart = spec.kernel == spec.strides and 1 < prod(spec.kernel) <= 16
        exact = (y.height, y.width) == spec.output_size(x.height, x.width)
        layouts = x.block == self.traits.block and y.block == y.channels == 1
        return plain and apart and exact and layouts and self.residual is None

    def add_stamp(self, first: Pass, weights: np.ndarray) -> None:
        """``first`` is the pass of the first output of every stamp."""
        x, (height, width) = self.x, self.spec.kernel
        lanes = 1 << (height * width - 1).bit_length()
        taps = weights.reshape(-1, height * width, 1, 1).transpose(1, 0, 2, 3)
        last = -(-(x.channels - (x.blocks - 1) * x.block) // 4)
        name = self._store_weights(conv_pack.pack_dense(taps, lanes, x.block, 4, last))
        most = 2 if self.traits.kind == "gpu" else 12
        wide = next(size for size in (12, 8, 4, 2, 1) if size <= min(x.width, most))
        extra = (np.int32(self.y.row), np.int32(x.blocks), np.int32(last))
        kernel = {"kernel_h": height, "kernel_w": width, "block": lanes}
        self._launch("conv_stamp", first, Split(Tile(1, wide, 1), 0, 1), name, kernel, extra)

    def _is_planar(self, part: Pass, x: Layout) -> bool:
        y = self.y
        few = y.block == self.traits.block and y.channels <= _FEW and self.residual is None
        plain = self.spec.groups == x.block == 1 and (y.block == 1 or few) and part.weights.size
        unit = part.stride[1] == 1 and part.out_step == (1, 1)
        return bool(plain) and unit and self._grid(part, flatten=True)[1] >= self.traits.block

    def _unpack(self, planar: Layout) -> None:
        """Read x, with its halo, from a planar copy from now on."""
        x = self.x
        size = x.channels, x.stored_height, x.stored_width
        stored, copy = Layout(*size, x.block, offset=x.offset), Strided.contiguous((1, *size))
        plan = plan_pack(copy, stored, self.traits, ("scratch", "x"), unpack=True)
        self.launches += plan.launches
        self.x, self.source = planar, Ref("scratch")
        self.scratch_floats = -(-planar.floats * self.traits.dtype.itemsize // 4)

    def _add_planar(self, part: Pass) -> None:
        height, width = self._grid(part, flatten=True)
        outputs = self.y.channels
        tile = planar_tile(outputs, width, height, self.traits)
        name = self._store_weights(np.ascontiguousarray(part.weights.transpose(1, 2, 3, 0)).ravel())
        split = Split(tile, 0, -(-outputs // tile.blocks))
        extra = (np.int32(self.x.channels), np.int32(outputs))
        kernel = {"outputs": tile.blocks, "blocked": self.y.block > 1}
        self._launch("conv_planar", part, split, name, kernel, extra, flatten=True)

    def _add_depthwise(self, part: Pass) -> None:
        taps = _window(part)
        height, width = part.out_size
        tile = self._forced(width, height, (1,))
        tile = tile or depthwise_tile(taps, part.stride[1], width, height, self.traits)
        name = self._store_weights(conv_pack.pack_depthwise(part.weights, self.traits.block))
        kernel = {"taps": taps, "stride": part.stride[1]}
        split = Split(tile, 0, self.blocks)
        self._launch("conv_depthwise", part, split, name, kernel, (self._x_pixel(part),))

    def _add_few(self, part: Pass) -> None:
        outputs = self.y.channels
        tile = few_tile(outputs, self._grid(part, flatten=True)[1], self.traits)
        name = self._store_weights(conv_pack.pack_few(part.weights, self.traits.block))
        blocks = self.x.blocks if part.weights.size else 0
        extra = (self._x_pixel(part), np.int32(blocks))
        self._launch(
            "conv_few", part, Split(tile, 0, 1), name, {"outputs": outputs}, extra, flatten=True
        )

    def _add_dense(self, part: Pass) -> None:
        x, lanes = self.x, self.traits.block
        half = 0 < self.y.channels % lanes <= lanes // 2
        splits = self._splits(part, part.weights.shape[1], _WIDTHS, half)
        unroll = unrolled(x.block)
        for split in splits:
            first, count = split.first * lanes, (split.tile.blocks + split.tile.half) * lanes
            rows = part.weights[first : first + split.groups * count]
            last = -(-(x.channels - (x.blocks - 1) * x.block) // unroll)
            packed = conv_pack.pack_dense(rows, count, x.block, unroll, last)
            counts = (x.blocks if part.weights.size else 0, x.block // unroll, last)
            kernel: dict[str, Any] = {"out_blocks": split.tile.blocks, "half": split.tile.half}
            kernel |= {"unroll": unroll, "taps": self._unrolled(part, unroll), "rows_apart": False}
            group = np.int32(packed.size // split.groups)
            args = (self._x_pixel(part), group, *(np.int32(value) for value in counts))
            name = self._store_weights(packed)
            self._launch("conv_dense", part, split, name, kernel, args, flatten=True)

    def _unrolled(self, part: Pass, unroll: int) -> tuple[int, int] | None:
        """The taps that a GPU's kernel lists one by one, to have the inputs of several steps on
        their way at once: a work-item waits for memory most of the time. A CPU looks ahead by
        itself, and would have more variants to compile."""
        single = self.x.block == unroll and prod(part.taps) <= _MOST_TAPS
        return part.taps if self.traits.kind == "gpu" and single else None

    def _splits(
        self, part: Pass, inputs: int, widths: tuple[int, ...], half: bool = False
    ) -> tuple[Split, ...]:
        """The tiles of a layer each of whose outputs reads so many input channels."""
        height, width = self._grid(part, flatten=True)
        if forced := self._forced(width, height, widths):
            return (Split(forced, 0, self.blocks // forced.blocks),)
        depth = max(1, inputs * part.taps[0] * part.taps[1])
        rows = self.y.block not in (1, self.traits.block)
        return dense_tiles(self.blocks, width, height, depth, self.traits, widths, half, rows)

    def _add_grouped(self, part: Pass) -> None:
        x, lanes, groups = self.x, self.traits.block, self.spec.groups
        shape, outputs = part.weights.shape, range(self.y.channels)
        lists = conv_pack.channel_lists(shape, groups, lanes, outputs)
        splits = self._splits(part, sum(map(len, lists)) // self.blocks, self._widths())
        order = np.array(self.spec.order or range(x.channels))
        for split in splits:
            side = split.tile.blocks * lanes
            first = split.first * lanes
            some = outputs[first : first + split.groups * side]
            listed = conv_pack.pack_grouped(part.weights, groups, side, some)
            channels = order[listed.channels]
            places = (channels // x.block * x.plane + channels % x.block).astype(np.int32)
            name = self._store_weights(listed.weights)
            tables = Ref(self._store("places", places)), Ref(self._store("begins", listed.begins))
            kernel = {"out_blocks": split.tile.blocks}
            args = (self._x_pixel(part), *tables)
            self._launch("conv_grouped", part, split, name, kernel, args, flatten=True)

    def _winograd(self, part: Pass) -> winograd.Winograd | None:
        if self.tuned.get("winograd") is False:
            return None
        if self.spec.activation.exact:  # transforms divide by 24
            return None
        if self.traits.storage == "half":  # transformed weights need more digits than weights
            return None
        half = 0 < self.y.channels % self.traits.block <= self.traits.block // 2
        height, width = part.out_size
        depth = part.weights[0].size
        direct = height * width * depth * (self.blocks - half / 2) / (0.95 - 0.1 * half)
        return winograd.choose(part, self.x, self.y, direct, self.traits)

    def _add_winograd(self, part: Pass, plan: winograd.Winograd) -> None:
        tile, lanes = plan.tile, self.traits.block
        channels, size = plan.weights.shape[1], part.out_size[::-1]
        blocks, groups = -(-channels // lanes), self.blocks // tile.blocks
        last = -(-(channels - (blocks - 1) * lanes) // winograd.UNROLL)
        packed = winograd.pack(plan.weights, tile.blocks * lanes)
        name, windows = self._store("w", packed), (Ref("scratch"), Place())
        places = [] if plan.offsets is None else [Ref(self._store("offsets", plan.offsets))]
        shape = {"block": lanes, "tile_w": tile.width}
        transform = render("winograd_input", **shape, gathered=bool(places), pixel=self.x.block)
        multiply = render(
            "winograd", **shape, tile_h=1, out_blocks=tile.blocks, **self._epilogue(False)
        )
        for first, count in plan.bands:
            into = [Ref("x"), *self._source(part), *places, *windows, *size, first, blocks]
            self.launches.append(Launch(transform, (count, blocks, 1), (1, 1, 1), whole(into)))
            args = [*windows, Ref(name), *self._results(part, size[::-1], 0, False)]
            args += [first, packed.size // groups, blocks, last]
            self.launches.append(Launch(multiply, (count, groups, 1), (1, 1, 1), whole(args)))
        self.scratch_floats = max(self.scratch_floats, plan.window_floats)

    def _widths(self) -> tuple[int, ...]:
        """How many output blocks a tile of the grouped kernel may hold: all of one group."""
        blocks, rest = divmod(self.y.channels // self.spec.groups, self.traits.block)
        return tuple(wide for wide in (1, 2, 3, 4) if wide == 1 or not (rest or blocks % wide))

    def _forced(self, width: int, height: int, widths: tuple[int, ...]) -> Tile | None:
        """The tile that ``tuned`` asks for, if it can be used here."""
        if "tile" not in self.tuned:
            return None
        tile = Tile(*self.tuned["tile"])
        fits = tile.width <= width and tile.height <= height and tile.blocks in widths
        return tile if fits and self.blocks % tile.blocks == 0 else None


def _gains(part: Pass) -> bool:
    """True for layers whose lanes are better used by pixels, even if x must be copied first."""
    outputs, inputs = part.weights.shape[:2]
    return max(outputs, inputs) <= _PLANAR and part.weights[0, 0].size >= _LARGE_WINDOW


def unrolled(x_block: int) -> int:
    """Channels per step of the inner loop; x_block is a multiple of it."""
    if x_block <= 4:
        return x_block
    return 4 if x_block % 4 == 0 else 1


def _window(part: Pass) -> int:
    """Side of a kernel that the depthwise kernel unrolls, or 0."""
    side = part.taps[0]
    square = part.taps == (side, side) and part.stride[0] == part.stride[1]
    return side if square and 1 < side <= 7 and part.tap_step == (1, 1) else 0
