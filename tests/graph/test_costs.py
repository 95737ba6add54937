"""Arithmetic and traffic of single nodes, against numbers worked out by hand."""

import numpy as np
import onnx
import pytest

from heimdall.graph.costs import node_bytes, node_flops
from heimdall.graph.graph import graph_from_model


def costs(text, **weights):
    """Flops and bytes of the first node of a graph given in ONNX's text form."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> net {text}')
    for name, shape in weights.items():
        array = np.random.default_rng(0).random(shape, dtype=np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    graph = graph_from_model(model)
    return node_flops(graph, graph.nodes[0]), node_bytes(graph, graph.nodes[0])


def test_convolution_counts_a_multiply_add_as_two():
    text = "(float[1,3,8,8] x) => (float[1,4,6,6] y) {y = Conv(x, w, b)}"
    flops = 4 * 6 * 6 * (2 * 3 * 9 + 1)
    traffic = 4 * (3 * 64 + 4 * 3 * 9 + 4 + 4 * 36)
    assert costs(text, w=(4, 3, 3, 3), b=(4,)) == (flops, traffic)


def test_depthwise_convolution_reads_one_channel_for_each_output():
    text = "(float[1,4,8,8] x) => (float[1,4,6,6] y) {y = Conv <group = 4> (x, w)}"
    assert costs(text, w=(4, 1, 3, 3))[0] == 4 * 36 * 2 * 9


def test_transposed_convolution_spreads_every_input():
    text = "(float[1,2,4,4] x) => (float[1,3,8,8] y) {y = ConvTranspose <strides = [2, 2]> (x, w)}"
    assert costs(text, w=(2, 3, 2, 2))[0] == 2 * 16 * 2 * 3 * 4


def test_matrix_products_count_their_inner_length():
    gemm = "(float[2,5] x) => (float[2,7] y) {y = Gemm <transB = 1> (x, w, b)}"
    assert costs(gemm, w=(7, 5), b=(7,))[0] == 2 * 7 * (2 * 5 + 1)
    matmul = "(float[3,2,5] x) => (float[3,2,7] y) {y = MatMul(x, w)}"
    assert costs(matmul, w=(5, 7))[0] == 3 * 2 * 7 * 2 * 5


@pytest.mark.parametrize(
    ("op", "flops"),
    [
        ("Relu(x)", 72),
        ("Transpose <perm = [0, 1, 3, 2]> (x)", 0),
        ("MaxPool <kernel_shape = [3, 3]> (x)", 2 * 16 * 9),
        ("GlobalAveragePool(x)", 72),
        ("ReduceMean <axes = [2, 3]> (x)", 72),
        ("Sum(x, x, x)", 2 * 72),
    ],
)
def test_other_ops_count_their_elements(op, flops):
    outputs = {"MaxPool": "1,2,4,4", "GlobalAverage": "1,2,1,1", "ReduceMean": "1,2,1,1"}
    shape = next((s for name, s in outputs.items() if op.startswith(name)), "1,2,6,6")
    assert costs(f"(float[1,2,6,6] x) => (float[{shape}] y) {{y = {op}}}")[0] == flops


def test_reshape_costs_nothing():
    reshape = "s = Constant <value_ints = [72]> () y = Reshape(x, s)"
    assert costs(f"(float[1,2,6,6] x) => (float[72] y) {{{reshape}}}") == (0, 0)
