"""Attention over a cache of fixed length, and rows of a table by computed indices."""

from __future__ import annotations

import math

from heimdall.engine.opencl.cache import Append, AttendCached, Turn
from heimdall.engine.opencl.lowered import Lowered
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register

_PLAIN = {  # an attribute that has another value is not covered
    "causal": (1,),
    "softcap": (0.0,),
    "smooth_softmax": (0, -1),
    "local_window_size": (-1,),
    "sliding_window_cache": (0,),
    "qk_output": (0,),
    "k_quant_type": ("NONE",),
    "v_quant_type": ("NONE",),
}
_KNOWN_INPUTS = 9  # query, key, value, past, seqlens_k, total length, cosines and sines


@register("com.microsoft:GroupQueryAttention", any_type=True)
def _group_query_attention(context: Context) -> list[Lowered] | None:
    """One sequence, whose past and present are of the same size."""
    node, get, chain = context.node, context.attribute, Chain(context)
    if any(get(name, plain[0]) not in plain for name, plain in _PLAIN.items()):
        return None
    if any(map(context.has, range(_KNOWN_INPUTS, len(node.inputs)))):
        return None
    if not all(map(context.has, (0, 3, 4, 5))) or len(context.outputs) < 3:
        return None
    past, last = context.shape(node.inputs[3]), node.inputs[5]
    if past != context.shape(node.outputs[1]) or past[0] != 1:
        return None
    heads, kv_heads = get("num_heads"), get("kv_num_heads")
    rows, size = context.x[1], past[3]
    query, key, value = _parts(chain, heads * size, kv_heads * size)
    query = chain.reshape(query, (rows, heads, size))
    key, value = (chain.reshape(x, (rows, kv_heads, size)) for x in (key, value))
    if get("do_rotary", 0):
        turn = Turn(bool(get("rotary_interleaved", 0)))
        query, key = (
            chain.add(turn, chain.shape(x), x, *node.inputs[7:9], last) for x in (query, key)
        )
    keys, values = (
        chain.add(Append(), past, node.inputs[place], made, last)
        for place, made in ((3, key), (4, value))
    )
    scale = get("scale", 0.0) or 1 / math.sqrt(size)
    y = chain.add(AttendCached(scale), (rows, heads, size), query, keys, values, last)
    return chain.end(chain.reshape(y, context.y), keys, values)


def _parts(chain: Chain, wide: int, narrow: int) -> tuple[str, str, str]:
    """Queries, keys and values: three tensors, or one that holds all."""
    context, names = chain.context, chain.context.node.inputs
    if context.has(1):
        return names[0], names[1], names[2]
    starts = ((0, wide), (wide, narrow), (wide + narrow, narrow))
    query, key, value = (chain.slice(names[0], 2, start, count) for start, count in starts)
    return query, key, value
