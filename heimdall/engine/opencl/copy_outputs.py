"""A network of nothing but views gets an op: a scheduler needs something to schedule."""

from __future__ import annotations

from dataclasses import replace

from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.lowered import Lowered, Module
from heimdall.engine.opencl.placed import COPY
from heimdall.engine.opencl.placement import Placer


def copy_outputs(module: Module, traits: Traits) -> None:
    """Outputs that are views of the inputs become copies, where no op would have a kernel."""
    if not all(op.spec.moves for op in module.ops) or _has_steps(module, traits):
        return
    for name in module.outputs:
        view = module.tensor(f"{name}/view", module.shapes[name])
        nodes = module.producers()[name].nodes
        for op in list(module.ops):
            inputs, outputs = (
                tuple(view if each == name else each for each in names)
                for names in (op.inputs, op.outputs)
            )
            module.replace(op, replace(op, inputs=inputs, outputs=outputs))
        module.ops.append(Lowered(COPY, (view,), (name,), nodes))


def _has_steps(module: Module, traits: Traits) -> bool:
    """Whether an op must be computed wherever its tensors are placed."""
    placer = Placer(module, traits)
    placer.place()
    return bool(placer.ops)
