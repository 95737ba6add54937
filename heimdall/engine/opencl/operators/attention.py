"""Attention and rotary embeddings, as products, a softmax and what lies between."""

from __future__ import annotations

import math

import numpy as np

from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.operators.lines import Softmax
from heimdall.engine.opencl.operators.products import product
from heimdall.engine.opencl.operators.take import Take


@register("Attention")
def _attention(context: Context) -> list[Lowered] | None:
    """Heads stand before positions: (batch, heads, positions, size of a head)."""
    chain, flat = Chain(context), len(context.x) == 3
    query, key, value = context.node.inputs[:3]
    softcap, mode = context.attribute("softcap", 0.0), context.attribute("qk_matmul_output_mode", 0)
    scores_asked = len(context.node.outputs) > 3 and bool(context.node.outputs[3])
    if context.has(6) or (scores_asked and softcap and mode < 3):
        return None  # lengths of the cache that are computed; scores of which versions differ
    if flat:
        query = _heads(chain, query, context.attribute("q_num_heads"))
        key, value = (_heads(chain, x, context.attribute("kv_num_heads")) for x in (key, value))
    past = chain.shape(context.node.inputs[4])[2] if context.has(4) else 0
    if past:
        key = chain.concat(2, context.node.inputs[4], key)
        value = chain.concat(2, context.node.inputs[5], value)
    present = key, value
    repeats = chain.shape(query)[1] // chain.shape(key)[1]
    key, value = (_repeated(chain, x, repeats) for x in present)
    scale = math.sqrt(context.attribute("scale", 1 / math.sqrt(chain.shape(query)[3])))
    turned = chain.transpose(chain("mul", key, scale), (0, 1, 3, 2))
    scores = logits = product(chain, chain("mul", query, scale), turned)
    if softcap:
        logits = chain("mul", chain("tanh", chain("mul", logits, 1 / softcap)), softcap)
    bias = _bias(chain, logits, past)
    if bias == "":
        return None
    if bias:
        logits = chain("add", logits, bias)
    shares = chain.add(Softmax(3), chain.shape(logits), logits)
    if bias and context.has(3):  # where all is masked nothing is taken
        axes = (len(chain.shape(bias)) - 1,)
        shares = chain("where", chain("less", chain.reduce("max", bias, axes), -1e37), 0.0, shares)
    y = product(chain, shares, value)
    if flat:
        y = chain.reshape(chain.transpose(y, (0, 2, 1, 3)), context.y)
    return chain.end(y, *present, (scores, scores, logits, shares)[mode])


def _heads(chain: Chain, x: str, count: int) -> str:
    batch, length, size = chain.shape(x)
    split = chain.reshape(x, (batch, length, count, size // count))
    return chain.transpose(split, (0, 2, 1, 3))


def _repeated(chain: Chain, x: str, times: int) -> str:
    """Each head several times, for as many heads of the query."""
    if times == 1:
        return x
    batch, heads, *rest = chain.shape(x)
    apart = chain.reshape(x, (batch, heads, 1, *rest))
    return chain.reshape(
        chain.expand(apart, (batch, heads, times, *rest)), (batch, heads * times, *rest)
    )


def _bias(chain: Chain, logits: str, past: int) -> str | None:
    """What is added to the logits: 0, and -inf where nothing may be taken. None: there is none;
    empty: a mask of other sizes."""
    context, (rows, columns) = chain.context, chain.shape(logits)[2:]
    bias = context.node.inputs[3] if context.has(3) else None
    if bias is not None:
        if chain.shape(bias)[-1] != columns:
            return ""
        if not context.is_float(bias):
            bias = chain("where", bias, 0.0, -math.inf)
    if context.attribute("is_causal", 0):
        later = np.arange(columns) > np.arange(rows)[:, None] + past
        causal = chain.constant(np.where(later, -np.inf, 0.0))
        bias = causal if bias is None else chain("add", bias, causal)
    return bias


def _rows(chain: Chain, table: str, places: np.ndarray) -> str:
    """Rows of a table, in the arrangement of ``places``."""
    known, size = chain.context.module.constants.get(table), chain.shape(table)[-1]
    if known is not None:
        return chain.constant(known[places])
    picked = chain.add(Take.along(2, 0, places.reshape(-1)), (places.size, size), table)
    return chain.reshape(picked, (*places.shape, size))


@register("RotaryEmbedding")
def _rotary(context: Context) -> list[Lowered] | None:
    """Pairs of numbers turned by the angles of their positions."""
    x, cosines, sines = context.node.inputs[:3]
    chain, whole = Chain(context), len(context.x) == 4
    if context.has(3):
        places = context.constant(3)
        if places is None or places.min() < 0 or places.max() >= chain.shape(cosines)[0]:
            return None
        cosines, sines = (_rows(chain, table, places) for table in (cosines, sines))
    if whole:
        x = chain.transpose(x, (0, 2, 1, 3))
    else:
        batch, length, size = context.x
        heads = context.attribute("num_heads")
        x = chain.reshape(x, (batch, length, heads, size // heads))
    *front, size = chain.shape(x)
    turned = context.attribute("rotary_embedding_dim", 0) or size
    apart = bool(context.attribute("interleaved", 0))
    pairs = chain.reshape(
        chain.slice(x, 3, 0, turned), (*front, *((turned // 2, 2) if apart else (2, turned // 2)))
    )
    axis = 4 if apart else 3
    a, b = (
        chain.reshape(chain.slice(pairs, axis, index, 1), (*front, turned // 2)) for index in (0, 1)
    )
    length, half = chain.shape(cosines)[-2:]
    cosines, sines = (chain.reshape(t, (-1, length, 1, half)) for t in (cosines, sines))
    real = chain("sub", chain("mul", cosines, a), chain("mul", sines, b))
    imaginary = chain("add", chain("mul", sines, a), chain("mul", cosines, b))
    shape = list(chain.shape(pairs))
    shape[axis] = 1
    y = chain.concat(axis, *(chain.reshape(part, shape) for part in (real, imaginary)))
    y = chain.reshape(y, (*front, turned))
    if turned < size:
        y = chain.concat(3, y, chain.slice(x, 3, turned, size - turned))
    return chain.end(chain.transpose(y, (0, 2, 1, 3)) if whole else y)
