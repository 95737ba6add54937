"""Resize and Upsample: by tables an axis, of one source index or of several with weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.grid import chunked, ints, line_launch, source
from heimdall.engine.opencl.launch import Plan, Ref, Traits
from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.elementwise import elementwise
from heimdall.engine.opencl.operators.take import Take
from heimdall.engine.opencl.ops_picture import Gather, Linear
from heimdall.engine.opencl.sampling import (
    COORDINATES,
    coordinates,
    linear_table,
    nearest,
    weighted,
)
from heimdall.engine.opencl.strided import Strided


@dataclass(frozen=True, eq=False)
class Resample(ArrayOp):
    """Weighted sums along one axis: ``entries`` and ``weights`` are (size of the output, taps)."""

    axis: int
    entries: np.ndarray
    weights: np.ndarray

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (x,) = inputs
        (args,), constants = operands(inputs, traits)
        out, taps = self.entries.shape
        inner = int(np.prod(x.shape[self.axis + 1 :], dtype=np.int64))
        chunk, items = chunked(y.size, taps, traits)
        args += [Ref("entries"), Ref("weights"), *ints(taps, x.shape[self.axis], out, inner)]
        args += [Ref("y"), *ints(y.offset, y.size, chunk)]
        constants["entries"] = self.entries.astype(np.int32)
        constants["weights"] = self.weights.astype(np.float32)
        kernel = source("resample", traits, 1)
        return Plan((line_launch(kernel, items, args, traits),), constants)

    def operations(self, inputs: Sequence[tuple[int, ...]], y: tuple[int, ...]) -> int:
        return 2 * self.entries.shape[1] * super().operations((), y)


class _Axes:
    """The axes that are resized: source coordinates of their output indices."""

    def __init__(self, context: Context) -> None:
        self.context = context
        old = context.node.op_type == "Upsample" or context.graph.opset < 11
        self.rounding = "floor" if old else context.attribute("nearest_mode", "round_prefer_floor")
        self.where = "asymmetric" if old else _where(context)
        scales = 1 if old else 2
        # more than the output's size depends on them: which pixels are taken
        self.known = not context.has(scales) or context.constant(scales) is not None
        self.known = self.known and not context.attribute("antialias", 0)
        if not self.known:
            return
        rank = len(context.x)
        axes = [axis % rank for axis in context.attribute("axes", range(rank))]
        self.scales = dict(zip(axes, self._scales(context.constant(scales), axes), strict=True))
        self.spans = dict.fromkeys(axes, (0.0, 1.0))
        if self.where == "tf_crop_and_resize":
            roi = context.constant(1)
            self.known = roi is not None and roi.size == 2 * len(axes)
            if roi is not None and self.known:
                pairs = roi.astype(np.float64).reshape(2, -1).T.tolist()
                self.spans = {axis: (a, b) for axis, (a, b) in zip(axes, pairs, strict=True)}

    def _scales(self, given: np.ndarray | None, axes: Sequence[int]) -> list[float]:
        x, y = self.context.x, self.context.y
        if given is not None and given.size == len(axes):
            return [float(scale) for scale in given]
        wanted = self.context.ints(3, "")
        policy = self.context.attribute("keep_aspect_ratio_policy", "stretch")
        if policy == "stretch" or wanted is None:
            return [y[axis] / x[axis] for axis in axes]
        ratios = [size / x[axis] for axis, size in zip(axes, wanted, strict=True)]
        return [min(ratios) if policy == "not_larger" else max(ratios)] * len(axes)

    @property
    def changed(self) -> list[int]:
        """The axes that do not stay as they are."""
        x, y = self.context.x, self.context.y
        return [
            axis
            for axis, scale in self.scales.items()
            if x[axis] != y[axis] or scale != 1.0 or self.spans[axis] != (0.0, 1.0)
        ]

    def sources(self, axis: int) -> np.ndarray:
        size, out = self.context.x[axis], self.context.y[axis]
        scale = self.scales.get(axis, 1.0)
        return coordinates(self.where, size, out, scale, self.spans.get(axis, (0.0, 1.0)))

    def nearest(self, axis: int) -> np.ndarray:
        """Source indices, -1 where the source is outside and must be extrapolated."""
        source, size = self.sources(axis), self.context.x[axis]
        picked = np.clip(nearest(self.rounding, source), 0, size - 1).astype(np.int64)
        return np.where(self.outside(axis), -1, picked)

    def outside(self, axis: int) -> np.ndarray:
        source = self.sources(axis)
        if self.where != "tf_crop_and_resize":
            return np.zeros(source.shape, bool)
        return (source < 0) | (source > self.context.x[axis] - 1)


def _where(context: Context) -> str:
    where: str = context.attribute("coordinate_transformation_mode", "half_pixel")
    return where


@register("Resize", "Upsample")
def _resize(context: Context) -> list[Lowered] | None:
    axes = _Axes(context)
    mode = context.attribute("mode", "nearest")
    if not axes.known or axes.where not in COORDINATES:
        return None
    crops = axes.where == "tf_crop_and_resize"
    if context.x == context.y and not crops:  # a copy in onnxruntime, of any scales
        return [elementwise(context, "identity", context.node.inputs[0])]
    changed, x = axes.changed, context.node.inputs[0]
    flat = context.is_picture() and not {0, 1} & set(changed)
    flat = flat and not crops
    if flat and mode == "nearest":
        rows, columns = (tuple(map(int, axes.nearest(axis))) for axis in (2, 3))
        return [context.op(Gather(rows, columns), x)]
    if flat and mode == "linear":
        tables = [linear_table(axes.sources(axis), context.x[axis]) for axis in (2, 3)]
        return [context.op(Linear(tables[0], tables[1]), x)]
    chain, fill = Chain(context), context.attribute("extrapolation_value", 0.0)
    cubic = context.attribute("cubic_coeff_a", -0.75) if mode == "cubic" else None
    for axis in changed:
        shape = list(chain.shape(x))
        shape[axis] = context.y[axis]
        if mode == "nearest":
            table = axes.nearest(axis)
            x = chain.add(Take.along(len(shape), axis, table, fill), shape, x)
            continue
        outside = bool(context.attribute("exclude_outside", 0))
        mixed = weighted(axes.sources(axis), context.x[axis], cubic, outside)
        x = chain.add(Resample(axis, *mixed), shape, x)
    for axis in changed if mode != "nearest" else ():
        mask = axes.outside(axis)
        if mask.any():
            column = chain.constant(mask.reshape([-1] + [1] * (len(context.y) - 1 - axis)))
            x = chain("where", column, fill, x)
    return chain.end(x)
