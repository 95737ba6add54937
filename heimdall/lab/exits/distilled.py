"""The head of an exit that gives what the whole network gives: all its outputs, from one tensor on
the way.

Rows of values (landmarks, a score) come from a full layer behind two convolutions, maps (masks,
heat maps) from convolutions that keep the grid and one transposed convolution up to the output's,
so that a head of maps fits pictures of any size. Where the network ends an output with a sigmoid or
softmax, so does the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, Node, Tensor

ROW_WIDTH, MAP_WIDTH = 32, 64  # channels of the convolutions
GRID = 7  # pixels a side, about, that rows are made from
MOST_VALUES = 2048  # of an output that is a row
ENDS = ("Sigmoid", "Softmax")
_MOVES = frozenset({"Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})

Layer = tuple[Any, ...]  # its kind, and numbers: see ``_node``


@dataclass(frozen=True)
class Wanted:
    """An output of the whole network. ``end``: where it is a score, which of ``ENDS`` makes
    it one, and the ``axis`` of a softmax."""

    name: str
    shape: tuple[int, ...]
    end: str
    axis: int = -1

    @property
    def is_map(self) -> bool:
        """True if the output is a picture (1, k, h, w) or (1, h, w, k)."""
        return len(self.shape) == 4 and self.shape[0] == 1

    @property
    def trunk(self) -> str:
        """What its end follows: see ``Distilled``."""
        return "map" if self.is_map else "row"

    @property
    def channels_last(self) -> bool:
        """True if the output is (1, h, w, k): fewer channels than pixels a side."""
        return self.is_map and self.shape[3] < min(self.shape[1:3])

    @property
    def sides(self) -> tuple[int, ...]:
        """Height and width of a map."""
        return self.shape[1:3] if self.channels_last else self.shape[2:]

    @property
    def channels(self) -> int:
        """The channels of a map."""
        return self.shape[3 if self.channels_last else 1]

    @property
    def values(self) -> int:
        """The values of a row."""
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Branch:
    """Layers one after the other, with their weights and biases in turns."""

    layers: tuple[Layer, ...]
    weights: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class Distilled:
    """What an exit has learned: what maps and rows begin with, and the end of each output."""

    trunks: Mapping[str, Branch]  # "map", "row"
    ends: tuple[tuple[Wanted, Branch], ...]

    @property
    def bytes(self) -> int:
        """Bytes of its weights, in float32."""
        branches = [*self.trunks.values(), *(branch for _, branch in self.ends)]
        return sum(each.nbytes for branch in branches for each in branch.weights)


def wanted(graph: Graph) -> tuple[Wanted, ...]:
    """The outputs that an exit has to make. Raises ModelError where it cannot make one."""
    if graph.exits:
        raise ModelError(f"{graph.name} has early exits already: give the network without them")
    found = []
    for output in graph.outputs:
        node = graph.producers[output.name]
        each = Wanted(
            output.name, output.shape, _score(graph, node), node.attributes.get("axis", -1)
        )
        if (not each.is_map and each.values > MOST_VALUES) or output.shape[:1] != (1,):
            raise ModelError(
                f"{graph.name}: no exit can make output {output.name!r} {list(output.shape)}: only "
                f"maps (1, channels, height, width) and rows of up to {MOST_VALUES} values"
            )
        found.append(each)
    return tuple(found)


def _score(graph: Graph, node: Node) -> str:
    """What makes an output a score, if it is one. A sigmoid's may have been moved about since."""
    if node.op_type in ENDS:
        return node.op_type
    while node.op_type in _MOVES and node.inputs[0] in graph.producers:
        node = graph.producers[node.inputs[0]]
    return "Sigmoid" if node.op_type == "Sigmoid" else ""


def untrained(tensor: Tensor, outputs: Sequence[Wanted]) -> Distilled:
    """The layers of a head behind ``tensor`` (1, c, h, w), without weights. Raises ModelError where
    the grid of an output is no multiple of the tensor's, nor the other way round."""
    trunks = {}
    if any(each.is_map for each in outputs):
        conv = ("conv", MAP_WIDTH, 1), ("relu",)
        trunks["map"] = Branch((*conv, *conv))
    if not all(each.is_map for each in outputs):
        sides = tuple(max(1, round(side / GRID)) for side in tensor.shape[2:])
        convs = ("conv", ROW_WIDTH, 1), ("relu",), ("conv", ROW_WIDTH, 2), ("relu",)
        trunks["row"] = Branch((("pool", *sides), *convs, ("flatten",)))
    ends = [(each, Branch(_end(tensor, each))) for each in outputs]
    return Distilled(trunks, tuple(ends))


def _end(tensor: Tensor, output: Wanted) -> tuple[Layer, ...]:
    if not output.is_map:
        return (("full", output.values),)
    pairs = list(zip(output.sides, tensor.shape[2:], strict=True))
    if all(own % given == 0 for own, given in pairs):
        return (("up", output.channels, *(own // given for own, given in pairs)),)
    if all(given % own == 0 for own, given in pairs):
        return (("pool", *(given // own for own, given in pairs)), ("up", output.channels, 1, 1))
    raise ModelError(
        f"no exit behind {tensor.name!r} {list(tensor.shape)} can make output {output.name!r} "
        f"{list(output.shape)}: neither grid is a multiple of the other"
    )


def nodes(
    head: Distilled, tensor: Tensor, names: Sequence[str]
) -> tuple[list[NodeProto], list[TensorProto]]:
    """A head behind ``tensor`` as nodes and weights; its outputs are called ``names``."""
    made: list[NodeProto] = []
    weights: list[TensorProto] = []
    prefix = names[0]
    begun = {
        kind: _append(trunk, tensor.name, f"{prefix}/{kind}", made, weights)
        for kind, trunk in head.trunks.items()
    }
    for name, (output, branch) in zip(names, head.ends, strict=True):
        before = len(made)
        last = _append(branch, begun[output.trunk], f"{name}/end", made, weights)
        if output.channels_last:
            last = _add("Transpose", [last], f"{name}/last", made, perm=[0, 2, 3, 1])
        elif not output.is_map and len(output.shape) != 2:
            shape = np.array(output.shape, np.int64)
            weights.append(numpy_helper.from_array(shape, f"{name}/shape"))
            last = _add("Reshape", [last, f"{name}/shape"], f"{name}/shaped", made)
        if output.end:
            axis = {"axis": output.axis} if output.end == "Softmax" else {}
            _add(output.end, [last], f"{name}/score", made, **axis)
        assert len(made) > before
        made[-1].output[0] = name
    return made, weights


def _append(
    branch: Branch, given: str, prefix: str, made: list[NodeProto], weights: list[TensorProto]
) -> str:
    arrays = iter(branch.weights)
    for number, (kind, *sizes) in enumerate(branch.layers):
        name, inputs = f"{prefix}/{number}", [given]
        operator, attributes = _node(kind, sizes)
        if kind in ("conv", "full", "up"):
            for what in ("weight", "bias"):
                inputs.append(f"{name}/{what}")
                weights.append(numpy_helper.from_array(next(arrays), inputs[-1]))
        given = _add(operator, inputs, name, made, **attributes)
    return given


def _node(kind: str, sizes: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The operator of a layer, and its attributes. A convolution is 3x3."""
    if kind == "pool":
        return "AveragePool", {"kernel_shape": sizes, "strides": sizes}
    if kind == "conv":
        stride = sizes[1]
        pads = {"pads": [1, 1, 1, 1], "strides": [stride, stride]}
        return "Conv", {"kernel_shape": [3, 3], **pads}
    if kind == "full":
        return "Gemm", {"transB": 1}
    if kind == "up":
        return "ConvTranspose", {"kernel_shape": sizes[1:], "strides": sizes[1:]}
    return {"relu": "Relu", "flatten": "Flatten"}[kind], {}


def _add(
    operator: str, inputs: list[str], name: str, made: list[NodeProto], **attributes: Any
) -> str:
    made.append(helper.make_node(operator, inputs, [name], name, **attributes))
    return name
