"""Move reshapes and transposes to where they cost least, or nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heimdall.engine.opencl.lowered import Module, Reshape, Transpose
from heimdall.engine.opencl.ops_elementwise import Elementwise


def simplify_reshapes(module: Module) -> None:
    """Move reshapes behind the elementwise op that reads them, and merge chains of them."""
    while _sink_reshape(module) or _merge_reshape(module):
        pass


def _sink_reshape(module: Module) -> bool:
    consumers = module.consumers()
    for op in module.ops:
        readers = consumers.get(op.output, [])
        if not isinstance(op.spec, Reshape) or len(readers) != 1 or op.output in module.outputs:
            continue
        reader = readers[0]
        if not isinstance(reader.spec, Elementwise) or len(reader.inputs) != 1:
            continue
        if op.inputs[0] in module.inputs:
            continue
        flat = module.tensor(f"{reader.output}/before", module.shapes[op.inputs[0]])
        module.replace(reader, replace(op, inputs=(flat,), outputs=reader.outputs))
        module.replace(op, replace(reader, inputs=op.inputs, outputs=(flat,)))
        return True
    return False


def _merge_reshape(module: Module) -> bool:
    producers = module.producers()
    # nodes that run in onnxruntime know their inputs by the names of the graph
    named = {name for each in module.ops if each.spec.falls_back for name in each.inputs}
    for op in module.ops:
        if not isinstance(op.spec, Reshape):
            continue
        before = producers.get(op.inputs[0])
        if before is not None and isinstance(before.spec, Reshape):
            nodes = before.nodes + op.nodes
            module.replace(op, replace(op, inputs=before.inputs, nodes=nodes))
            module.drop_unused()
            return True
        same = module.shapes[op.inputs[0]] == module.shapes[op.output]
        if same and op.output not in module.outputs and op.output not in named:
            module.bypass(op)
            return True
    return False


def hoist_transposes(module: Module) -> None:
    """NHWC input -> scale and shift -> NCHW: transpose first, which costs nothing at the edge."""
    changed = True
    while changed:
        changed = False
        consumers = module.consumers()
        for op in module.ops:
            readers = consumers.get(op.output, [])
            if not isinstance(op.spec, Elementwise) or len(readers) != 1:
                continue
            reader, spec = readers[0], readers[0].spec
            variables = [name for name in op.inputs if name not in module.constants]
            if not isinstance(spec, Transpose) or spec.perm != (0, 3, 1, 2) or len(variables) != 1:
                continue
            x = variables[0]
            if module.shapes[x] != module.shapes[op.output] or op.output in module.outputs:
                continue
            moved = module.tensor(f"{reader.output}/before", module.shapes[reader.output])
            inputs = tuple(
                moved if name == x else _transposed(module, name, spec.perm) for name in op.inputs
            )
            module.replace(reader, replace(op, inputs=inputs, outputs=reader.outputs))
            module.replace(op, replace(reader, inputs=(x,), outputs=(moved,)))
            changed = True
            break


def _transposed(module: Module, name: str, perm: tuple[int, ...]) -> str:
    array = module.constants[name]
    padded = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    turned = np.ascontiguousarray(padded.transpose(perm))
    moved = module.tensor(f"{name}/transposed", turned.shape)
    module.constants[moved] = turned
    return moved
