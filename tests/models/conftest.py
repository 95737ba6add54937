"""Runs real pipelines: every stage through onnxruntime, as the engines would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

Run = Callable[..., Any]


@pytest.fixture(scope="session")
def clip_frame() -> Callable[[str, int], np.ndarray]:
    """``clip_frame("box.mp4", 30)``: that frame of a bundled clip."""
    from heimdall.system import paths

    def read(name: str, index: int) -> np.ndarray:
        for number, image in enumerate(_frames(paths.ASSETS / "media" / name)):
            if number == index:
                return image
        raise AssertionError(f"{name} has no frame {index}")

    return read


@pytest.fixture(scope="session")
def five_people() -> np.ndarray:
    from heimdall.system import paths

    return cv2.imread(str(paths.ASSETS / "media" / "multi_face.jpg"))


@pytest.fixture(scope="session")
def listened() -> Callable[..., list[Any]]:
    """``listened("words.ogg", hearing)``: the windows of a bundled clip, without waiting."""
    from heimdall.capture.sound import FileReader, Windows
    from heimdall.system import paths

    def read(name: str, hearing: Any) -> list[Any]:
        windows, found = Windows(hearing), []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("heimdall.capture.sound.time.sleep", lambda seconds: None)
            reader = FileReader(paths.ASSETS / "media" / name)
            while (block := reader.read()) is not None:
                found += windows.cut(*block)
            reader.close()
        return found

    return read


@pytest.fixture(scope="session")
def hear() -> Callable[..., list[Any]]:
    """``hear(pipeline, sounds, memory=None)``: what a pipeline that hears makes of windows, one
    after the other, in onnxruntime."""
    import onnxruntime as ort

    from heimdall.graph.graph import load_graph
    from heimdall.models.memory import Memory
    from heimdall.models.walk import run_pipeline

    def through_onnxruntime(pipeline: Any, sounds: Any, memory: Any = None) -> list[Any]:
        (network,) = pipeline.networks
        graph = load_graph(network.path, network.shapes or None)
        pipeline.bind([graph])
        session = ort.InferenceSession(graph.serialized, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        memory = memory or Memory(graph, network.state)

        def infer(stage: int, inputs: Any) -> dict[str, np.ndarray]:
            given = {name: np.asarray(each) for name, each in inputs.items()}
            return dict(zip(names, session.run(None, given), strict=True))

        return [run_pipeline(pipeline, each, infer, memory=memory) for each in sounds]

    return through_onnxruntime


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
