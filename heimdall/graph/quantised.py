"""Quantised networks become networks of floats that hold the same whole numbers.

A quantised tensor is held as floats, mostly without its zero point. Convolutions and products
with quantised weights multiply and add whole numbers, which floats do exactly up to 2^24, in any
order; one multiplication by the scales comes after, in the order and the precision in which
onnxruntime's kernels do it, and then the rounding, half to even. See ``whole_numbers``.
"""

from __future__ import annotations

import logging
from pathlib import Path

import onnx

from heimdall.errors import ModelError
from heimdall.graph.checks import MisfitError
from heimdall.graph.quantised_ops import REWRITES
from heimdall.graph.values import attributes_of, constant_of, node_name, opset_of
from heimdall.graph.whole import OnlyWholeError
from heimdall.graph.whole_numbers import SUMS, WholeNumbers

log = logging.getLogger(__name__)

LEAST_OPSET = 11  # the first with Round
# Ops that neither mix nor compare with other numbers: whole numbers pass through them as floats.
# By op, the inputs that are data; None: all of them.
_PASSES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze"), (0,)),
    **dict.fromkeys(("Slice", "Gather", "Split", "Identity", "Expand", "Tile", "Relu"), (0,)),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), (0,)),
    **dict.fromkeys(("Concat", "Max", "Min"), None),
    "Pad": (0, 2),
    "Clip": (0, 1, 2),
}
# Of these, those whose results are scaled when their data are; Relu without zero points only.
_MOVES = {op for op, places in _PASSES.items() if places == (0,)}
# Known to onnxruntime, not here; others have a name that says it.
_OTHERS = {"MatMulIntegerToFloat", "MatMulBnb4", "QAttention", "QMoE", "QOrderedMatMul"}


def is_quantised(node: onnx.NodeProto) -> bool:
    """Is it an op of quantised networks, whether ``rewrite`` knows it or not?"""
    kind = node.op_type
    return kind in _OTHERS or kind in REWRITES or "quantize" in kind.lower() or kind[:2] == "QL"


def rewrite(path: Path, model: onnx.ModelProto) -> bool:
    """Replace the quantised ops of a model; True if there were any, else nothing is changed.

    Raises OnlyWholeError, naming the node, for those that are not known here.
    """
    found = any(is_quantised(node) for node in model.graph.node)
    if found:
        _Rewriting(path, model).all()
    return found


class _Rewriting:
    """Goes through the nodes; ``_numbers`` has the new ones, and what stands for each tensor."""

    def __init__(self, path: Path, model: onnx.ModelProto) -> None:
        self._path, self._model = path, model
        self._where = ""
        self._numbers = WholeNumbers(model)
        for node in model.graph.node:
            if node.op_type == "Constant" and not node.domain:
                stored = constant_of(node)
                if stored is not None:
                    self._numbers.store(node.output[0], stored)

    def all(self) -> None:
        opset = opset_of(self._model)
        for index, node in enumerate(self._model.graph.node):
            name = self._numbers.node = node_name(index, node)
            self._where = f"node {name!r} ({node.op_type}) of {self._path}"
            if is_quantised(node):
                if opset < LEAST_OPSET:
                    raise OnlyWholeError(
                        f"{self._where}: quantised networks need opset {LEAST_OPSET} or newer, "
                        f"not {opset} (onnx.version_converter converts them)"
                    )
                self._rewrite(node)
            elif node.op_type in _PASSES and node.input and node.input[0] in self._numbers.kinds:
                self._pass(node)
            elif node.op_type == "Resize" and self._resize(node):
                continue
            elif not (self._move(node) or self._sum(node)):
                self._keep(node)
        for value in self._model.graph.output:
            self._numbers.integers(value.name)
        del self._model.graph.node[:]
        self._model.graph.node.extend(self._needed())

    def _needed(self) -> list[onnx.NodeProto]:
        """Of a tensor's numbers with and without zero point and scale only some are read."""
        read, kept = {value.name for value in self._model.graph.output}, []
        for node in reversed(self._numbers.nodes):
            if read.intersection(node.output):
                kept.append(node)
                read.update(node.input)
        return kept[::-1]

    def _rewrite(self, node: onnx.NodeProto) -> None:
        known = REWRITES.get(node.op_type)
        if known is None or not node.input:
            raise OnlyWholeError(f"{self._where}: this quantised op is not known here")
        try:
            known(self._numbers, node, [*node.input, *[""] * 9], attributes_of(node))
        except MisfitError as error:
            raise ModelError(f"{self._where}: {error}") from error
        except (IndexError, KeyError, ValueError, TypeError, AttributeError) as error:
            log.debug("%s", self._where, exc_info=True)
            raise OnlyWholeError(
                f"{self._where}: its scales and zero points are not known here: {error}"
            ) from error

    def _keep(self, node: onnx.NodeProto) -> None:
        copy = _copy(node)
        for index, name in enumerate(node.input):
            if name in self._numbers.kinds:
                if node.op_type == "Cast":
                    copy.input[index] = self._numbers.floats(name)
                else:
                    self._numbers.integers(name)
        self._numbers.nodes.append(copy)

    def _pass(self, node: onnx.NodeProto) -> None:
        """An op of whole numbers, on floats."""
        numbers, x = self._numbers, node.input[0]
        if node.op_type in _MOVES - {"Relu"} and x in numbers.centred:
            whole, zero = numbers.centred[x]
            for name, moved in self._moved(node, whole).items():
                numbers.kinds[name], numbers.centred[name] = numbers.kinds[x], (moved, zero)
            return
        copy, places = _copy(node), _PASSES[node.op_type]
        for index in range(len(node.input)) if places is None else places:
            if index < len(node.input) and node.input[index]:
                copy.input[index] = numbers.floats(node.input[index])
        for index, name in _data_outputs(node):
            copy.output[index] = numbers.carry(name, numbers.kinds[x])
        numbers.nodes.append(copy)

    def _resize(self, node: onnx.NodeProto) -> bool:
        """Bilinear, of integers, by powers of two: floats are exact, and cut off like those."""
        numbers, get = self._numbers, attributes_of(node)
        scales = numbers.array(node.input[2]) if len(node.input) == 3 else None
        where = get.get("coordinate_transformation_mode", "half_pixel")
        exact = where in ("half_pixel", "pytorch_half_pixel", "asymmetric")
        if not exact or get.get("mode") != "linear" or node.input[0] not in numbers.kinds:
            return False
        if scales is None or scales.shape != (4,) or not set(scales.tolist()) <= {1.0, 2.0, 4.0}:
            return False
        if scales[0] != 1.0 or scales[1] != 1.0:
            return False
        copy, name = _copy(node), node.output[0]
        copy.input[0] = numbers.floats(node.input[0])
        copy.output[0] = resized = numbers.name(f"{name}/mean")
        numbers.nodes.append(copy)
        kind = numbers.kinds[node.input[0]]
        whole = numbers.emit("Floor", numbers.emit("Abs", resized))
        numbers.emit("Mul", whole, numbers.emit("Sign", resized), into=numbers.carry(name, kind))
        return True

    def _move(self, node: onnx.NodeProto) -> bool:
        """An op that moves dequantised numbers moves what they are made of."""
        numbers, op = self._numbers, node.op_type
        nearest = op == "Resize" and attributes_of(node).get("mode", "nearest") == "nearest"
        if op == "Concat" and not node.domain:
            return numbers.concat(node.input, node.output[0], **attributes_of(node))
        x = numbers.scaled.get(node.input[0]) if node.input else None
        if x is None or not x.uniform or not (nearest or op in _MOVES):
            return False
        for name, moved in self._moved(node, x.whole).items():
            numbers.scale(x._replace(whole=moved), into=name)
        return True

    def _moved(self, node: onnx.NodeProto, x: str) -> dict[str, str]:
        """A node of another first input; by its outputs of data, what they are called now."""
        copy, made = _copy(node), {}
        copy.input[0] = x
        for index, name in _data_outputs(node):
            made[name] = copy.output[index] = self._numbers.name(f"{name}/whole")
        self._numbers.nodes.append(copy)
        return made

    def _sum(self, node: onnx.NodeProto) -> bool:
        """A convolution or product of dequantised numbers, of what they are made of."""
        if node.op_type not in SUMS or node.domain or not 2 <= len(node.input) <= 3:
            return False
        known = [self._numbers.scaled.get(name) for name in node.input if name]
        x, weights, bias = [*known, None, None][:3]
        if x is None or weights is None or (bias is None and len(known) > 2):
            return False
        found = self._numbers.sum(node.op_type, x, weights, bias, attributes_of(node))
        if found is not None:
            self._numbers.scale(found, into=node.output[0])
        return found is not None


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _data_outputs(node: onnx.NodeProto) -> list[tuple[int, str]]:
    """The outputs that hold what the inputs do: not the places of MaxPool."""
    named = [(index, name) for index, name in enumerate(node.output) if name]
    return named if node.op_type == "Split" else named[:1]
