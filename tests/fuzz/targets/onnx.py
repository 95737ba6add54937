"""ONNX files, loaded and run on both engines, and held against onnxruntime itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import load_from_string
from onnx.numpy_helper import to_array

from heimdall.engine.base import Engine
from tests.fuzz.target import FindingError, Target
from tests.fuzz.targets.onnx_mutations import mutate
from tests.fuzz.targets.onnx_seeds import REAL, SMALL, real, small

# What models are allowed here, much less than in earnest, so that a run is short. A tensor is held
# a few times: by the caller, by an engine, on a device.
TENSOR_BYTES = CONSTANT_BYTES = 48 << 20
MACHINE_BYTES = 192 << 20
REAL_SHARE = 0.06  # of the mutations: real files take a hundred times as long
TOLERANCE = 1e-3
NUDGE = 1e-6  # of the inputs, relative: as much as engines round differently
SENSITIVE = 5.0  # how many times more than the reference moves by that a result may differ
LARGEST = 1e6  # of a constant: with larger ones sums cancel, and onnxruntime is no reference either
SHAPES: dict[str, list[int]] = {
    "multistyle26_dynamic": [1, 3, 64, 64],
    "centerface_dynamic": [1, 3, 64, 64],
}


class Fuzzed(Target):
    """Both engines, kept for all models."""

    bound_bytes = 2 << 30
    limit_s = 60.0
    suffix = ".onnx"

    def __init__(self, folder: Path) -> None:
        from heimdall.engine.onnxruntime import OnnxRuntimeEngine
        from heimdall.engine.opencl.engine import OpenCLEngine
        from heimdall.graph import limits

        limits.TENSOR_BYTES, limits.CONSTANT_BYTES = TENSOR_BYTES, CONSTANT_BYTES
        limits.machine_bytes = lambda: MACHINE_BYTES  # type: ignore[assignment]
        self._file = folder / "damaged.onnx"
        self._engines: tuple[Engine, ...] = (OnnxRuntimeEngine(), OpenCLEngine(keep_kernels=False))

    @staticmethod
    def damaged(random: np.random.Generator) -> tuple[str, bytes]:
        if random.random() < REAL_SHARE:
            name = REAL[int(random.integers(len(REAL)))]
            return name, mutate(real(name), random)
        name = list(SMALL)[int(random.integers(len(SMALL)))]
        return name, mutate(small(name), random)

    def run(self, name: str, raw: bytes) -> str:
        from heimdall.graph.graph import load_graph

        self._file.write_bytes(raw)
        self.stage = "load"
        graph = load_graph(self._file, self._shapes(name, raw))
        inputs = _inputs(graph)
        wanted = _reference(raw, inputs)
        for engine in self._engines:
            if name in REAL and engine.name == "opencl":
                continue  # their kernels compile for longer than all else takes
            self.stage = engine.name
            network = engine.load(graph)
            found = network.infer(network.new_state(), inputs)
            network.close()
            rounds = name == "quantised"
            problem = _difference(found, wanted, rounds=rounds)
            if problem:
                slack = SENSITIVE * _sensitivity(raw, inputs, wanted)
                problem = _difference(found, wanted, rounds=rounds, slack=slack)
            if problem:
                raise FindingError(problem)
        return "compared" if wanted else "ran"

    def _shapes(self, name: str, raw: bytes) -> dict[str, list[int]] | None:
        """Free sizes are chosen where the input is still there."""
        if name not in SHAPES:
            return None
        try:
            values = load_from_string(raw).graph.input
        except Exception:
            return None
        return {value.name: SHAPES[name] for value in values[:1]}  # old files list weights, too


def _inputs(graph: Any) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {
        tensor.name: random.normal(0, 1, tensor.shape).astype(tensor.dtype)
        for tensor in graph.inputs
    }


def _reference(raw: bytes, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What onnxruntime makes of the file itself, nothing where it makes nothing of it."""
    import onnxruntime as ort

    if not _is_tame(raw):
        return {}
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(raw, options, ["CPUExecutionProvider"])
        names = [each.name for each in session.get_outputs()]
        return dict(zip(names, session.run(None, inputs), strict=True))
    except Exception:  # onnxruntime raises a dozen types of its own
        return {}


def _sensitivity(raw: bytes, inputs: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> float:
    """How far onnxruntime's own results move, of their largest value, with inputs that differ by
    rounding: damaged weights make networks that amplify it."""
    nudged = {
        k: v * v.dtype.type(1 + NUDGE) if v.dtype.kind == "f" else v for k, v in inputs.items()
    }
    moved = _reference(raw, nudged)
    sizes = [
        float(np.abs(moved[name] - array).max() / max(np.abs(array).max(), 1e-3))
        for name, array in wanted.items()
        if name in moved and array.size and array.dtype.kind == "f"
    ]
    return max((size for size in sizes if np.isfinite(size)), default=0.0)


def _is_tame(raw: bytes) -> bool:
    """Are all constants finite and of a size that float32 can add?"""
    for tensor in load_from_string(raw).graph.initializer:
        array = to_array(tensor)
        if array.dtype.kind == "f" and not (np.abs(array) <= LARGEST).all():
            return False
    return True


def _difference(
    found: dict[str, np.ndarray],
    wanted: dict[str, np.ndarray],
    *,
    rounds: bool = False,
    slack: float = 0.0,
) -> str:
    """What is wrong with ``found``, in words. Where a network ``rounds``, one value in fifty may be
    a step off: a tie that falls to the other side. ``slack`` is added to the tolerance."""
    tolerance = TOLERANCE + slack
    for name, expected in wanted.items():
        if name not in found:
            return f"{name} is missing"
        got = found[name]
        if got.shape != expected.shape or got.dtype.kind != expected.dtype.kind:
            return f"{name} is {got.dtype} {got.shape}, not {expected.dtype} {expected.shape}"
        if expected.dtype.kind not in "fiub" or not np.isfinite(expected).all():
            continue  # what follows from infinities and NaN differs from device to device
        expected, got = expected.astype(np.float64), got.astype(np.float64)
        largest = max(np.abs(expected).max(initial=0), 1e-3)
        if largest > 1e6 or not expected.size:
            continue  # beyond that float32 itself is coarser than the tolerance
        off = np.abs(got - expected) / largest
        error = off.max()
        levels = np.unique(expected)
        step = np.diff(levels).min() / largest if rounds and len(levels) > 1 else 0.0
        if error <= step + tolerance and (off > tolerance).mean() <= 0.02:
            continue
        if not error <= tolerance:
            return f"{name} differs by {error:.2g} of its largest value"
    return ""
