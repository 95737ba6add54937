#!/usr/bin/env bash
# onnx 1.23.2 and onnxruntime 1.32.0, Linux x86-64.
# Guess: the shape that onnx infers for Einsum "bij,bjk->bik" of (1,3,4) and (2,4,5) is (2,3,5), as
#   numpy.einsum makes it and as onnxruntime computes it: a size of 1 broadcasts.
# Seen: onnx infers (1,3,5), the size of the label in the first operand, and onnxruntime declares
#   (1,3,5) for the output, and then returns (2,3,5).
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
if command -v uv >/dev/null; then
  uv venv -q venv; uv pip install -q --python venv/bin/python onnx==1.23.2 onnxruntime==1.32.0
else
  python3 -m venv venv; venv/bin/pip install -q onnx==1.23.2 onnxruntime==1.32.0
fi
ORT_DISABLE_TELEMETRY=1 venv/bin/python - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

shapes = {"x": (1, 3, 4), "z": (2, 4, 5)}
graph = helper.make_graph(
    [helper.make_node("Einsum", ["x", "z"], ["y"], equation="bij,bjk->bik")],
    "product",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
dims = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape.dim
options = ort.SessionOptions()
options.log_severity_level = 4
session = ort.InferenceSession(model.SerializeToString(), options)
inputs = {n: np.ones(s, np.float32) for n, s in shapes.items()}
inferred = tuple(dim.dim_value for dim in dims)
declared = tuple(session.get_outputs()[0].shape)
made = session.run(None, inputs)[0].shape
print(f"onnx infers {inferred}; onnxruntime declares {declared} and returns {made}")
sys.exit((inferred, declared, made) != ((1, 3, 5), (1, 3, 5), (2, 3, 5)))
PY
