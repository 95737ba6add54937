"""What is known of a network that is built here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import onnx


class Source(Protocol):
    """Where a graph comes from: a builder, say."""

    def model(self) -> onnx.ModelProto:
        """The graph."""


@dataclass(frozen=True)
class Network:
    """One row of a family's table. ``input``: its width and height; ``ops``: nodes; ``gmac``: what
    its convolutions and products multiply and add, in 1e9."""

    build: Callable[[], Source]
    input: tuple[int, int]
    ops: int
    gmac: float
