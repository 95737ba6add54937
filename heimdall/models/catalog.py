"""The catalogue: every bundled network by name, and the door to your own.

Another one is an OnnxPipeline of its file where that is enough, a Pipeline passed to ``DNN``, or a
ModelEntry: registered in ``CATALOG``, or offered by a package under the entry points
``heimdall.models`` (docs/do/model.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heimdall.errors import ConfigError, unknown
from heimdall.models.base import Pipeline
from heimdall.models.body import Bodies
from heimdall.models.classify import Fashion
from heimdall.models.custom import OnnxPipeline
from heimdall.models.detect import NanoDet
from heimdall.models.face import CenterFace
from heimdall.models.face_mesh import FaceMeshes
from heimdall.models.hand import Hands
from heimdall.models.keywords import Keywords
from heimdall.models.ocr import OCR
from heimdall.models.pose import MoveNet
from heimdall.models.segment import Selfie
from heimdall.models.speech import VoiceActivity
from heimdall.models.style import MultiStyle
from heimdall.models.text import PPOCR
from heimdall.system.registry import Registry

Make = Callable[..., Pipeline[Any]]


@dataclass(frozen=True)
class ModelEntry:
    """One line of ``heimdall models``. ``make(**options)`` builds the pipeline; ``files`` are those
    of its networks, names in assets/models or absolute paths."""

    name: str
    title: str
    task: str
    make: Make
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
        "21 points of each hand, in metres too",
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
        "fashion",
        "Fashion-MNIST classifier 28x28 with early exits",
        "which of 10 pieces of clothing",
        Fashion,
        "Apache-2.0",
        ("fashion_exits_28.onnx",),
    ),
    ModelEntry(
        "face-mesh",
        "CenterFace, MediaPipe face mesh 192x192 and iris 64x64",
        "468 points of each face, irises, the head's pose",
        FaceMeshes,
        "MIT and Apache-2.0",
        ("centerface_dynamic.onnx", "face_mesh_192.onnx", "iris_64.onnx"),
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
        "body",
        "MoveNet 192x192 and MediaPipe pose landmarks 256x256 (full)",
        "33 joints of a body, in metres too",
        Bodies,
        "Apache-2.0",
        ("pose_movenet_lightning_192.onnx", "pose_landmark_full_256.onnx"),
    ),
    ModelEntry(
        "ppocr",
        "PP-OCRv4 text detection, any size",
        "text regions",
        PPOCR,
        "Apache-2.0",
        ("ppocrv4_det_dynamic.onnx",),
    ),
    ModelEntry(
        "ocr",
        "PP-OCRv4: text detection, direction and recognition",
        "text lines, read: Chinese and English",
        OCR,
        "Apache-2.0",
        (
            "ppocrv4_det_dynamic.onnx",
            "text_ppocr_cls_dynamic.onnx",
            "text_ppocrv4_rec_dynamic.onnx",
        ),
    ),
    ModelEntry(
        "speech",
        "Silero VAD, 32 ms",
        "does somebody speak (hears)",
        VoiceActivity,
        "MIT",
        ("speech_silero_16k.onnx",),
    ),
    ModelEntry(
        "keywords",
        "Keywords, one second",
        "which of ten words was said (hears)",
        Keywords,
        "Apache-2.0",
        ("keywords_16k.onnx",),
    ),
)


def _accept(name: str, value: object) -> str | None:
    if not isinstance(value, ModelEntry):
        return f"must be a heimdall.models.ModelEntry, not {value!r}"
    return None if value.name == name else f"must have that name itself: it is {value.name!r}"


CATALOG: Registry[ModelEntry] = Registry(
    "model", "heimdall.models", {entry.name: entry for entry in _ENTRIES}, _accept
)


def open_pipeline(name_or_path: str | Path, **options: Any) -> Pipeline[Any]:
    """The pipeline of a catalogue name, or of your own ``.onnx`` file.

    ``options`` are the arguments of the pipeline's class (``size=(480, 640)``, ``score=0.5``,
    ...); a path needs ``preprocess`` and ``decode`` (see OnnxPipeline).

    Raises ConfigError for unknown names and options, listing the valid ones; ModelError for a
    missing file.
    """
    if _looks_like_path(name_or_path):
        _check_options(str(name_or_path), OnnxPipeline, {"path": name_or_path, **options})
        return OnnxPipeline(name_or_path, **options)
    if name_or_path not in CATALOG:
        raise ConfigError(
            unknown("model", str(name_or_path), CATALOG.labels())
            + "; or give the path of an .onnx file with preprocess and decode functions"
        )
    entry = CATALOG[str(name_or_path)]
    _check_options(entry.name, entry.make, options)
    return entry.make(**options)


def comes_with_exits(name: str) -> bool:
    """True if there is a network of that name with early exits and one without: the option
    ``exits``."""
    return name in CATALOG and "exits" in inspect.signature(CATALOG[name].make).parameters


def _looks_like_path(name: str | Path) -> bool:
    text = str(name)
    return isinstance(name, Path) or text.endswith(".onnx") or "/" in text or "\\" in text


def _check_options(
    name: str, make: Callable[..., Pipeline[Any]], options: Mapping[str, Any]
) -> None:
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
            f"model {name!r} needs {' and '.join(missing)}, such as preprocess=ImageInput(), "
            'decode=Boxes("yolov8", labels), or functions of yours: docs/learn/own-network.md'
        )
