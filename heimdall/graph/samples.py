"""Seeded random inputs that look like pictures, for measuring and checking networks.

White noise is a poor test: detectors and masks answer it with values near zero, where relative
errors mean nothing. Flat patches, a few words and some noise make every bundled network
respond (the text detector's largest value is 1.0 instead of 0.00002).
"""

from __future__ import annotations

import zlib

import cv2
import numpy as np

from heimdall.graph.bounds import within
from heimdall.graph.graph import Graph, Tensor

PATCHES = 16  # along the longer side
WORDS = 6
NOISE = 0.2  # weight of white noise against the rest


def sample_inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    """An array for every input. Pictures are -1..1 (integers: 0..255, where they lead to rows of a
    table those that it has); vectors, such as style weights, are positive and sum to one; a cache
    is full."""
    found = {
        tensor.name: np.asarray(
            _sample(tensor, np.random.default_rng([seed, zlib.crc32(tensor.name.encode())]))
        )
        for tensor in graph.inputs
    }
    for name, rows in _table_rows(graph).items():
        if name in found and found[name].dtype.kind in "iu":
            found[name] %= rows
    return within(graph, found | _lengths(graph), np.random.default_rng(seed))


def zero_inputs(graph: Graph) -> dict[str, np.ndarray]:
    """Zeros for every input, but for the lengths of a cache, which is full, and for what leads to
    rows that no table has."""
    zeros = {tensor.name: np.zeros(tensor.shape, tensor.dtype) for tensor in graph.inputs}
    return within(graph, zeros | _lengths(graph), np.random.default_rng(0))


def _table_rows(graph: Graph) -> dict[str, int]:
    """How many rows tables have, by what picks some of them."""
    return {
        node.inputs[1]: graph.constants[node.inputs[0]].shape[node.attributes.get("axis", 0)]
        for node in graph.nodes
        if node.op_type == "Gather" and node.inputs[0] in graph.constants
    }


def _lengths(graph: Graph) -> dict[str, np.ndarray]:
    """What tells attention how full its cache is."""
    names = {tensor.name: tensor for tensor in graph.inputs}
    found = {}
    for node in graph.nodes:
        if node.op_type != "GroupQueryAttention" or node.inputs[3] not in names:
            continue
        context = names[node.inputs[3]].shape[2]
        for place, length in ((5, context - 1), (6, context)):
            if (tensor := names.get(node.inputs[place])) is not None:
                found[tensor.name] = np.full(tensor.shape, length, tensor.dtype)
    return found


def _sample(tensor: Tensor, random: np.random.Generator) -> np.ndarray:
    if len(tensor.shape) <= 1:
        values = random.random(tensor.shape)
        # a lone number may be a threshold: at exactly 1 rounding would decide
        values = values / values.sum() if np.size(values) > 1 else values
    elif len(tensor.shape) == 4:
        values = _picture(tensor.shape, random)
    else:
        values = random.random(tensor.shape)
    if tensor.dtype.kind in "iu":
        return (values * 255).astype(tensor.dtype)
    if tensor.dtype.kind == "b":
        return values > 0.5
    return (values * 2 - 1 if len(tensor.shape) > 1 else values).astype(tensor.dtype)


def _picture(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Values 0..1; channels are the last axis if that one is small (NHWC), else the second."""
    channels_last = shape[3] <= 4 < shape[1]
    batch, height, width, channels = (
        shape if channels_last else (shape[0], shape[2], shape[3], shape[1])
    )
    side = max(1, max(height, width) // PATCHES)
    coarse = random.random((batch, -(-height // side), -(-width // side), channels))
    values = coarse.repeat(side, axis=1).repeat(side, axis=2)[:, :height, :width]
    for picture in values:
        _write_words(picture, random)
    values = (1 - NOISE) * values + NOISE * random.random(values.shape)
    return values if channels_last else values.transpose(0, 3, 1, 2)


def _write_words(picture: np.ndarray, random: np.random.Generator) -> None:
    """Black or white capitals at random places of a picture (height, width, channels)."""
    height, width = picture.shape[:2]
    scale = max(height, width) / 640
    for _ in range(WORDS):
        word = "".join(chr(ord("A") + letter) for letter in random.integers(0, 26, 6))
        place = (int(random.integers(0, width * 2 // 3 + 1)), int(random.integers(0, height)))
        ink = np.zeros((height, width), np.uint8)
        thickness = max(1, round(3 * scale))
        cv2.putText(ink, word, place, cv2.FONT_HERSHEY_SIMPLEX, 1.2 * scale, 255, thickness)
        picture[ink > 0] = random.integers(0, 2)
