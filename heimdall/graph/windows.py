"""Windows of pools against the padded input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import helper


def drop_windows_outside(
    node: onnx.NodeProto,
    attributes: Mapping[str, Any],
    size: Sequence[int],
    found: Sequence[int],
) -> bool:
    """A pool in ceil mode whose last window would start behind the picture: shape inference of
    older opsets counts it, onnxruntime (and PyTorch) do not. The node gets pads that end before
    it; true if it was changed. ``found`` is the size that was inferred."""
    if not attributes.get("ceil_mode", 0):
        return False
    if attributes.get("auto_pad", "NOTSET").startswith("SAME"):  # says the size by itself
        _set_attributes(node, ceil_mode=0)
        return True
    if attributes.get("count_include_pad", 0) and any(attributes.get("pads", ())):
        return False  # what is counted would change
    pads = _pads_of_windows_inside(attributes, size, found)
    if pads is None:
        return False
    _set_attributes(node, auto_pad=0, ceil_mode=0, count_include_pad=0, pads=pads)
    return True


def _set_attributes(node: onnx.NodeProto, **values: Any) -> None:
    """Attributes that are zero are left out: not every opset knows them."""
    kept = [item for item in node.attribute if item.name not in values]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(k, v) for k, v in values.items() if v)


def _pads_of_windows_inside(
    attributes: Mapping[str, Any], size: Sequence[int], found: Sequence[int]
) -> list[int] | None:
    """Pads that floor mode needs for the windows which start inside; None if all of them do."""
    rank, kernel = len(size), attributes["kernel_shape"]
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    pads = list(attributes.get("pads", [0] * (2 * rank)))
    outside = False
    for axis in range(rank):
        inside, count = size[axis] + pads[axis], found[axis]
        if (count - 1) * strides[axis] >= inside:
            outside, count = True, count - 1
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        pads[axis + rank] = max(0, (count - 1) * strides[axis] + reach - inside)
    return pads if outside else None
