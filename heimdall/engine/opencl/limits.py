"""Does a placed network fit the device? Asked before any of its memory is allocated."""

from __future__ import annotations

from collections.abc import Sequence

import pyopencl as cl

from heimdall.engine.opencl.device import label
from heimdall.engine.opencl.placed import Storage
from heimdall.errors import ModelError
from heimdall.graph.graph import Graph

_MOST_INDEX = 2**31 - 1  # kernels count in 32-bit integers


def check_fits(
    graph: Graph,
    storages: Sequence[Storage],
    arena_floats: int,
    device: cl.Device,
    itemsize: int = 4,
) -> None:
    """Raise ModelError, naming the node of the largest tensor, unless every buffer of a job can
    be allocated and all of them fit beside the weights."""
    live = [each for each in storages if each.first is not None]
    if not live:
        return
    largest = max(live, key=lambda each: each.floats)
    arena = itemsize * arena_floats
    buffer = min(int(device.max_mem_alloc_size), itemsize * _MOST_INDEX)
    weights = sum(itemsize * array.size for array in graph.constants.values())
    activations = arena + sum(itemsize * each.floats for each in live if each.dedicated)
    for needed, there, what in (
        (max(itemsize * largest.floats, arena), buffer, "in one piece"),
        (weights + activations, int(device.global_mem_size), "with its weights"),
    ):
        if needed > there:
            origin, size = _origin(graph, largest.name), itemsize * largest.floats
            raise ModelError(
                f"{graph.name} needs {_size(needed)} {what}, and {label(device)} has "
                f"{_size(there)}: {origin} makes {_size(size)}; choose smaller "
                "input shapes"
            )


def _origin(graph: Graph, name: str) -> str:
    """The node behind a storage; those that lowering adds are called after the node's output."""
    while name:
        if name in graph.producers:
            node = graph.producers[name]
            return f"node {node.name!r} ({node.op_type})"
        name = name.rpartition("/")[0]
    return "an input"


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MB"
