"""What tests over drawn operators are made of."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import numpy as np
from hypothesis import HealthCheck, settings
from onnx import NodeProto, helper


def search(examples: int) -> settings:
    """So many examples, the same each time; ``HEIMDALL_EXAMPLES=500`` searches longer."""
    wanted = int(os.environ.get("HEIMDALL_EXAMPLES", examples))
    return settings(
        max_examples=wanted,
        deadline=None,
        derandomize=wanted <= examples,
        suppress_health_check=list(HealthCheck),
    )


def node(op, inputs, outputs="y", **attributes):
    """Inputs are parted by commas, for some are left out; attributes of None are, too."""
    kept = {key: value for key, value in attributes.items() if value is not None}
    return helper.make_node(op, inputs.split(","), outputs.split(), **kept)


def negated(nodes: Sequence[NodeProto], inputs: Collection[str]) -> list[NodeProto]:
    """The nodes, changed so that they read the negative of each input: what a kernel has made."""
    before = [node("Neg", name, f"{name}_") for name in inputs]
    for each in nodes:
        each.input[:] = [f"{name}_" if name in inputs else name for name in each.input]
    return [*before, *nodes]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)
