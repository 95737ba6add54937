"""Attention: two products and a softmax between them, whose numbers stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from heimdall.engine.opencl.array_op import ArrayOp, Input
from heimdall.engine.opencl.conv_product import Matrices, Products, batched, readable
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.operators.lines import softmax_launch
from heimdall.engine.opencl.strided import Strided

_CACHE = 1 << 18  # scores that lie in a core's second cache, beside a head's keys and values
_MEMORY = 1 << 24  # scores at once on a GPU, which needs many rows to be busy


@dataclass(frozen=True)
class Attend(ArrayOp):
    """softmax(q k * scale) v: (.., rows, depth) x (.., depth, keys), x (.., keys, columns).

    (Vaswani et al. 2017, equation 1.) Band by band of rows: scores of 1500 x 1500 in 6 heads, each
    written and read twice, cost more than to compute them.
    """

    scale: float = 1.0

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        q, k, v = (Matrices.of(index, value) for index, value in enumerate(inputs))
        made = batched(y)
        assert made is not None
        result, build = Matrices("y", made), Products(inputs, traits)
        (heads, rows, _), keys = q.view.shape, k.view.shape[2]
        bands = list(_bands(heads, rows, keys, traits))
        fewest = min(count for *_, count in bands)
        packed_k, packed_v = build.pack(k, fewest), build.pack(v, fewest)
        most = max(many * count for _, many, _, count in bands)
        room = build.scratch(1, most, keys)
        for band in bands:
            first, many, _, count = band
            view = Strided.contiguous((many, count, keys), room.view.offset)
            scores = Matrices(room.ref, view)
            build.multiply(q.part(*band), packed_k, scores, self.scale, first)
            place = scores.pointer(traits)
            build.launches.append(softmax_launch(place, place, view.shape, 2, traits))
            build.multiply(scores, packed_v, result.part(*band), first=first)
        return build.plan

    def reads(self, index: int, view: Strided) -> bool:
        return readable(index, view)

    def operations(self, inputs: Sequence[tuple[int, ...]], y: tuple[int, ...]) -> int:
        q, k, _ = inputs
        return 2 * math.prod(q[:-1]) * k[-1] * (q[-1] + y[-1])


def _bands(heads: int, rows: int, keys: int, traits: Traits) -> Iterator[tuple[int, int, int, int]]:
    """First head, heads, first row, rows: whole heads where there is room, else parts of one."""
    room = _MEMORY if traits.kind == "gpu" else _CACHE * traits.compute_units
    many = max(1, min(heads, room // (rows * keys)))
    parts = -(-many * rows * keys // room)
    edges = [rows * part // parts for part in range(parts + 1)]
    for first in range(0, heads, many):
        for start, end in pairwise(edges):
            yield first, min(many, heads - first), start, end - start
