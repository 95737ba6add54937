"""Loads and runs damaged models, one a line of its input, and says what became of each.

A process of its own: whatever a model does to it, the watcher (``watch``) lives on.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from onnx import load_from_string
from onnx.numpy_helper import to_array

from heimdall.engine.base import Engine
from tests.fuzz.mutations import mutate
from tests.fuzz.seeds import REAL, SMALL, real, small

# What models are allowed here, much less than in earnest, so that a run is short; and what the
# process may then take. A tensor is held a few times: by the caller, by an engine, on a device.
TENSOR_BYTES = CONSTANT_BYTES = 48 << 20
MACHINE_BYTES = 192 << 20
BOUND_BYTES = 2 << 30
REAL_SHARE = 0.06  # of the mutations: real files take a hundred times as long
TOLERANCE = 1e-3
NUDGE = 1e-6  # of the inputs, relative: as much as engines round differently
SENSITIVE = 5.0  # how many times more than the reference moves by that a result may differ
LARGEST = 1e6  # of a constant: with larger ones sums cancel, and onnxruntime is no reference either
SHAPES: dict[str, list[int]] = {
    "multistyle26_dynamic": [1, 3, 64, 64],
    "centerface_dynamic": [1, 3, 64, 64],
}


def damaged(seed: int) -> tuple[str, bytes]:
    """The name of a network and its damaged file: the same for the same seed."""
    random = np.random.default_rng(seed)
    if random.random() < REAL_SHARE:
        name = REAL[int(random.integers(len(REAL)))]
        return name, mutate(real(name), random)
    name = list(SMALL)[int(random.integers(len(SMALL)))]
    return name, mutate(small(name), random)


class Trial:
    """Both engines, kept for all models."""

    def __init__(self, folder: Path) -> None:
        from heimdall.engine.onnxruntime import OnnxRuntimeEngine
        from heimdall.engine.opencl.engine import OpenCLEngine
        from heimdall.graph import limits

        limits.TENSOR_BYTES, limits.CONSTANT_BYTES = TENSOR_BYTES, CONSTANT_BYTES
        limits.machine_bytes = lambda: MACHINE_BYTES  # type: ignore[assignment]
        self._file = folder / "damaged.onnx"
        self._engines: tuple[Engine, ...] = (OnnxRuntimeEngine(), OpenCLEngine(keep_kernels=False))

    def run(self, seed: int) -> dict[str, Any]:
        """What became of one model: ``outcome``, and ``problem`` where it is none of those that
        may be."""
        from heimdall.errors import HeimdallError
        from heimdall.graph.graph import load_graph

        name, raw = damaged(seed)
        self._file.write_bytes(raw)
        result: dict[str, Any] = {"seed": seed, "network": name, "problem": ""}
        stage = "load"
        try:
            graph = load_graph(self._file, self._shapes(name, raw))
            inputs = _inputs(graph)
            wanted = _reference(raw, inputs)
            for engine in self._engines:
                if name in REAL and engine.name == "opencl":
                    continue  # their kernels compile for longer than all else takes
                stage = engine.name
                network = engine.load(graph)
                found = network.infer(network.new_state(), inputs)
                network.close()
                rounds = name == "quantised"
                problem = _difference(found, wanted, rounds=rounds)
                if problem:
                    slack = SENSITIVE * _sensitivity(raw, inputs, wanted)
                    problem = _difference(found, wanted, rounds=rounds, slack=slack)
                if problem:
                    return result | {"outcome": "wrong", "problem": f"{stage}: {problem}"}
            result["outcome"] = "compared" if wanted else "ran"
        except HeimdallError as error:
            result |= {"outcome": f"refused at {stage}", "said": str(error)}
        except Exception as error:
            result |= {"outcome": "raised", "problem": f"{stage}: {type(error).__name__}: {error}"}
        return result

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


def _peak_bytes() -> int:
    """The most memory that this process had. Linux' ``ru_maxrss`` counts what its parent had when
    it was started."""
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _bound_memory() -> None:
    """Of addresses, so that a model that asks for too much fails here, and not the machine."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Seeds in, a line a seed out; ends with its input, or when it has taken too much memory."""
    _bound_memory()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEIMDALL_CACHE"] = str(Path(folder) / "cache")
        trial = Trial(Path(folder))
        for line in sys.stdin:
            result = trial.run(int(line))
            too_large = _peak_bytes() > BOUND_BYTES
            if too_large and not result["problem"]:
                result["problem"] = f"took {_peak_bytes() >> 20} MB"
            print(json.dumps(result), flush=True)
            if too_large:
                break


if __name__ == "__main__":
    main()
