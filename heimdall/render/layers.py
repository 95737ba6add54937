"""What an app's calls of one frame become: layers over the camera picture, and the order that
they are drawn in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heimdall.render.content.figure import Figure, Hider, Solid


@dataclass(frozen=True)
class Bars:
    """Lines and panels: bars, a row each (see `shapes`)."""

    rows: np.ndarray


@dataclass(frozen=True)
class Text:
    """Lines of text: a glyph a row (see `glyphs`)."""

    rows: np.ndarray


@dataclass(frozen=True)
class Tint:
    """A colour, RGBA 0..1, where a mask is likely."""

    values: np.ndarray  # probabilities (h, w)
    color: tuple[float, float, float, float]


@dataclass(frozen=True)
class Image:
    """A picture of its own, in any four corners."""

    pixels: np.ndarray  # RGB or RGBA uint8 (h, w, 3 or 4)
    homography: np.ndarray  # unit square to clip space, (3, 3)


@dataclass(frozen=True)
class Occlusion:
    """The camera picture again, in front of solids, where a mask is likely."""

    values: np.ndarray  # probabilities (h, w)


Layer = Bars | Text | Tint | Image | Occlusion | Solid


def in_order(layers: Sequence[Layer]) -> list[Layer]:
    """The layers, with planes that hide solids before the first of those, and masks that do, if
    they were called earlier, behind the last."""
    solid = [i for i, layer in enumerate(layers) if isinstance(layer, Figure)]
    if not solid:
        return [layer for layer in layers if not isinstance(layer, Hider)]
    first, last = solid[0], solid[-1]
    hiders = [layer for layer in layers if isinstance(layer, Hider)]
    others = [(i, layer) for i, layer in enumerate(layers) if not isinstance(layer, Hider)]
    early = [each for i, each in others if i < last and isinstance(each, Occlusion)]
    before = [each for i, each in others if i < first and not isinstance(each, Occlusion)]
    within = [each for i, each in others if first <= i <= last and not isinstance(each, Occlusion)]
    return [*before, *hiders, *within, *early, *(each for i, each in others if i > last)]


def together(layers: Sequence[Layer]) -> bool:
    """True if there are solids, with no other layer between them."""
    where = [number for number, layer in enumerate(layers) if isinstance(layer, Solid)]
    return bool(where) and where[-1] - where[0] < len(where)


def merged(layers: Sequence[Layer]) -> list[Layer]:
    """Neighbouring bars, and neighbouring texts, as one draw each."""
    merged: list[Layer] = []
    for layer in layers:
        before = merged[-1] if merged else None
        if isinstance(layer, Bars) and isinstance(before, Bars):
            merged[-1] = Bars(np.concatenate([before.rows, layer.rows]))
        elif isinstance(layer, Text) and isinstance(before, Text):
            merged[-1] = Text(np.concatenate([before.rows, layer.rows]))
        else:
            merged.append(layer)
    return merged
