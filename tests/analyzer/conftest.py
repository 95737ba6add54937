"""A small network for tests around the networks."""

import onnx
import pytest

from heimdall.graph.graph import graph_from_model


@pytest.fixture
def graph():
    ops = ["Relu", "Tanh", "Neg", "Abs", "Relu", "Neg"]
    names = ["x", *"abcde", "y"]
    lines = " ".join(
        f"{after} = {op}({before})"
        for op, before, after in zip(ops, names, names[1:], strict=False)
    )
    text = f"(float[1,3,4,4] x) => (float[1,3,4,4] y) {{{lines}}}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> net {text}')
    return graph_from_model(model, "six")
