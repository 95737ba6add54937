"""Normalisations: by the mean and variance, or the length, of some axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.lines import Normalise
from heimdall.engine.opencl.operators.resize import Resample
from heimdall.engine.opencl.ops_picture import Lrn, Moments

_TINY = 1e-37  # about the smallest float that a device may not flush to zero


def _normalised(chain: Chain, x: str, axes: Sequence[int], epsilon: float) -> tuple[str, str, str]:
    """x with mean 0 and variance 1, its mean, and 1 / sqrt(variance + epsilon)."""
    shape = chain.shape(x)
    if len(shape) == 4 and shape[0] == 1 and tuple(axes) == (2, 3):
        vector = (1, shape[1], 1, 1)
        mean, inverse = (chain.context.tensor(name, vector) for name in ("mean", "deviation"))
        node = (chain.context.node.name,)
        chain.ops.append(Lowered(Moments(epsilon), (x,), (mean, inverse), node))
        return chain("mul", chain("sub", x, mean), inverse), mean, inverse
    mean = chain.reduce("mean", x, axes)
    centred = chain("sub", x, mean)
    variance = chain.reduce("mean", chain("square", centred), axes)
    inverse = chain("reciprocal", chain("sqrt", chain("add", variance, epsilon)))
    return chain("mul", centred, inverse), mean, inverse


def _channels(chain: Chain, name: str, rank: int) -> str:
    """One number a channel, as a tensor that broadcasts."""
    return chain.reshape(name, (1, -1, *[1] * (rank - 2)))


@register("InstanceNormalization")
def _instance_norm(context: Context) -> list[Lowered]:
    """Fusion joins the steps behind the moments."""
    (x, scale, shift), rank, chain = context.node.inputs, len(context.x), Chain(context)
    y, _, _ = _normalised(chain, x, range(2, rank), context.attribute("epsilon", 1e-5))
    y = chain("mul", y, _channels(chain, scale, rank))
    return chain.end(chain("add", y, _channels(chain, shift, rank)))


@register("LayerNormalization")
def _layer_norm(context: Context) -> list[Lowered]:
    x, rank, chain = context.node.inputs[0], len(context.x), Chain(context)
    axes = range(context.attribute("axis", -1) % rank, rank)
    epsilon = context.attribute("epsilon", 1e-5)
    ends = [name for name in context.node.inputs[1:] if name]
    plain = all(context.shape(name) == context.x[axes.start :] for name in ends)
    if plain and len(context.outputs) == 1:
        return [context.op(Normalise(axes.start, epsilon), x, *ends)]
    y, mean, inverse = _normalised(chain, x, axes, epsilon)
    y = chain("mul", y, context.node.inputs[1])
    if context.has(2):
        y = chain("add", y, context.node.inputs[2])
    return chain.end(y, mean, inverse)


@register("MeanVarianceNormalization")
def _mean_variance_norm(context: Context) -> list[Lowered]:
    """The deviation gets the epsilon, not the variance."""
    x, chain = context.node.inputs[0], Chain(context)
    axes = [axis % len(context.x) for axis in context.attribute("axes", [0, 2, 3])]
    centred = chain("sub", x, chain.reduce("mean", x, axes))
    variance = chain.reduce("mean", chain("square", centred), axes)
    return chain.end(chain("div", centred, chain("add", chain("sqrt", variance), 1e-9)))


@register("RMSNormalization")
def _rms_norm(context: Context) -> list[Lowered]:
    (x, scale), rank, chain = context.node.inputs, len(context.x), Chain(context)
    axes = range(context.attribute("axis", -1) % rank, rank)
    if context.shape(scale) == context.x[axes.start :]:
        normalise = Normalise(axes.start, context.attribute("epsilon", 1e-5), centred=False)
        return [context.op(normalise, x, scale)]
    squares = chain.reduce("mean", chain("square", x), axes)
    length = chain("sqrt", chain("add", squares, context.attribute("epsilon", 1e-5)))
    return chain.end(chain("mul", chain("div", x, length), scale))


@register("LpNormalization")
def _lp_norm(context: Context) -> list[Lowered]:
    """What is zero throughout stays zero."""
    x, chain = context.node.inputs[0], Chain(context)
    axes = (context.attribute("axis", -1) % len(context.x),)
    if context.attribute("p", 2) == 1:
        length = chain.reduce("sum", chain("abs", x), axes)
    else:
        length = chain("sqrt", chain.reduce("sum", chain("square", x), axes))
    return chain.end(chain("div", x, chain("max", length, _TINY)))


@register("LRN")
def _lrn(context: Context) -> list[Lowered]:
    x, get, chain = context.node.inputs[0], context.attribute, Chain(context)
    size, alpha, beta, bias = get("size"), get("alpha", 1e-4), get("beta", 0.75), get("bias", 1.0)
    if context.is_picture():
        return [context.op(Lrn(size, alpha, beta, bias), x)]
    channels, before = context.x[1], (size - 1) // 2
    near = np.arange(channels)[:, None] + np.arange(size) - before
    weights = np.where((near >= 0) & (near < channels), alpha / size, 0.0)
    window = Resample(1, np.clip(near, 0, channels - 1), weights)
    sums = chain("add", chain.add(window, context.x, chain("square", x)), bias)
    return chain.end(chain("div", x, chain("pow", sums, beta)))
