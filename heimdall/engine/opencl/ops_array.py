"""Between pictures in channel blocks and row-major arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp
from heimdall.engine.opencl.grid import Grid, ints, source
from heimdall.engine.opencl.kernel_op import Inputs, Layouts, PictureOp, only
from heimdall.engine.opencl.launch import Plan, Ref, Traits, begin
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.strided import Strided


@dataclass(frozen=True)
class Pack(PictureOp):
    """Array of shape (1, C, H, W) to picture."""

    def plan_pictures(self, inputs: Inputs, outputs: Layouts, traits: Traits) -> Plan:
        (x,) = inputs
        assert isinstance(x, Strided)
        return plan_pack(x, outputs[0], traits, ("i0", "y"))


@dataclass(frozen=True)
class Unpack(ArrayOp):
    """Picture to array; ``perm`` are the axes of the picture in the order of the array."""

    perm: tuple[int, ...]

    def plan(self, inputs: Inputs, y: Strided, traits: Traits) -> Plan:
        x = only(inputs)
        if len(y.shape) != 4:
            view = Strided.contiguous((1, x.channels, x.height, x.width), y.offset)
        else:  # axes of the array back in the order of the picture
            view = y.transposed(np.argsort(self.perm).tolist())
        return plan_pack(view, x, traits, ("y", "i0"), unpack=True)


def plan_pack(
    array: Strided, picture: Layout, traits: Traits, refs: tuple[str, str], *, unpack: bool = False
) -> Plan:
    """Array of shape (1, C, H, W) to picture, or back; ``refs`` are what the two are called."""
    grid = Grid.over(picture.width, picture.height, picture.blocks, traits)
    size = traits.dtype.itemsize
    (first, base), (second, origin) = (
        (Ref(name), begin(Ref(name), at, size))
        for name, at in zip(refs, (array.offset, picture.origin), strict=True)
    )
    args = [first, base, *ints(*array.strides[1:], picture.channels)]
    args += [second, origin, *ints(picture.plane, picture.row), *grid.args]
    kernel = source("pack", traits, 1, lanes=picture.block, unpack=unpack)
    return Plan((grid.launch(kernel, args),))
