"""The catalogue of networks: each turns a frame into input tensors, and outputs into a result.

``catalog`` lists them, ``base`` is their contract, ``results`` what apps receive; then one task
a file: ``detect segment hand style face face_mesh pose body text ocr classify speech keywords``,
and ``custom`` for your own ONNX file, with ``image_input``, ``boxes`` and ``decoders`` ready for
it. ``scene_prompt`` is what the bundled language model is asked, ``generation`` writes its answer.
"""

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.boxes import Boxes
from heimdall.models.catalog import CATALOG, ModelEntry, open_pipeline
from heimdall.models.classify import Labels
from heimdall.models.custom import Decode, OnnxPipeline, Preprocess
from heimdall.models.decoders import Embedding, HeatMaps, Masks
from heimdall.models.image_input import ImageInput
from heimdall.models.luminance import luminance_difference, luminance_grid, luminance_plane
from heimdall.models.results import (
    Body,
    Body3D,
    Detection,
    FaceMesh,
    Hand,
    Label,
    Mask,
    Picture,
    Speech,
    TextLine,
    TextRegion,
)

__all__ = [
    "CATALOG",
    "Body",
    "Body3D",
    "Boxes",
    "Decode",
    "Detection",
    "Embedding",
    "FaceMesh",
    "Hand",
    "HeatMaps",
    "ImageInput",
    "Label",
    "Labels",
    "Mask",
    "Masks",
    "ModelEntry",
    "Network",
    "OnnxPipeline",
    "Picture",
    "Pipeline",
    "Prepared",
    "Preprocess",
    "Speech",
    "TextLine",
    "TextRegion",
    "luminance_difference",
    "luminance_grid",
    "luminance_plane",
    "open_pipeline",
]
