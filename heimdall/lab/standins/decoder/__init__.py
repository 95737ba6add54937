"""Language models of Llama's architecture, of any size, in the two forms in which their ONNX files
are published.

- ``shape``      sizes, and weights by Hugging Face's names: given, or made up
- ``writing``    a graph whose nodes are named as exporters name them
- ``exported``   what Hugging Face's optimum writes: plain ONNX, one operator after the other
- ``fused``      what the builder of onnxruntime-genai writes: one operator for the attention
"""

from heimdall.lab.standins.decoder.exported import exported_decoder
from heimdall.lab.standins.decoder.fused import fused_decoder
from heimdall.lab.standins.decoder.shape import (
    SMOLLM_135M,
    SMOLLM_360M,
    DecoderShape,
    random_weights,
    weight_shapes,
)

__all__ = [
    "SMOLLM_135M",
    "SMOLLM_360M",
    "DecoderShape",
    "exported_decoder",
    "fused_decoder",
    "random_weights",
    "weight_shapes",
]
