"""From placed steps to kernel launches with their buffers by name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heimdall.engine.opencl import ops_array, ops_picture
from heimdall.engine.opencl.array_op import ArrayOp
from heimdall.engine.opencl.conv_separable import plan_separable
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.lowered import (
    Conv,
    Elementwise,
    FillHalo,
    Gather,
    Linear,
    Lrn,
    Moments,
    Pool,
    Reduce,
    Separable,
)
from heimdall.engine.opencl.ops_elementwise import (
    plan_elementwise_array,
    plan_elementwise_picture,
)
from heimdall.engine.opencl.placed import (
    Array,
    MoveChannels,
    Pack,
    Picture,
    Step,
    Storage,
    Unpack,
    Value,
)
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
    if isinstance(spec, (Pack, Unpack)):
        return _pack(step, traits)
    if isinstance(spec, Conv):
        names |= {"x": names["i0"], **({"residual": names["i1"]} if len(values) > 1 else {})}
        layer = conv_layer(step)
        return Bound(layer.plan(traits, tuning.lookup(layer)), names)
    if isinstance(spec, Separable):
        names |= {"x": names["i0"], **({"residual": names["i1"]} if len(values) > 1 else {})}
        residual = _layout(values[1]) if len(values) > 1 else None
        x, y = _layout(values[0]), _layout(outputs[0])
        plan = plan_separable(spec, x, y, traits, residual=residual, clears=step.clears)
        return Bound(plan, names)
    if isinstance(outputs[0], Picture):
        return Bound(_picture(spec, values, outputs, traits), names)
    return Bound(_array(spec, values, outputs[0], traits), names)


def clear_halo(picture: Picture, traits: Traits) -> Bound:
    """Zeros around a picture whose memory held something else."""
    plan = ops_picture.plan_halo(FillHalo("constant", (0, 0, 0, 0)), picture.layout, traits)
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


def _pack(step: Step, traits: Traits) -> Bound:
    source, target = step.inputs[0], step.outputs[0]
    unpack = isinstance(step.spec, Unpack)
    picture, array = (source, target) if unpack else (target, source)
    assert isinstance(picture, Picture)
    assert isinstance(array, Array)
    view = array.strided
    if isinstance(step.spec, Unpack):  # axes of the array back in the order of the picture
        view = view.transposed(np.argsort(step.spec.perm).tolist()) if _is_permuted(step) else view
        shape = (1, picture.channels, picture.height, picture.width)
        if len(view.shape) != 4:
            view = Strided.contiguous(shape, view.offset)
    plan = ops_array.plan_pack(view, picture.layout, traits, unpack=unpack)
    return Bound(plan, {"array": array.storage, "picture": picture.storage})


def _is_permuted(step: Step) -> bool:
    return step.spec.perm != tuple(range(len(step.spec.perm)))


def conv_layer(step: Step) -> Layer:
    """The convolution that a step with a ``Conv`` computes; a matrix is a picture of one row."""
    spec, values, y = step.spec, step.inputs, step.outputs[0]
    if spec.matrix:
        rows, y_rows = _strided(values[0]), _strided(y)
        depth, columns = rows.shape[-1], y_rows.shape[-1]
        count = rows.size // depth
        layouts = Layout.matrix(count, depth), Layout.matrix(count, columns)
        return Layer(spec.spec, *layouts, spec.weights, spec.bias)
    residual = _layout(values[1]) if len(values) > 1 else None
    x = _layout(values[0])
    return Layer(spec.spec, x, _layout(y), spec.weights, spec.bias, residual, step.clears)


def _picture(
    spec: object, values: tuple[Value, ...], outputs: tuple[Value, ...], traits: Traits
) -> Plan:
    y = _layout(outputs[0])
    match spec:
        case Elementwise():
            inputs = [_place(value) for value in values]
            return plan_elementwise_picture(spec.expression, inputs, y, traits)  # type: ignore[arg-type]
        case FillHalo():
            return ops_picture.plan_halo(spec, y, traits)
        case Pool():
            return ops_picture.plan_pool(spec, _layout(values[0]), y, traits)
        case Gather():
            return ops_picture.plan_gather(spec, _layout(values[0]), y, traits)
        case Linear():
            return ops_picture.plan_linear(spec, _layout(values[0]), y, traits)
        case Moments():
            return ops_picture.plan_moments(
                spec, _layout(values[0]), y, _layout(outputs[1]), traits
            )
        case Reduce():
            return ops_picture.plan_reduce_picture(spec, _layout(values[0]), y, traits)
        case Lrn():
            return ops_picture.plan_lrn(spec, _layout(values[0]), y, traits)
        case MoveChannels():
            x = _layout(values[0])
            return ops_picture.plan_move(spec.source, spec.target, spec.count, x, y, traits)
    raise TypeError(f"no kernel for {spec}")


def _array(spec: object, values: tuple[Value, ...], output: Value, traits: Traits) -> Plan:
    y = _strided(output)
    match spec:
        case Elementwise():
            inputs = [_place(value) for value in values]
            return plan_elementwise_array(spec.expression, inputs, y, traits)  # type: ignore[arg-type]
        case Reduce():
            return ops_array.plan_reduce_array(spec, _strided(values[0]), y, traits)
        case ArrayOp():
            return spec.plan([_place(value) for value in values], y, traits)  # type: ignore[misc]
    raise TypeError(f"no kernel for {spec}")
