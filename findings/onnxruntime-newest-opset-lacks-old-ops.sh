#!/usr/bin/env bash
# onnxruntime 1.32.0 with onnx 1.23.2 (opset 28), Linux x86-64, CPU provider.
# Guess: a model that onnxruntime runs at opset 27 it also runs at 28 where the op's definition has
#   got element types more and nothing else; or it refuses opset 28 altogether.
# Seen: it loads opset 28 (Relu runs) and has no kernel for DequantizeLinear there, whose version 28
#   added float6 to version 25: NOT_IMPLEMENTED. The same node runs at opset 27. RoiAlign is so since
#   opset 22 (bfloat16 was added). Writing the older number into the file makes it run.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"
if command -v uv >/dev/null; then
  uv venv -q venv; uv pip install -q --python venv/bin/python onnx==1.23.2 onnxruntime==1.32.0
else
  python3 -m venv venv; venv/bin/pip install -q onnx==1.23.2 onnxruntime==1.32.0
fi
ORT_DISABLE_TELEMETRY=1 venv/bin/python - <<'PY'
import sys

import onnxruntime as ort
from onnx import TensorProto, helper

options = ort.SessionOptions()
options.log_severity_level = 4
FLOAT, INT8, INT64 = TensorProto.FLOAT, TensorProto.INT8, TensorProto.INT64
CASES = {
    "Relu": ({"x": (FLOAT, [4])}, [4]),
    "DequantizeLinear": ({"x": (INT8, [4]), "s": (FLOAT, [])}, [4]),
    "RoiAlign": (
        {"x": (FLOAT, [1, 1, 8, 8]), "r": (FLOAT, [1, 4]), "b": (INT64, [1])}, [1, 1, 1, 1]
    ),
}


def runs(op, opset):
    inputs, output = CASES[op]
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), ["y"])],
        "net",
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info("y", FLOAT, output)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    try:
        ort.InferenceSession(model.SerializeToString(), options)
        return True
    except Exception as error:
        print(f"  {str(error)[:110]}")
        return False


wanted = {
    ("Relu", 28): True,
    ("DequantizeLinear", 27): True,
    ("DequantizeLinear", 28): False,
    ("RoiAlign", 21): True,
    ("RoiAlign", 22): False,
}
found = {}
for op, opset in wanted:
    found[op, opset] = runs(op, opset)
    print(f"{op} at opset {opset}: {'loads' if found[op, opset] else 'refused'}")
sys.exit(found != wanted)
PY
