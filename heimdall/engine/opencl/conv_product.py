"""Products of computed matrices, as 1x1 convolutions whose weights are packed when they run.

A batch is a picture, a matrix one of its rows, and a row of that a pixel. Packed, the second
matrices are read vector by vector from the fastest cache, however they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from heimdall.engine.opencl.activation import NONE, Activation
from heimdall.engine.opencl.array_op import Input, constants_of, named
from heimdall.engine.opencl.conv import unrolled
from heimdall.engine.opencl.conv_build import local_size, whole
from heimdall.engine.opencl.conv_source import render
from heimdall.engine.opencl.conv_tiles import Tile, product_tile
from heimdall.engine.opencl.launch import Arg, Launch, Plan, Ref, Traits, begin
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.ops_array import plan_pack
from heimdall.engine.opencl.strided import Strided, collapse

_ALIGN = 32  # numbers: packed weights are read as vectors


class Matrices(NamedTuple):
    """A batch of matrices, (batch, rows, columns), in what ``ref`` is."""

    ref: str
    view: Strided

    @classmethod
    def of(cls, index: int, value: Input) -> Matrices:
        """Those of the input ``index`` of an op, which ``batched`` knows."""
        whole = Strided.contiguous(value.shape) if isinstance(value, np.ndarray) else value
        assert isinstance(whole, Strided)
        view = batched(whole)
        assert view is not None
        return cls(named(index, value), view)

    def part(self, first: int, count: int, start: int, rows: int) -> Matrices:
        """Some rows of some matrices."""
        starts, shape = (first, start, 0), (count, rows, self.view.shape[2])
        return Matrices(self.ref, self.view.sliced(starts, (1, 1, 1), shape))

    def pointer(self, traits: Traits) -> list[Arg]:
        """``buffer, base`` as arguments of a kernel."""
        ref = Ref(self.ref)
        return [ref, begin(ref, self.view.offset, traits.dtype.itemsize)]


def batched(view: Strided) -> Strided | None:
    """(.., rows, columns) as (batch, rows, columns), if one step leads from each to the next."""
    sizes, (steps,) = collapse(view.shape[:-2], view.strides[:-2])
    if len(sizes) > 1:
        return None
    return Strided((*sizes, *view.shape[-2:]), (*steps, *view.strides[-2:]), view.offset)


def readable(index: int, view: Strided) -> bool:
    """Whether input ``index`` of a product can lie like this: the second is packed anyway."""
    return batched(view) is not None and (index > 0 or view.strides[-1] == 1)


@dataclass(frozen=True)
class Packed:
    """Second matrices as weights for ``tile``."""

    layout: Layout
    tile: Tile


class Products:
    """Collects the launches of products, and what they need: constants among ``inputs``, too."""

    def __init__(self, inputs: Sequence[Input], traits: Traits) -> None:
        self.traits = traits
        self.launches: list[Launch] = []
        self.constants = constants_of(inputs, traits)
        self._taken = 0

    @property
    def plan(self) -> Plan:
        floats = -(-self._taken * self.traits.dtype.itemsize // 4)
        return Plan(tuple(self.launches), self.constants, floats)

    def scratch(self, *shape: int) -> Matrices:
        """Room for (batch, rows, columns)."""
        made = Matrices("scratch", Strided.contiguous(shape, self._taken))
        self._taken += -(-made.view.size // _ALIGN) * _ALIGN
        return made

    def pack(self, b: Matrices, rows: int) -> Packed:
        """Second matrices, for products with first ones of at least so many rows."""
        (batch, depth, columns), lanes = b.view.shape, self.traits.block
        tile = product_tile(-(-columns // lanes), rows, batch, depth, self.traits)
        wide = tile.blocks * lanes
        room = self.scratch(-(-columns // wide), batch * depth, wide)
        layout = Layout(columns, batch, depth, wide, offset=room.view.offset)
        turned = b.view.transposed((2, 0, 1))
        view = replace(turned, shape=(1, *turned.shape), strides=(0, *turned.strides))
        self.launches += plan_pack(view, layout, self.traits, (b.ref, room.ref)).launches
        return Packed(layout, tile)

    def multiply(
        self, a: Matrices, b: Packed, y: Matrices, scale: float = 1.0, first: int = 0
    ) -> None:
        """y = a b * scale, by kernels/conv_dense.cl. The rows of ``a`` are in one piece, y is
        contiguous; its last columns are stored one by one. ``first``: of the matrices of b."""
        (batch, rows, depth), (matrix, row, _) = a.view.shape, a.view.strides
        layout, tile, unroll, nothing = b.layout, b.tile, unrolled(depth), np.float32(0)
        act = NONE if scale == 1.0 else Activation("scaled", lanes=(scale,))
        size = self.traits.dtype.itemsize
        self._lanes("b", 0.0, layout)
        if act.lanes:
            self._lanes("slope", scale, layout)
        args: list[Arg | int] = [Ref(a.ref), Ref("scratch"), Ref("b")]
        args += [Ref("slope")] if act.lanes else []
        args += [*y.pointer(self.traits), 0, *y.view.strides[:2], layout.channels, 1]
        args += [rows, batch, nothing, nothing, 0]
        args += [a.pointer(self.traits)[1], 0, matrix, 1, 1, 0, 0, row, layout.plane]
        args += [begin(Ref("scratch"), layout.origin + first * layout.row, size), layout.row]
        args += [1, depth // unroll, depth // unroll]
        tiles = (layout.blocks, -(-rows // tile.width), batch)
        local = local_size(tiles, self.traits)
        items = tuple(-(-count // side) * side for count, side in zip(tiles, local, strict=True))
        kernel = render("conv_dense", **self._kernel(tile, unroll, act))
        self.launches.append(Launch(kernel, items, local, whole(args)))

    def _kernel(self, tile: Tile, unroll: int, act: Activation) -> dict[str, Any]:
        """The template variables of conv_dense.cl."""
        return {
            "block": self.traits.block, "tile_w": tile.width, "tile_h": 1,
            "out_blocks": tile.blocks, "half": False, "unroll": unroll, "taps": None,
            "rows_apart": True, "pixel": "x_pixel", "scatter": True, "clears": False,
            "activation": act.macro, "slopes": bool(act.lanes), "residual": "none",
            "device": self.traits.kind, "storage": self.traits.storage,
        }  # fmt: skip

    def _lanes(self, name: str, value: float, layout: Layout) -> None:
        """One value for all lanes of all columns."""
        room = max(layout.blocks * layout.block, len(self.constants.get(name, ())))
        self.constants[name] = np.full(room, value, np.float32)
