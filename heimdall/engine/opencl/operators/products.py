"""Matrix products, which are 1x1 convolutions: of constant weights, or of computed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.array_op import ArrayOp, Input
from heimdall.engine.opencl.conv_product import Matrices, Products, batched, readable
from heimdall.engine.opencl.conv_spec import ConvSpec
from heimdall.engine.opencl.grid import most
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.lowered import Conv, Lowered, Reshape
from heimdall.engine.opencl.operators.chain import Chain
from heimdall.engine.opencl.operators.context import Context, register
from heimdall.engine.opencl.packed_product import ROWS, PackedProduct
from heimdall.engine.opencl.strided import Strided
from heimdall.graph.packed_weights import Blocks


@dataclass(frozen=True)
class MatMul(ArrayOp):
    """(.., rows, depth) x (.., depth, columns), with the same axes in front, times ``scale``."""

    scale: float = 1.0

    def plan(self, inputs: Sequence[Input], y: Strided, traits: Traits) -> Plan:
        a, b = (Matrices.of(index, value) for index, value in enumerate(inputs))
        made = batched(y)
        assert made is not None
        build = Products(inputs, traits)
        build.multiply(a, build.pack(b, a.view.shape[1]), Matrices("y", made), self.scale)
        return build.plan

    def reads(self, index: int, view: Strided) -> bool:
        return readable(index, view)

    def operations(self, inputs: Sequence[tuple[int, ...]], y: tuple[int, ...]) -> int:
        return 2 * math.prod(y) * inputs[0][-1]


@register("Gemm")
def _gemm(context: Context) -> list[Lowered]:
    """alpha * A B + beta * C"""
    a, b, chain = context.node.inputs[0], context.node.inputs[1], Chain(context)
    alpha, beta = context.attribute("alpha", 1.0), context.attribute("beta", 1.0)
    weights, bias, transposed = context.constant(1), None, context.attribute("transA", 0)
    fast = weights is not None and not transposed and context.constant(0) is None
    if fast and context.has(2):
        bias = context.constant(2)
        fast = bias is not None and (bias.ndim < 2 or bias.shape[0] == 1)
    if fast and weights is not None:
        weights = (weights if context.attribute("transB", 0) else weights.T) * np.float32(alpha)
        if bias is not None:
            bias = np.broadcast_to(bias.reshape(-1), weights.shape[:1]) * np.float32(beta)
        return _dense(context, weights, bias)
    a = chain.transpose(a, (1, 0)) if transposed else a
    b = chain.transpose(b, (1, 0)) if context.attribute("transB", 0) else b
    y = product(chain, a, b)
    y = y if alpha == 1.0 else chain("mul", y, alpha)
    if context.has(2) and beta:
        c = context.node.inputs[2]
        y = chain("add", y, c if beta == 1.0 else chain("mul", c, beta))
    return chain.end(y)


@register("MatMul")
def _matmul(context: Context) -> list[Lowered]:
    weights = context.constant(1)
    if weights is not None and weights.ndim == 2 and len(context.x) >= 2:
        return _dense(context, weights.T, None)
    chain = Chain(context)
    return chain.end(product(chain, *context.node.inputs))


@register("com.microsoft:MatMulNBits", any_type=True)
def _matmul_n_bits(context: Context) -> list[Lowered] | None:
    """The weights stay packed."""
    data, scales = context.constant(1), context.constant(2)
    middles = context.constant(3)
    if data is None or scales is None or (context.has(3) and middles is None):
        return None
    blocks = Blocks.of(context.node.attributes, data, scales, middles)
    chain, rows, depth = Chain(context), math.prod(context.x[:-1]), context.x[-1]
    taken = most(rows, ROWS)
    x = chain.reshape(context.node.inputs[0], (rows // taken, taken, depth))
    x = chain.transpose(x, (0, 2, 1)) if taken > 1 else chain.reshape(x, (rows, depth, 1))
    y = chain.add(PackedProduct(blocks), (rows, blocks.shape[0]), x)
    return chain.end(chain.reshape(y, context.y))


def product(chain: Chain, a: str, b: str) -> str:
    """numpy's rules for vectors and for axes in front, but that vectors keep an axis of one.

    Raises ValueError for matrices that do not fit."""
    if len(chain.shape(a)) == 1:
        a = chain.reshape(a, (1, -1))
    if len(chain.shape(b)) == 1:
        b = chain.reshape(b, (-1, 1))
    rows, depth = chain.shape(a)[-2:]
    inner, columns = chain.shape(b)[-2:]
    if inner != depth:
        raise ValueError(f"a product of {chain.shape(a)} and {chain.shape(b)}")
    front = np.broadcast_shapes(chain.shape(a)[:-2], chain.shape(b)[:-2])
    if math.prod(chain.shape(b)[:-2]) == 1 < math.prod(front):  # one for all: these axes are rows
        a = chain.reshape(a, (-1, depth))
        b = chain.reshape(b, (depth, columns))
        made = chain.add(MatMul(), (chain.shape(a)[0], columns), a, b)
        return chain.reshape(made, (*front, rows, columns))
    a = chain.expand(a, (*front, rows, depth))
    b = chain.expand(b, (*front, depth, columns))
    return chain.add(MatMul(), (*front, rows, columns), a, b)


def _dense(context: Context, weights: np.ndarray, bias: np.ndarray | None) -> list[Lowered]:
    """A product with a constant (N, K) matrix, as a 1x1 convolution.

    A single row is a picture of one pixel; several rows stay row-major.
    """
    rows = math.prod(context.x[:-1])
    kernel = np.ascontiguousarray(weights, np.float32).reshape(*weights.shape, 1, 1)
    conv = Conv(ConvSpec((1, 1)), kernel, bias, matrix=rows > 1)
    x = context.node.inputs[0]
    if rows > 1:
        return [context.op(conv, x)]
    column = context.tensor("column", (1, weights.shape[1], 1, 1))
    pixel = context.tensor("pixel", (1, weights.shape[0], 1, 1))
    return [
        context.op(Reshape(), x, output=column),
        context.op(conv, column, output=pixel),
        context.op(Reshape(), pixel),
    ]


@register("Einsum")
def _einsum(context: Context) -> list[Lowered] | None:
    """Of one or two tensors, without repeated labels in one of them and without ellipses."""
    equation = context.attribute("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or len(terms) > 2:
        return None
    if any(len(set(term)) < len(term) for term in (*terms, result)):
        return None
    chain, names = Chain(context), list(context.node.inputs)
    shapes = [dict(zip(t, chain.shape(n), strict=True)) for t, n in zip(terms, names, strict=True)]
    for index, shape in enumerate(shapes):  # a size of 1 that broadcasts: the others have the label
        full = [k for k in shape if shape[k] == max(each.get(k, 1) for each in shapes)]
        names[index] = chain.reshape(names[index], [shape[label] for label in full])
        terms[index] = "".join(full)
    for index, term in enumerate(terms):  # what only one of them has is summed
        others = {*result, *"".join(terms[:index] + terms[index + 1 :])}
        alone = [axis for axis, label in enumerate(term) if label not in others]
        if alone:
            kept = "".join(label for label in term if label in others)
            total = chain.reduce("sum", names[index], alone)
            sizes = [chain.shape(total)[term.index(label)] for label in kept]
            names[index], terms[index] = chain.reshape(total, sizes), kept
    if len(terms) == 1:
        return chain.end(chain.transpose(names[0], [terms[0].index(label) for label in result]))
    return chain.end(_contracted(chain, names, terms, result))


def _contracted(chain: Chain, names: list[str], terms: list[str], result: str) -> str:
    """The product of two tensors, summed over what both have and the result has not."""
    (a, b), (first, second) = names, terms
    sizes = dict(zip(first, chain.shape(a), strict=True))
    sizes |= {k: max(v, sizes.get(k, 1)) for k, v in zip(second, chain.shape(b), strict=True)}
    batch = [label for label in first if label in second and label in result]
    depth = [label for label in first if label in second and label not in result]
    rows = [label for label in first if label not in second]
    columns = [label for label in second if label not in first]

    def arranged(name: str, term: str, *groups: list[str]) -> str:
        order = [label for group in groups for label in group]
        moved = chain.transpose(name, [term.index(label) for label in order])
        shape = [chain.shape(moved)[order.index(label)] for label in batch]
        return chain.reshape(
            moved, [*shape, *(math.prod(sizes[label] for label in g) for g in groups[1:])]
        )

    x = arranged(a, first, batch, rows, depth)
    y = arranged(b, second, batch, depth, columns)
    made = [*batch, *rows, *columns]
    whole = chain.reshape(product(chain, x, y), [sizes[label] for label in made])
    return chain.transpose(whole, [made.index(label) for label in result])
