"""The rewrites between lowered nodes and what is placed on a device: one list, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection
from operator import is_

from heimdall.engine.opencl.copy_outputs import copy_outputs
from heimdall.engine.opencl.exits import order_exits
from heimdall.engine.opencl.fuse_attention import fuse_attention
from heimdall.engine.opencl.fuse_conv import fuse_convolutions, fuse_shifts
from heimdall.engine.opencl.fuse_input import fuse_input_scales
from heimdall.engine.opencl.fuse_neighbours import group_elementwise, merge_fallbacks
from heimdall.engine.opencl.fuse_pads import fuse_zero_pads, place_pads
from heimdall.engine.opencl.fuse_patterns import fuse_gates, fuse_lengths, fuse_moments
from heimdall.engine.opencl.fuse_separable import fuse_separable
from heimdall.engine.opencl.fuse_shuffle import fuse_shuffles
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Module
from heimdall.engine.opencl.lowering import lower
from heimdall.engine.opencl.move_views import hoist_transposes, simplify_reshapes
from heimdall.engine.opencl.verify import verify
from heimdall.graph.graph import Graph

Pass = Callable[[Module, Traits], None]
After = Callable[[str, Module], None]  # the name of a pass, and what it left
LOWERING = "lowering"  # what stands before the first pass


def _anywhere(rewrite: Callable[[Module], None]) -> Pass:
    """A pass that does the same for every device."""
    return lambda module, traits: rewrite(module)


# Each keeps what ``verify`` demands, and the numbers that the network computes.
PASSES: tuple[tuple[str, Pass], ...] = (
    ("drop-unused", _anywhere(Module.drop_unused)),
    ("hoist-transposes", _anywhere(hoist_transposes)),
    ("simplify-reshapes", _anywhere(simplify_reshapes)),
    ("fuse-moments", _anywhere(fuse_moments)),
    ("fuse-lengths", _anywhere(fuse_lengths)),
    ("fuse-gates", _anywhere(fuse_gates)),
    ("fuse-attention", _anywhere(fuse_attention)),
    ("fuse-convolutions", _anywhere(fuse_convolutions)),
    ("fuse-shuffles", _anywhere(fuse_shuffles)),
    ("fuse-zero-pads", _anywhere(fuse_zero_pads)),
    ("fuse-input-scales", _anywhere(fuse_input_scales)),
    ("fuse-shifts", _anywhere(fuse_shifts)),
    ("place-pads", _anywhere(place_pads)),
    ("group-elementwise", _anywhere(group_elementwise)),
    ("merge-fallbacks", _anywhere(merge_fallbacks)),
    ("fuse-separable", fuse_separable),
    ("order-exits", _anywhere(order_exits)),
    ("copy-outputs", copy_outputs),
)


def lower_for(
    graph: Graph, traits: Traits, force_fallback: Collection[str] = (), after: After | None = None
) -> Module:
    """What is placed on a device with ``traits``: a graph lowered, and rewritten by all passes."""
    counting = _counting(graph) if traits.dtype.itemsize < 4 else ()
    module = lower(graph, force_fallback, counting)
    run_passes(module, traits, after)
    return module


def _counting(graph: Graph) -> list[str]:
    """Nodes whose results are indices: as half they would be exact to 2048 only."""
    return [
        node.name
        for node in graph.nodes
        if node.op_type != "Cast"
        and any(graph.tensors[name].dtype.kind in "iu" for name in node.outputs if name)
    ]


def run_passes(module: Module, traits: Traits, after: After | None = None) -> None:
    """Rewrite a module for a device with ``traits``, in place.

    ``after(name, module)`` is told of ``LOWERING`` and of each pass that changed something. Raises
    BrokenModuleError, naming the pass, when one leaves what cannot be run.
    """
    tell = after or (lambda name, module: None)
    verify(module)
    tell(LOWERING, module)
    for name, rewrite in PASSES:
        ops, shapes = list(module.ops), dict(module.shapes)
        rewrite(module, traits)
        same = len(ops) == len(module.ops) and all(map(is_, ops, module.ops))
        if same and shapes == module.shapes:
            continue
        # most are as they were, and looking at their shapes again would cost more than the pass
        if moved := {key for key, shape in shapes.items() if module.shapes.get(key) != shape}:
            ops = [op for op in ops if moved.isdisjoint((*op.inputs, *op.outputs))]
        verify(module, name, ops)
        tell(name, module)
