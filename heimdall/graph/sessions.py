"""onnxruntime as graphs need it: to fold, to infer, to simplify. It is silent and has one thread;
its errors arrive as exceptions, of a dozen types of its own, whose first line says enough."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

if TYPE_CHECKING:
    import onnxruntime as ort


def open_session(model: onnx.ModelProto, simplified: Path | None = None) -> ort.InferenceSession:
    """A session of the model as it is; with ``simplified`` its basic optimiser runs over it, and
    writes what it makes there. Raises what onnxruntime raises."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = (
        level.ORT_ENABLE_BASIC if simplified else level.ORT_DISABLE_ALL
    )
    if simplified:
        options.optimized_model_filepath = str(simplified)
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_prepacking", "1")  # for few runs, no copies
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


@cache
def onnxruntime_version() -> tuple[int, ...]:
    """Its first two numbers."""
    import onnxruntime as ort

    return tuple(int(part) for part in ort.__version__.split(".")[:2])


def first_line(error: Exception) -> str:
    """The first line of an error's message; its type, where it has none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
