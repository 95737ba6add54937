"""Reductions over axes, and global pools, which are reductions over the picture."""

from __future__ import annotations

from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.elementwise import elementwise
from heimdall.engine.opencl.ops_reduce import Reduce, ReduceMode

_PLAIN: dict[str, ReduceMode] = {
    "ReduceMean": "mean",
    "ReduceSum": "sum",
    "ReduceMax": "max",
    "ReduceMin": "min",
    "ReduceProd": "prod",
}
# What happens to each value before its sum, and to the sum.
_AROUND = {
    "ReduceL1": ("abs", ""),
    "ReduceL2": ("square", "sqrt"),
    "ReduceSumSquare": ("square", ""),
    "ReduceLogSum": ("", "log"),
}


def _axes(context: Context) -> tuple[int, ...] | None:
    """What is reduced; nothing for "no axes", None where they are computed."""
    axes = context.ints(1, "axes")
    if context.has(1) and axes is None:
        return None
    rank = len(context.x)
    if not axes:
        return () if context.attribute("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(axis % rank for axis in axes))


@register(*_PLAIN)
def _reduce(context: Context) -> list[Lowered] | None:
    axes = _axes(context)
    if axes is None:
        return None
    if not axes:
        return [elementwise(context, "identity", context.node.inputs[0])]
    return [context.op(Reduce(_PLAIN[context.node.op_type], axes), context.node.inputs[0])]


@register(*_AROUND)
def _reduce_around(context: Context) -> list[Lowered] | None:
    axes, chain, x = _axes(context), Chain(context), context.node.inputs[0]
    if not axes:
        return None
    before, after = _AROUND[context.node.op_type]
    total = chain.reduce("sum", chain(before, x) if before else x, axes)
    return chain.end(chain(after, total) if after else total)


@register("ReduceLogSumExp")
def _log_sum_exp(context: Context) -> list[Lowered] | None:
    """What is largest goes out of the exponent first: it may be large."""
    axes, chain, x = _axes(context), Chain(context), context.node.inputs[0]
    if not axes:
        return None
    top = chain.reduce("max", x, axes)
    total = chain.reduce("sum", chain("exp", chain("sub", x, top)), axes)
    return chain.end(chain("add", chain("log", total), top))


@register("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(context: Context) -> list[Lowered]:
    mode: ReduceMode = "mean" if context.node.op_type == "GlobalAveragePool" else "max"
    axes = tuple(range(2, len(context.x)))
    return [context.op(Reduce(mode, axes), context.node.inputs[0])]


@register("GlobalLpPool")
def _global_lp_pool(context: Context) -> list[Lowered]:
    power, chain = float(context.attribute("p", 2)), Chain(context)
    powers = chain("pow", chain("abs", context.node.inputs[0]), power)
    total = chain.reduce("sum", powers, range(2, len(context.x)))
    return chain.end(chain("pow", total, 1 / power))
