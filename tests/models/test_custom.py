from __future__ import annotations

import numpy as np
import pytest

from heimdall.engine.checks import check_inputs
from heimdall.errors import AppError, ModelError
from heimdall.graph.graph import load_graph
from heimdall.models import OnnxPipeline, Prepared, open_pipeline


@pytest.fixture
def selfie_file() -> str:
    return str(open_pipeline("selfie").networks[0].path)


def test_a_file_of_ones_own_runs_between_two_functions(run, selfie_file) -> None:
    def preprocess(image: np.ndarray) -> dict[str, np.ndarray]:
        return {"input_1:0": np.full((1, 256, 256, 3), image.mean() / 255, np.float32)}

    def decode(outputs, context) -> tuple[float, tuple[int, int]]:
        return float(outputs["activation_10:0"].mean()), context

    pipeline = open_pipeline(selfie_file, preprocess=preprocess, decode=decode)
    mean, size = run(pipeline, np.zeros((48, 64, 3), np.uint8))
    assert 0 <= mean <= 1
    assert size == (48, 64)


def test_a_prepared_value_carries_its_own_context(selfie_file) -> None:
    pipeline = OnnxPipeline(selfie_file, lambda image: Prepared({}, "mine"), lambda o, c: c)
    (task,) = pipeline.prepare(0, np.zeros((4, 4, 3), np.uint8), [], {})
    assert pipeline.decode(0, {}, task.context) == "mine"


class Sums:
    def __call__(self, outputs):
        return sum(outputs.values())

    def method(self, outputs):
        return self(outputs)


@pytest.mark.parametrize(
    "decode",
    [
        lambda outputs: outputs["y"],
        lambda outputs, size: outputs["y"] if size == (4, 6) else None,
        lambda outputs, size=None: outputs["y"] if size == (4, 6) else None,
        lambda *both: both[0]["y"] if both[1] == (4, 6) else None,
        Sums(),
        Sums().method,
        lambda outputs, *, by=1: outputs["y"] * by,
    ],
)
def test_decode_may_take_the_outputs_alone(selfie_file, decode) -> None:
    pipeline: OnnxPipeline = OnnxPipeline(selfie_file, lambda image: {}, decode)
    (task,) = pipeline.prepare(0, np.zeros((4, 6, 3), np.uint8), [], {})
    assert pipeline.decode(0, {"y": np.float32(3)}, task.context) == 3  # type: ignore[dict-item]


@pytest.mark.parametrize("decode", [lambda: 1, lambda a, b, c: 1, lambda a, *, b: 1])
def test_a_decode_of_other_arguments_is_refused_where_it_is_given(selfie_file, decode) -> None:
    with pytest.raises(AppError, match=r"write decode\(outputs, size\).*or decode\(outputs\)"):
        OnnxPipeline(selfie_file, lambda image: {}, decode)


def test_a_preprocess_that_returns_something_else_is_named(selfie_file) -> None:
    pipeline = OnnxPipeline(selfie_file, lambda image: [image], lambda outputs, context: None)  # type: ignore
    with pytest.raises(AppError, match="preprocess of seg_selfie_256"):
        pipeline.prepare(0, np.zeros((4, 4, 3), np.uint8), [], {})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.zeros((1, 256, 256, 3)), r"\.astype\(np\.float32\)"),
        (np.zeros((256, 256, 3), np.float32), r"array\[None\]"),
        (np.zeros((1, 3, 256, 256), np.float32), r"come last, use array\.transpose\(0, 2, 3, 1\)"),
        (np.zeros((1, 240, 320, 3), np.float32), "resize the picture"),
        (np.zeros(4, np.float32), r"shape \(4,\)$"),
    ],
)
def test_a_tensor_that_does_not_fit_is_explained(selfie_file, given, says) -> None:
    with pytest.raises(ModelError, match=says):
        check_inputs(load_graph(selfie_file), {"input_1:0": given})
