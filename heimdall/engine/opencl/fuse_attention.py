"""Find attention: a product, the softmax of its rows, and a product with that."""

from __future__ import annotations

from heimdall.engine.opencl.attend import Attend
from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.neighbours import Neighbours
from heimdall.engine.opencl.operators.lines import Softmax
from heimdall.engine.opencl.operators.products import MatMul


def fuse_attention(module: Module) -> None:
    """Products and softmax become one op."""
    Neighbours(module).join_pairs(_attend)
    module.drop_unused()


def _attend(around: Neighbours, softmax: Lowered, product: Lowered) -> Lowered | None:
    shapes, spec = around.module.shapes, softmax.spec
    scores = around.writer(softmax.inputs[0])
    if not isinstance(spec, Softmax) or scores is None or not isinstance(scores.spec, MatMul):
        return None
    along_rows = spec == Softmax(len(shapes[softmax.output]) - 1)
    first = product.spec == MatMul() and product.inputs[0] == softmax.output
    if not (along_rows and first and around.read_once(scores.output)):
        return None
    nodes = scores.nodes + softmax.nodes + product.nodes
    inputs = (*scores.inputs, product.inputs[1])
    if softmax.output in inputs:
        return None
    return Lowered(Attend(scores.spec.scale), inputs, product.outputs, nodes)
