"""Networks that stand in for a load: the classics that the onnx package carries for its tests, and
those that are built here (``heimdall.lab.standins``).

They have the right shapes and made-up weights, so what they cost is real and what they say is
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from heimdall.errors import ConfigError, unknown
from heimdall.lab.standins import families
from heimdall.models.base import Pipeline, Prepared
from heimdall.models.custom import OnnxPipeline
from heimdall.models.letterbox import planes, shrink

PREFIX = "light:"  # light:resnet50
_FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


class Silent(Pipeline):
    """All the work of another pipeline, and no result: what it finds is not what the app asked
    for, and the app could not read it."""

    def __init__(self, worker: Pipeline) -> None:
        self._worker = worker
        self.networks = worker.networks

    def prepare(
        self, stage: int, image: np.ndarray, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        return self._worker.prepare(stage, image, previous, options)

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> Any:
        return self._worker.decode(stage, outputs, context)

    def combine(self, results: Sequence[Sequence[Any]], image: np.ndarray) -> Any:
        self._worker.combine(results, image)


def is_standin(model: str) -> bool:
    """Whether it is called as such networks are."""
    return model.startswith(PREFIX) or families.is_built(model)


def standin_path(model: str) -> Path:
    """The file of ``light:NAME`` or, built here, ``FAMILY:NAME``. Raises ConfigError for one that
    there is not."""
    if families.is_built(model):
        return families.built(model)
    name = model.removeprefix(PREFIX)
    path = _FOLDER / f"light_{name}.onnx"
    if not path.is_file():
        found = [each.stem.removeprefix("light_") for each in _FOLDER.glob("*.onnx")]
        raise ConfigError(unknown("light network of the onnx package", name, found or ["(none)"]))
    return path


def open_standin(model: str) -> Pipeline:
    """The network ``light:NAME`` of the installed onnx package, fed with the shrunken frame.

    Raises ConfigError for a name that the package does not carry, listing those it does.
    """
    path = standin_path(model)
    tensor, (height, width) = _input(path)

    def preprocess(image: np.ndarray) -> Mapping[str, np.ndarray]:
        return {tensor: planes(shrink(image, width, height), rgb=True, scale=1 / 255)}

    def decode(outputs: Mapping[str, np.ndarray], context: Any) -> None:
        return None

    return OnnxPipeline(path, preprocess, decode)


def _input(path: Path) -> tuple[str, tuple[int, int]]:
    """Name and (height, width) of the one input that is no weight."""
    graph = onnx.load(path).graph
    weights = {item.name for item in graph.initializer}
    (value,) = [each for each in graph.input if each.name not in weights]
    height, width = (axis.dim_value for axis in value.type.tensor_type.shape.dim[2:])
    return value.name, (height, width)
