"""Networks as lists of operators: what each computes and moves, and which it needs.

A convolution has its batch normalisation and activation in it, as every inference engine runs it.
Shapes are (channels, height, width); numbers are 32-bit floats, one image at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

Shape = tuple[int, int, int]
Pair = tuple[int, int]
IMAGE = -1  # the op that a network's first one needs

_BYTES = 4
KINDS = ("conv", "pool", "add", "relu", "concat")
POOLINGS = ("", "max", "avg", "global")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator. ``needs``: the ops whose outputs are its inputs, IMAGE for the network's."""

    kind: str
    needs: tuple[int, ...]
    inputs: tuple[Shape, ...]
    output: Shape
    kernel: Pair = (1, 1)
    stride: int = 1
    pad: Pair = (0, 0)
    relu: bool = False
    pooling: str = ""

    @property
    def flops(self) -> int:
        """A multiplication and an addition count as two."""
        taps = prod(self.kernel)
        if self.kind == "conv":
            return 2 * prod(self.output) * taps * self.inputs[0][0]
        return prod(self.output) * taps if self.kind == "pool" else prod(self.output)

    @property
    def moved_bytes(self) -> int:
        """Inputs and weights read once, the output written once."""
        weights = self.output[0] * self.inputs[0][0] * prod(self.kernel)
        numbers = sum(map(prod, self.inputs)) + prod(self.output)
        return _BYTES * (numbers + (weights if self.kind == "conv" else 0))


@dataclass(frozen=True, slots=True)
class LayeredNetwork:
    """``ops`` in an order in which they can run; ``blocks``: half-open ranges of them, in order,
    each of which gets one tensor from the one before (TOP, section IV)."""

    name: str
    ops: tuple[Operator, ...]
    blocks: tuple[tuple[int, int], ...]


class Builder:
    """Writes a network down, op by op; every method returns the number of the op it has added."""

    def __init__(self, image: Shape) -> None:
        self._image, self._ops = image, list[Operator]()
        self._edges: list[int] = [0]

    def conv(
        self, x: int, channels: int, kernel: int | Pair, stride: int = 1, pad: bool = True
    ) -> int:
        """``pad``: so that the output is as large as the input (over the stride)."""
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        pads = (size[0] // 2, size[1] // 2) if pad else (0, 0)
        _, height, width = self.shape(x)
        output = channels, *_windows((height, width), size, stride, pads)
        return self._add(
            Operator("conv", (x,), (self.shape(x),), output, size, stride, pads, relu=True)
        )

    def pool(self, x: int, pooling: str, kernel: int, stride: int, pad: int = 0) -> int:
        channels, height, width = self.shape(x)
        size, pads = (kernel, kernel), (pad, pad)
        output = channels, *_windows((height, width), size, stride, pads)
        return self._add(
            Operator("pool", (x,), (self.shape(x),), output, size, stride, pads, pooling=pooling)
        )

    def mean(self, x: int) -> int:
        """Global average pooling."""
        channels, height, width = shape = self.shape(x)
        size = (height, width)
        return self._add(Operator("pool", (x,), (shape,), (channels, 1, 1), size, pooling="global"))

    def add(self, x: int, y: int) -> int:
        shape = self.shape(x)
        return self._add(Operator("add", (x, y), (shape, self.shape(y)), shape))

    def relu(self, x: int) -> int:
        shape = self.shape(x)
        return self._add(Operator("relu", (x,), (shape,), shape, relu=True))

    def concat(self, parts: Sequence[int]) -> int:
        shapes = tuple(self.shape(part) for part in parts)
        output = (sum(shape[0] for shape in shapes), *shapes[0][1:])
        return self._add(Operator("concat", tuple(parts), shapes, output))

    def block_ends(self) -> None:
        """What comes now is the next block."""
        self._edges.append(len(self._ops))

    def network(self, name: str) -> LayeredNetwork:
        """All that has been added."""
        self.block_ends()
        blocks = tuple(zip(self._edges, self._edges[1:], strict=False))
        return LayeredNetwork(name, tuple(self._ops), blocks)

    def shape(self, x: int) -> Shape:
        """The shape of an op's output."""
        return self._image if x == IMAGE else self._ops[x].output

    def _add(self, op: Operator) -> int:
        self._ops.append(op)
        return len(self._ops) - 1


def _windows(size: Pair, kernel: Pair, stride: int, pad: Pair) -> Pair:
    """How many windows of a kernel there are, downwards and across."""
    height, width = (
        (length + 2 * pads - taps) // stride + 1
        for length, taps, pads in zip(size, kernel, pad, strict=True)
    )
    return height, width


Architecture = Callable[[], LayeredNetwork]
