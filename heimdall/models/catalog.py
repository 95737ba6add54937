"""The catalogue: every bundled network by name, and the door to your own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from heimdall.errors import ConfigError, unknown
from heimdall.models.base import Pipeline
from heimdall.models.custom import OnnxPipeline
from heimdall.models.detect import NanoDet
from heimdall.models.face import CenterFace
from heimdall.models.hand import Hands
from heimdall.models.pose import MoveNet
from heimdall.models.segment import Selfie
from heimdall.models.style import MultiStyle
from heimdall.models.text import PPOCR


@dataclass(frozen=True)
class ModelEntry:
    """One line of ``heimdall models``. ``make(**options)`` builds the pipeline."""

    name: str
    title: str
    task: str
    make: Callable[..., Pipeline]
    licence: str
    files: tuple[str, ...]


_ENTRIES = (
    ModelEntry(
        "nanodet",
        "NanoDet 416x416",
        "objects of 80 COCO classes",
        NanoDet,
        "Apache-2.0",
        ("detect_nanodet_416.onnx",),
    ),
    ModelEntry(
        "selfie",
        "MediaPipe selfie segmentation 256x256",
        "mask of persons",
        Selfie,
        "Apache-2.0",
        ("seg_selfie_256.onnx",),
    ),
    ModelEntry(
        "hand",
        "MediaPipe palm 192x192 and hand landmarks 224x224 (lite)",
        "21 points of each hand",
        Hands,
        "Apache-2.0",
        ("hand_palm_lite_192.onnx", "hand_landmark_lite_224.onnx"),
    ),
    ModelEntry(
        "multistyle",
        "Style transfer, 26 styles, any size",
        "restyled picture",
        MultiStyle,
        "MIT",
        ("multistyle26_dynamic.onnx",),
    ),
    ModelEntry(
        "centerface",
        "CenterFace, any size",
        "faces with 5 landmarks",
        CenterFace,
        "MIT",
        ("centerface_dynamic.onnx",),
    ),
    ModelEntry(
        "movenet",
        "MoveNet Lightning 192x192",
        "17 joints of a body",
        MoveNet,
        "Apache-2.0",
        ("pose_movenet_lightning_192.onnx",),
    ),
    ModelEntry(
        "ppocr",
        "PP-OCRv4 text detection, any size",
        "text regions",
        PPOCR,
        "Apache-2.0",
        ("ppocrv4_det_dynamic.onnx",),
    ),
)

CATALOG: Mapping[str, ModelEntry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def open_pipeline(name_or_path: str | Path, **options: Any) -> Pipeline:
    """The pipeline of a catalogue name, or of your own ``.onnx`` file.

    ``options`` are the arguments of the pipeline's class (``size=(480, 640)``, ``score=0.5``,
    ...); a path needs ``preprocess`` and ``decode`` (see OnnxPipeline).

    Raises ConfigError for unknown names and options, listing the valid ones; ModelError for a
    missing file.
    """
    entry = CATALOG.get(str(name_or_path))
    if entry is None and not _looks_like_path(name_or_path):
        raise ConfigError(
            unknown("model", str(name_or_path), CATALOG)
            + "; or give the path of an .onnx file with preprocess and decode functions"
        )
    if entry is None:
        _check_options(str(name_or_path), OnnxPipeline, {"path": name_or_path, **options})
        return OnnxPipeline(name_or_path, **options)
    _check_options(entry.name, entry.make, options)
    return entry.make(**options)


def _looks_like_path(name: str | Path) -> bool:
    text = str(name)
    return isinstance(name, Path) or text.endswith(".onnx") or "/" in text or "\\" in text


def _check_options(name: str, make: Callable[..., Pipeline], options: Mapping[str, Any]) -> None:
    signature = inspect.signature(make)
    for option in options:
        if option not in signature.parameters:
            valid = [choice for choice in signature.parameters if choice != "path"]
            if not valid:
                raise ConfigError(f"model {name!r} takes no options; given was {option!r}")
            raise ConfigError(unknown(f"option of model {name!r}", option, valid))
    missing = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and parameter.name not in options
    ]
    if missing:
        raise ConfigError(
            f"model {name!r} needs {' and '.join(missing)}: functions that turn a frame into "
            "input tensors and output tensors into a result (heimdall.models.OnnxPipeline)"
        )
