"""``heimdall check`` as a function: figures for good models, reasons for bad ones."""

import json

import numpy as np
import pytest

from heimdall.analyzer import profiler
from heimdall.engine.null import NullEngine
from heimdall.engine.onnxruntime import OnnxRuntimeEngine, OnnxRuntimeNetwork
from heimdall.errors import DeviceError
from heimdall.inspection.checking import bundled_shapes, check_models
from heimdall.system import paths
from heimdall.vocabulary.enums import Precision

SELFIE = paths.ASSETS / "models" / "seg_selfie_256.onnx"
HAND = paths.ASSETS / "models" / "hand_landmark_lite_224.onnx"
KEYS = [
    "model", "ops", "fallback_ops", "max_abs_error", "max_rel_error", "gpu_ms", "chunked_ms",
    "onnxruntime_ms", "chunks", "longest_enqueue_ms", "weights_mb", "activations_mb", "cores",
    "precision", "error",
]  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(profiler, "BUDGET_S", 0.05)


@pytest.fixture(scope="module")
def gpu():
    return OnnxRuntimeEngine(processor="gpu")


def test_right_engine_has_no_error_and_all_figures(gpu):
    (entry,) = check_models([SELFIE], gpu, 1, gap_ns=1, progress=lambda *_: None)
    assert list(entry) == KEYS
    assert entry["error"] is None
    assert entry["max_rel_error"] == 0
    assert entry["fallback_ops"] == []
    assert entry["chunks"] >= 1
    assert min(entry["gpu_ms"], entry["chunked_ms"], entry["onnxruntime_ms"]) > 0
    assert json.loads(json.dumps(entry)) == entry


class HalfEngine(NullEngine):
    """Says that it has half precision."""

    half = False
    precisions = (Precision.FP32, Precision.FP16)

    def in_precision(self, precision):
        other = HalfEngine()
        other.half = precision == Precision.FP16
        return other

    def describe(self):
        return {**super().describe(), **({"precision": "fp16"} if self.half else {})}


def test_a_model_is_checked_in_the_precision_asked_for():
    (entry,) = check_models([HAND], HalfEngine(), precision="fp16")
    assert entry["precision"] == "fp16"
    (entry,) = check_models([HAND], HalfEngine())
    assert entry["precision"] == "fp32"


def test_a_precision_that_the_engine_lacks_is_an_error_before_any_model():
    with pytest.raises(DeviceError, match="engine null has no fp16: use precision='fp32'"):
        check_models([HAND], NullEngine(), precision="fp16")
    (entry,) = check_models([HAND], NullEngine(), precision="auto")
    assert entry["precision"] == "fp32"


def test_wrong_engine_is_found_out():
    (entry,) = check_models([HAND], NullEngine(), 1)
    assert entry["error"] is None
    assert entry["max_rel_error"] == 1


def test_engine_that_is_wrong_only_when_cut_is_found_out(gpu, monkeypatch):
    right = OnnxRuntimeNetwork.read

    def wrong(self, state):
        found = right(self, state)
        lone = (1, 2) in self._sessions
        return {name: value + lone for name, value in found.items()}

    monkeypatch.setattr(OnnxRuntimeNetwork, "read", wrong)
    (entry,) = check_models([HAND], gpu, 1)
    assert entry["max_abs_error"] == pytest.approx(1, abs=1e-3)


def test_answer_that_is_not_finite_is_an_error_and_no_number(gpu, monkeypatch):
    right = OnnxRuntimeNetwork.read

    def wrong(self, state):
        lone = (1, 2) in self._sessions
        return {k: np.where(lone, np.nan, v) for k, v in right(self, state).items()}

    monkeypatch.setattr(OnnxRuntimeNetwork, "read", wrong)
    (entry,) = check_models([HAND], gpu, 1)
    assert "not finite" in entry["error"]
    assert entry["max_rel_error"] is None


def test_bad_models_say_why_and_the_others_go_on(gpu, tmp_path):
    (tmp_path / "text.onnx").write_text("no model")
    entries = check_models([tmp_path / "text.onnx", tmp_path / "none.onnx", HAND], gpu, 1)
    assert "text.onnx" in entries[0]["error"]
    assert "No such file" in entries[1]["error"]
    assert entries[0]["gpu_ms"] is None
    assert entries[2]["error"] is None
    assert all(list(entry) == KEYS for entry in entries)


def test_engine_that_fails_is_reported_as_the_error(gpu, monkeypatch):
    def broken(self, state, start, end):
        raise RuntimeError("CL_OUT_OF_RESOURCES")

    monkeypatch.setattr(OnnxRuntimeNetwork, "run", broken)
    (entry,) = check_models([HAND], gpu, 1)
    assert entry["error"] == "RuntimeError: CL_OUT_OF_RESOURCES"


def test_shapes_of_bundled_models_with_free_dimensions_are_known():
    assert set(bundled_shapes()) >= {"multistyle26_dynamic.onnx", "centerface_dynamic.onnx"}
