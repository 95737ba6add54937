"""Runs real pipelines: every stage through onnxruntime, as the engines would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime as ort
import pytest

from heimdall.analyzer.graph import load_graph
from heimdall.models.base import Network, Pipeline

Run = Callable[..., Any]


def _session(network: Network) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    graph = load_graph(network.path, network.shapes or None)
    return ort.InferenceSession(graph.serialized, options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def run() -> Run:
    """``run(pipeline, image, **options)``: the final result."""
    sessions: dict[str, ort.InferenceSession] = {}

    def run_pipeline(pipeline: Pipeline, image: np.ndarray, **options: Any) -> Any:
        results: list[list[Any]] = []
        for stage, network in enumerate(pipeline.networks):
            key = repr(network)
            session = sessions.get(key) or sessions.setdefault(key, _session(network))
            names = [output.name for output in session.get_outputs()]
            decoded = []
            for task in pipeline.prepare(stage, image, results[-1] if results else [], options):
                outputs = dict(zip(names, session.run(None, dict(task.inputs)), strict=True))
                decoded.append(pipeline.decode(stage, outputs, task.context))
            results.append(decoded)
        return pipeline.combine(results, image)

    return run_pipeline


@pytest.fixture(scope="session")
def clip_frame() -> Callable[[str, int], np.ndarray]:
    """``clip_frame("box.mp4", 30)``: that frame of a bundled clip."""
    from heimdall import paths

    def read(name: str, index: int) -> np.ndarray:
        for number, image in enumerate(_frames(paths.ASSETS / "media" / name)):
            if number == index:
                return image
        raise AssertionError(f"{name} has no frame {index}")

    return read


@pytest.fixture(scope="session")
def five_people() -> np.ndarray:
    from heimdall import paths

    return cv2.imread(str(paths.ASSETS / "media" / "multi_face.jpg"))


def _frames(path: Path) -> Iterator[np.ndarray]:
    capture = cv2.VideoCapture(str(path))
    try:
        while True:
            ok, image = capture.read()
            if not ok:
                return
            yield image
    finally:
        capture.release()
