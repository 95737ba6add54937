#!/bin/bash
# onnxruntime 1.32.0 (CPU, x86): MaxPool and ReduceMax keep a NaN or drop it by where it lies.
# Guess: NaN passes through (as in numpy and PyTorch), or is dropped (as by fmax), always the same.
# Seen: MaxPool of 2x2 keeps it in the last place of a window only; ReduceMax of a line in the first
# place only. And MaxPool along one axis makes -3.4e38 of -inf, along two axes it stays -inf.
set -e
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
(uv venv -q "$dir/v" && uv pip install -q -p "$dir/v/bin/python" onnxruntime==1.32.0 onnx==1.23.2 numpy) 2>/dev/null ||
    (python3 -m venv "$dir/v" && "$dir/v/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy)
ORT_DISABLE_TELEMETRY=1 "$dir/v/bin/python" - <<'PY'
import numpy as np, onnxruntime as ort
from onnx import TensorProto as T, helper as h
def run(op, x, **attributes):
    ends = [h.make_tensor_value_info("x", T.FLOAT, x.shape)], [h.make_tensor_value_info("y", T.FLOAT, None)]
    graph = h.make_graph([h.make_node(op, ["x"], ["y"], **attributes)], "g", *ends)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
def kept(op, shape, **attributes):
    found = []
    for place in range(int(np.prod(shape))):
        x = np.ones(shape, np.float32)
        x.reshape(-1)[place] = np.nan
        found.append(bool(np.isnan(run(op, x, **attributes)).any()))
    return found
pool, line = kept("MaxPool", (1, 1, 2, 2), kernel_shape=[2, 2]), kept("ReduceMax", (1, 8), axes=[1])
low = np.full((1, 1, 4, 4), -np.inf, np.float32)
two, one = run("MaxPool", low, kernel_shape=[2, 2]).max(), run("MaxPool", low[0], kernel_shape=[2]).max()
print("MaxPool 2x2 keeps NaN at", pool, "| ReduceMax at", line, "| -inf in 2-D:", two, "in 1-D:", one)
same = pool == [False] * 3 + [True] and line == [True] + [False] * 7
raise SystemExit(0 if same and two == -np.inf and one == np.finfo(np.float32).min else 1)
PY
