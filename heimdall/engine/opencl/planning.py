"""From placed steps to kernel launches with their buffers by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_separable import plan_separable
from heimdall.engine.opencl.conv_spec import Layer
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import Conv, Separable
from heimdall.engine.opencl.ops_picture import ZERO_HALO
from heimdall.engine.opencl.placed import Picture, Step, Storage
from heimdall.engine.opencl.tuning import Tuning


@dataclass(frozen=True)
class Bound:
    """A plan, and the storage behind each of its Refs that is no constant."""

    plan: Plan
    storages: dict[str, Storage]

    def scratch_bytes(self, itemsize: int) -> int:
        """Where its scratch memory begins in the arena of a job whose tensors' numbers take
        ``itemsize`` bytes; 0 without any."""
        scratch = self.storages.get("scratch")
        return itemsize * scratch.offset if scratch else 0


def plan_step(step: Step, traits: Traits, tuning: Tuning) -> Bound:
    """The launches of one step, once every storage has its place."""
    spec, stored = step.spec, step.stored
    names = {f"i{index}": value.storage for index, value in stored.items()}
    names |= {f"y{index or ''}": value.storage for index, value in enumerate(step.outputs)}
    if spec.window:
        called = zip(("x", "residual"), stored.values(), strict=False)
        names |= {name: value.storage for name, value in called}
    inputs: list[Any] = list(step.inputs)
    for index, value in stored.items():
        inputs[index] = value.layout
    outputs: list[Any] = [value.layout for value in step.outputs]
    if isinstance(spec, Conv):
        layer = conv_layer(step, traits.storage == "half")
        plan = plan_conv(layer, traits, tuning.lookup(layer))
    elif isinstance(spec, Separable):
        plan = plan_separable(spec, inputs, outputs[0], traits, step.clears)
    elif isinstance(outputs[0], Layout):
        plan = spec.plan_pictures(inputs, outputs, traits)
    else:
        plan = spec.plan(inputs, outputs[0], traits)
    return Bound(plan, names)


def clear_halo(picture: Picture, traits: Traits) -> Bound:
    """Zeros around a picture whose memory held something else."""
    plan = ZERO_HALO.plan_pictures((), [picture.layout], traits)
    return Bound(plan, {"y": picture.storage})


def conv_layer(step: Step, half: bool) -> Layer:
    """The convolution that a step with a ``Conv`` computes, on tensors in ``half`` precision or
    not; a matrix is a picture of one row."""
    conv: Conv = step.spec
    placed: list[Any] = [each.layout for each in (*step.outputs, *step.stored.values())]
    y, x, residual = [*placed, None][:3]
    if conv.matrix:
        y, x = (
            Layout.matrix(each.size // each.shape[-1], each.shape[-1], each.offset)
            for each in (y, x)
        )
    return Layer(conv.spec, x, y, conv.weights, conv.bias, residual, step.clears, half)
