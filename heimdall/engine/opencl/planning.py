"""From placed steps to kernel launches with their buffers by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl.conv_separable import plan_separable
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import Conv, Separable
from heimdall.engine.opencl.ops_picture import FillHalo
from heimdall.engine.opencl.placed import Array, Picture, Step, Storage, Value
from heimdall.engine.opencl.strided import Strided
from heimdall.engine.opencl.tuning import Layer, Tuning


@dataclass(frozen=True)
class Bound:
    """A plan, and the storage behind each of its Refs that is no constant."""

    plan: Plan
    storages: dict[str, Storage]


def plan_step(step: Step, traits: Traits, tuning: Tuning) -> Bound:
    """The launches of one step, once every storage has its place."""
    spec, values, outputs = step.spec, step.inputs, step.outputs
    names: dict[str, Storage] = {}
    for prefix, group in (("i", values), ("o", outputs)):
        for index, value in enumerate(group):
            if isinstance(value, (Picture, Array)):
                names[f"{prefix}{index}"] = value.storage
    names |= {"y" if key == "o0" else f"y{key[1:]}": names[key] for key in names if key[0] == "o"}
    if isinstance(spec, Conv):
        names |= {"x": names["i0"], **({"residual": names["i1"]} if len(values) > 1 else {})}
        layer = conv_layer(step, traits.storage == "half")
        return Bound(layer.plan(traits, tuning.lookup(layer)), names)
    if isinstance(spec, Separable):
        names |= {"x": names["i0"], **({"residual": names["i1"]} if len(values) > 1 else {})}
        residual = _layout(values[1]) if len(values) > 1 else None
        x, y = _layout(values[0]), _layout(outputs[0])
        plan = plan_separable(spec, x, y, traits, residual=residual, clears=step.clears)
        return Bound(plan, names)
    inputs = [_place(value) for value in values]
    if isinstance(outputs[0], Picture):
        return Bound(spec.plan_pictures(inputs, [_layout(y) for y in outputs], traits), names)
    return Bound(spec.plan(inputs, _strided(outputs[0]), traits), names)


def clear_halo(picture: Picture, traits: Traits) -> Bound:
    """Zeros around a picture whose memory held something else."""
    plan = FillHalo("constant", (0, 0, 0, 0)).plan_pictures((), [picture.layout], traits)
    return Bound(plan, {"y": picture.storage})


def _place(value: Value) -> Layout | Strided | np.ndarray:
    if isinstance(value, Picture):
        return value.layout
    return value.strided if isinstance(value, Array) else value


def _layout(value: Value) -> Layout:
    assert isinstance(value, Picture)
    return value.layout


def _strided(value: Value) -> Strided:
    assert isinstance(value, Array)
    return value.strided


def conv_layer(step: Step, half: bool) -> Layer:
    """The convolution that a step with a ``Conv`` computes, on tensors in ``half`` precision or
    not; a matrix is a picture of one row."""
    spec, values, y = step.spec, step.inputs, step.outputs[0]
    if spec.matrix:
        rows, y_rows = _strided(values[0]), _strided(y)
        depth, columns = rows.shape[-1], y_rows.shape[-1]
        count = rows.size // depth
        layouts = Layout.matrix(count, depth), Layout.matrix(count, columns)
        return Layer(spec.spec, *layouts, spec.weights, spec.bias, half=half)
    residual = _layout(values[1]) if len(values) > 1 else None
    x = _layout(values[0])
    tensors = x, _layout(y), spec.weights, spec.bias, residual
    return Layer(spec.spec, *tensors, step.clears, half)
