"""What becomes of a border that is an op of its own: padding of convolutions, or a halo."""

from __future__ import annotations

from dataclasses import replace

from heimdall.engine.opencl.lowered import Conv, Lowered, Module, Pad
from heimdall.engine.opencl.ops_picture import FillHalo
from heimdall.engine.opencl.sampling import gather_of


def fuse_zero_pads(module: Module) -> None:
    """A Pad of zeros that only convolutions read becomes their padding."""
    producers, consumers = module.producers(), module.consumers()
    for op in list(module.ops):
        pad = producers.get(op.inputs[0]) if op.inputs else None
        if pad is None or not isinstance(pad.spec, Pad) or not isinstance(op.spec, Conv):
            continue
        spec, conv = pad.spec, op.spec.spec
        if spec.mode != "constant" or spec.fill or any(spec.channels) or min(spec.pads) < 0:
            continue
        readers = consumers[pad.output]
        if pad.output in module.outputs or conv.transposed or pad.output in op.inputs[1:]:
            continue
        if not all(isinstance(reader.spec, Conv) for reader in readers):
            continue
        top, left, bottom, right = (a + b for a, b in zip(conv.pads, spec.pads, strict=True))
        wider = replace(op.spec, spec=replace(conv, pads=(top, left, bottom, right)))
        inputs = (pad.inputs[0], *op.inputs[1:])
        nodes = pad.nodes + op.nodes
        module.replace(op, replace(op, spec=wider, inputs=inputs, nodes=nodes))
    module.drop_unused()


def place_pads(module: Module) -> None:
    """A border that only convolutions read is written into the halo of the tensor itself; any
    other Pad becomes a Gather."""
    consumers = module.consumers()
    for op in list(module.ops):
        spec = op.spec
        if not isinstance(spec, Pad):
            continue
        readers = consumers.get(op.output, [])
        shape = module.shapes[op.inputs[0]]
        in_place = (
            not any(spec.channels)
            and min(spec.pads) >= 0
            and op.output not in module.outputs
            and all(_pads_itself_not(reader, op.output) for reader in readers)
        )
        if not in_place:
            module.replace(op, replace(op, spec=gather_of(spec, shape[2], shape[3])))
            continue
        module.replace(op, replace(op, spec=FillHalo(spec.mode, spec.pads, spec.fill)))
        module.shapes[op.output] = shape
        for reader in readers:
            assert isinstance(reader.spec, Conv)
            padded = replace(reader.spec, spec=replace(reader.spec.spec, pads=spec.pads))
            module.replace(reader, replace(reader, spec=padded))


def _pads_itself_not(reader: Lowered, x: str) -> bool:
    spec = reader.spec
    if not isinstance(spec, Conv) or spec.spec.transposed or any(spec.spec.pads):
        return False
    return x not in reader.inputs[1:]
