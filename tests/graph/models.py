"""Small models for tests, which claim little about their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
node = helper.make_node


def model(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Any],
    outputs: Sequence[str] | Mapping[str, int],
    constants: Mapping[str, Any] | None = None,
    opset: int = 13,
    kind: int = FLOAT,
) -> onnx.ModelProto:
    """Inputs of this ``kind`` by name and shape, outputs of FLOAT or of kinds by name."""
    kinds = outputs.items() if isinstance(outputs, Mapping) else [(each, FLOAT) for each in outputs]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, each, ["n"]) for name, each in kinds],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)
