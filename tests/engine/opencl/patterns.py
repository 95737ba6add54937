"""How exporters spell out in small nodes what the passes know as one op."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

INSTANCE_NORM = {"e": np.float32(1e-5), "two": np.float32(2)}  # constants of ``instance_norm``


def node(op: str, inputs: str, outputs: str = "y", **attributes) -> NodeProto:
    """A node named by its outputs. Two blanks: an input is left out."""
    return helper.make_node(op, inputs.split(" "), outputs.split(), outputs, **attributes)


def instance_norm(output: str = "y") -> list[NodeProto]:
    """(x - mean) / sqrt(mean((x - mean)^2) + e) over the picture x."""
    return [
        node("ReduceMean", "x", "mean", axes=[2, 3]),
        node("Sub", "x mean", "centred"),
        node("Pow", "centred two", "square"),
        node("ReduceMean", "square", "variance", axes=[2, 3]),
        node("Add", "variance e", "shifted"),
        node("Sqrt", "shifted", "deviation"),
        node("Div", "centred deviation", output),
    ]
