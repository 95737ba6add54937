"""Operators that pick numbers by indices which are known: gather, scatter, pad, tile and others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input, operands
from heimdall.engine.opencl.cache import Lookup
from heimdall.engine.opencl.grid import chunked, ints, line_launch, source
from heimdall.engine.opencl.launch import Arg, Plan, Ref, Traits
from heimdall.engine.opencl.lowered import Lowered, Pad, Slice
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.elementwise import elementwise
from heimdall.engine.opencl.sampling import padded
from heimdall.engine.opencl.strided import Strided, row_major


@dataclass(frozen=True, eq=False)
class Take(ArrayOp):
    """``tables[axis][i]`` is the source index of output index i, or -1 where ``fill`` is stored;
    an axis without a table stays as it is."""

    tables: tuple[np.ndarray | None, ...]
    fill: float = 0.0

    @classmethod
    def along(cls, rank: int, axis: int, table: np.ndarray, fill: float = 0.0) -> Take:
        """Indices of one axis."""
        return cls(tuple(table if each == axis else None for each in range(rank)), fill)

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        (x,) = inputs
        (args,), constants = operands(inputs, traits)
        kept: list[bool] = []
        for table, size, out, step in zip(
            self.tables, x.shape, y.shape, row_major(x.shape), strict=True
        ):
            if table is None and kept and not kept[-1]:  # joins the axis before
                args[-2:] = ints(int(args[-2]) * size, step)  # type: ignore[arg-type]
                continue
            if table is not None:
                name = f"table{len(kept)}"
                constants[name] = np.asarray(table, np.int32)
                args.append(Ref(name))
            kept.append(table is not None)
            args += ints(out, step)
        chunk, items = chunked(y.size, 1, traits)
        rest: list[Arg] = [np.float32(self.fill), Ref("y"), *ints(y.offset, y.size, chunk)]
        kernel = source("take", traits, 1, tables=tuple(kept))
        return Plan((line_launch(kernel, items, args + rest, traits),), constants)


def _picked(chain: Chain, x: str, source: np.ndarray, fill: float = 0.0) -> str:
    """Any arrangement of x: ``source`` holds indices into x as a flat array, -1 for ``fill``.

    The table is as large as the result: where an index an axis will do, use that.
    """
    flat = chain.reshape(x, (math.prod(chain.shape(x)),))
    made = chain.add(Take((source.reshape(-1),), fill), (source.size,), flat)
    return chain.reshape(made, source.shape)


def _source(shape: Sequence[int], places: Sequence[np.ndarray]) -> np.ndarray | None:
    """Flat indices of the elements (or of the blocks behind them) at these coordinates, of which
    negative ones count from the end; None if one is outside."""
    for place, size in zip(places, shape, strict=False):
        if place.size and not -size <= place.min() <= place.max() < size:
            return None
    found: np.ndarray = _numbered(shape)[tuple(places)]
    return found


def _numbered(shape: Sequence[int]) -> np.ndarray:
    """An array that holds the index of each of its elements."""
    return np.arange(math.prod(shape)).reshape(shape)


@register("Gather", any_type=True)
def _gather(context: Context) -> list[Lowered] | None:
    indices, x = context.constant(1), context.node.inputs[0]
    if not context.is_float(x):
        return None
    if indices is None:
        first = context.attribute("axis", 0) % len(context.x) == 0
        return [context.op(Lookup(), *context.node.inputs)] if first else None
    if x in context.module.constants:
        return None
    rank, chain = len(context.x), Chain(context)
    axis = context.attribute("axis", 0) % rank
    size = context.x[axis]
    table = _source((size,), [indices.reshape(-1)])
    if table is None:
        return None
    shape = (*context.x[:axis], len(table), *context.x[axis + 1 :])
    steps = np.unique(np.diff(table))
    if len(steps) < 2 and 0 not in steps:  # a view
        step = int(steps[0]) if len(steps) else 1
        starts = tuple(int(table[0]) if each == axis else 0 for each in range(rank))
        jumps = tuple(step if each == axis else 1 for each in range(rank))
        return chain.end(chain.add(Slice(starts, jumps), shape, x))
    return chain.end(chain.add(Take.along(rank, axis, table), shape, x))


@register("GatherElements")
def _gather_elements(context: Context) -> list[Lowered] | None:
    indices, chain = context.constant(1), Chain(context)
    if indices is None:
        return None
    source = _source(context.x, _beside(context, indices))
    return None if source is None else chain.end(_picked(chain, context.node.inputs[0], source))


def _beside(context: Context, indices: np.ndarray) -> list[np.ndarray]:
    """The coordinates of ``indices`` themselves, but for the axis that they are of."""
    places = _place(indices.shape)
    places[context.attribute("axis", 0) % len(context.x)] = indices
    return places


def _place(shape: Sequence[int]) -> list[np.ndarray]:
    """The coordinates of each element, one array an axis."""
    return list(np.indices(shape))


@register("GatherND")
def _gather_nd(context: Context) -> list[Lowered] | None:
    indices, chain = context.constant(1), Chain(context)
    if indices is None:
        return None
    batch = context.attribute("batch_dims", 0)
    places = _place(indices.shape[:-1])[:batch]
    source = _source(context.x, [*places, *np.moveaxis(indices, -1, 0)])
    return None if source is None else chain.end(_picked(chain, context.node.inputs[0], source))


@register("ScatterElements", "Scatter")
def _scatter_elements(context: Context) -> list[Lowered] | None:
    indices = context.constant(1)
    if indices is None or context.attribute("reduction", "none") != "none":
        return None
    return _scattered(context, _beside(context, indices), indices.shape)


@register("ScatterND")
def _scatter_nd(context: Context) -> list[Lowered] | None:
    indices = context.constant(1)
    if indices is None or context.attribute("reduction", "none") != "none":
        return None
    shape = indices.shape[:-1] + context.x[indices.shape[-1] :]
    return _scattered(context, list(np.moveaxis(indices, -1, 0)), shape)


def _scattered(
    context: Context, places: list[np.ndarray], shape: tuple[int, ...]
) -> list[Lowered] | None:
    """Each number of the result is one of the data or one of the updates."""
    chain, (x, _, updates) = Chain(context), context.node.inputs
    if chain.shape(updates) != shape or _source(context.x, places) is None:
        return None
    source = _numbered(context.x)
    source[tuple(places)] = source.size + _numbered(shape)
    flat = [chain.reshape(name, (math.prod(chain.shape(name)),)) for name in (x, updates)]
    return chain.end(_picked(chain, chain.concat(0, *flat), source))


@register("ReverseSequence")
def _reverse_sequence(context: Context) -> list[Lowered] | None:
    lengths, chain = context.constant(1), Chain(context)
    if lengths is None:
        return None
    batch, time = context.attribute("batch_axis", 1), context.attribute("time_axis", 0)
    places = _place(context.x)
    if lengths.shape != (context.x[batch],):
        return None
    ends = lengths[places[batch]]
    places[time] = np.where(places[time] < ends, ends - 1 - places[time], places[time])
    source = _source(context.x, places)
    return None if source is None else chain.end(_picked(chain, context.node.inputs[0], source))


@register("Tile")
def _tile(context: Context) -> list[Lowered] | None:
    repeats, chain = context.ints(1, "repeats"), Chain(context)
    if repeats is None:
        return None
    split = [each for size in context.x for each in (1, size)]
    whole = [each for pair in zip(repeats, context.x, strict=True) for each in pair]
    x = chain.reshape(context.node.inputs[0], split)
    return chain.end(chain.reshape(chain.expand(x, whole), context.y))


@register("Trilu")
def _trilu(context: Context) -> list[Lowered] | None:
    k = context.scalar(1) if context.has(1) else 0
    if k is None:
        return None
    inside = np.ones(context.x[-2:], bool)
    inside = np.triu(inside, int(k)) if context.attribute("upper", 1) else np.tril(inside, int(k))
    mask = context.weight("mask", inside)
    return [elementwise(context, "where", mask, context.node.inputs[0], 0.0)]


@register("Pad")
def _pad(context: Context) -> list[Lowered] | None:
    given = context.ints(1, "pads")
    mode = context.attribute("mode", "constant")
    fill = context.scalar(2) if context.has(2) else context.attribute("value", 0.0)
    axes = context.ints(3, "axes")
    if given is None or fill is None or (context.has(3) and axes is None):
        return None
    rank = len(context.x)
    pads = np.zeros((2, rank), np.int64)
    pads[:, range(rank) if axes is None else axes] = np.reshape(given, (2, -1))
    before, after = pads.tolist()
    channels = bool(before[1] or after[1]) if rank > 1 else False
    simple = mode in ("constant", "reflect", "edge") and not (before[0] or after[0])
    if context.is_picture() and simple and not (channels and (mode != "constant" or fill)):
        border = (before[2], before[3], after[2], after[3])
        return [context.op(Pad(mode, border, (before[1], after[1]), fill), context.node.inputs[0])]
    tables = tuple(
        np.array(padded(size, *pair, mode)) if any(pair) else None
        for size, pair in zip(context.x, zip(before, after, strict=True), strict=True)
    )
    return [context.op(Take(tables, fill), context.node.inputs[0])]
