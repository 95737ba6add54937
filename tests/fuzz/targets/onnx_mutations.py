"""Damage to a model file: of its bytes, or of the graph in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from tests.fuzz.damage import Random, in_bytes, pick

Model = onnx.ModelProto

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    16,
    100,
    1000,
    65536,
    1 << 24,
    1 << 31,
    -(1 << 31),
    1 << 40,
    1 << 62,
)
FLOATS = (0.0, 1.0, -1.0, 0.5, 3.7, 1e9, -1e9, 1e-9, float("nan"), float("inf"))
WORDS: tuple[str, ...] = (
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "nearest",
    "linear",
    "cubic",
    "reflect",
    "edge",
)
WORDS += ("wrap", "align_corners", "asymmetric", "floor", "ceil", "", "nonsense")
OPS: tuple[str, ...] = (
    "Relu",
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "Add",
    "Div",
    "Reshape",
    "Slice",
)
OPS += ("Concat", "Gemm", "MatMul", "Softmax", "Resize", "Pad", "Gather", "Expand", "Tile", "Split")
OPS += ("ConstantOfShape", "Range", "NonZero", "TopK", "Cast", "Identity", "Squeeze", "Shape")
OPS += ("GlobalAveragePool", "ReduceSum", "ScatterND", "GatherND", "Where", "If", "Loop", "LSTM")
OPS += ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "OneHot")


def mutate(raw: bytes, random: Random) -> bytes:
    """A damaged copy: one in eight by its bytes, the others by one or two changes of the graph.

    Most single changes can be told at once; half are such that the model may still run."""
    if random.random() < 0.125:
        return in_bytes(raw, random)
    model = onnx.load_from_string(raw)
    for _ in range(random.integers(1, 3)):
        choices = GENTLE if random.random() < 0.5 else MUTATIONS
        try:
            choices[random.integers(len(choices))](model, random)
        except Exception:  # those of protobuf and onnx are of many types
            continue  # an earlier change has left nothing to change here, or protobuf refuses it
    return model.SerializeToString()


def _number(random: Random) -> int:
    return int(pick(NUMBERS, random)) if random.random() < 0.7 else int(random.integers(-4, 20))


def _names(model: Model) -> list[str]:
    graph = model.graph
    made = [name for node in graph.node for name in node.output]
    return [*made, *(item.name for item in graph.initializer), *(v.name for v in graph.input), ""]


def _attribute(model: Model, random: Random) -> None:
    item = pick([a for node in model.graph.node for a in node.attribute], random)
    match item.type:
        case AttributeProto.INT:
            item.i = _number(random)
        case AttributeProto.INTS:
            if random.random() < 0.3:
                item.ints.append(_number(random))
            else:
                item.ints[int(random.integers(len(item.ints)))] = _number(random)
        case AttributeProto.FLOAT:
            item.f = pick(FLOATS, random)
        case AttributeProto.STRING:
            item.s = pick(WORDS, random).encode()


def _new_attribute(model: Model, random: Random) -> None:
    node = pick(model.graph.node, random)
    if node.attribute and random.random() < 0.4:
        del node.attribute[int(random.integers(len(node.attribute)))]
    elif random.random() < 0.5:
        donor = pick([n for n in model.graph.node if n.attribute], random)
        node.attribute.append(pick(donor.attribute, random))
    else:
        name = pick(("axis", "group", "pads", "strides", "dilations", "auto_pad", "to"), random)
        value: Any = [_number(random) for _ in range(random.integers(1, 5))]
        if name == "auto_pad":
            value = pick(WORDS, random)
        elif name in ("axis", "group", "to"):
            value = value[0]
        node.attribute.append(helper.make_attribute(name, value))


def _stored_shape(model: Model, random: Random) -> None:
    item = pick(model.graph.initializer, random)
    match random.integers(4):
        case 0:
            item.dims[int(random.integers(len(item.dims)))] = _number(random)
        case 1:
            item.dims.append(_number(random))
        case 2:
            item.dims[:] = list(item.dims)[::-1]
        case 3:  # numbers to match
            shape = [max(0, min(40, _number(random))) for _ in item.dims]
            made = np.zeros(shape, numpy_helper.to_array(item).dtype)
            item.CopyFrom(numpy_helper.from_array(made, item.name))


def _stored_numbers(model: Model, random: Random) -> None:
    # those that decide shapes are few and small
    small = [item for item in model.graph.initializer if len(item.raw_data) <= 64]
    item = pick(small if small and random.random() < 0.7 else model.graph.initializer, random)
    array = numpy_helper.to_array(item).copy()
    flat = array.reshape(-1)
    place = int(random.integers(flat.size))
    if array.dtype.kind == "f":
        flat[place] = pick(FLOATS, random)
    else:
        flat[place] = np.array(_number(random)).astype(array.dtype)
    item.CopyFrom(numpy_helper.from_array(array, item.name))


def _stored_type(model: Model, random: Random) -> None:
    item = pick(model.graph.initializer, random)
    if random.random() < 0.5:
        item.data_type = int(random.integers(0, 24))
    else:
        kinds = (np.float16, np.float64, np.int64, np.int32, np.uint8, np.int8, np.bool_)
        array = numpy_helper.to_array(item)
        item.CopyFrom(numpy_helper.from_array(array.astype(pick(kinds, random)), item.name))


def _read(model: Model, random: Random) -> None:
    node = pick(model.graph.node, random)
    match random.integers(4):
        case 0:
            node.input[int(random.integers(len(node.input)))] = pick(_names(model), random)
        case 1:
            del node.input[int(random.integers(len(node.input)))]
        case 2:
            node.input.append(pick(_names(model), random))
        case 3:
            node.input[:] = list(node.input)[::-1]


def _written(model: Model, random: Random) -> None:
    node = pick(model.graph.node, random)
    match random.integers(3):
        case 0:
            node.output[0] = pick(_names(model), random)
        case 1:
            node.output.append("extra")
        case 2:
            del node.output[int(random.integers(len(node.output)))]


def _nudge(model: Model, random: Random) -> None:
    """An attribute that is only a little different."""
    items = [a for node in model.graph.node for a in node.attribute]
    item = pick(items, random)
    step = int(pick((-1, 1, 2), random))
    if item.type == AttributeProto.INT:
        item.i = item.i + step
    elif item.type == AttributeProto.INTS:
        if random.random() < 0.5:
            item.ints[:] = [number + step for number in item.ints]
        else:
            item.ints[int(random.integers(len(item.ints)))] += step
    elif item.type == AttributeProto.FLOAT:
        item.f = item.f * float(random.normal(1, 1))
    elif item.type == AttributeProto.STRING:
        item.s = pick(WORDS, random).encode()


def _nudge_numbers(model: Model, random: Random) -> None:
    """Constants of the same type and shape."""
    item = pick(model.graph.initializer, random)
    array = numpy_helper.to_array(item)
    if array.dtype.kind == "f":
        made = array * random.normal(1, 1, array.shape)
    else:
        made = array + random.integers(-1, 2, array.shape)
    item.CopyFrom(numpy_helper.from_array(np.asarray(made).astype(array.dtype), item.name))


def _other_unary(model: Model, random: Random) -> None:
    """Another op of one input in the place of one."""
    unary = [n for n in model.graph.node if len(n.input) == 1 and n.op_type in UNARY]
    node = pick(unary, random)
    node.op_type = pick(UNARY, random)
    del node.attribute[:]


def _resized(model: Model, random: Random) -> None:
    """An input of another size, the claims about all else as they are."""
    kind = pick(model.graph.input, random).type.tensor_type
    for axis in range(2, len(kind.shape.dim)):
        kind.shape.dim[axis].dim_value = int(random.integers(1, 24))


def _tapped(model: Model, random: Random) -> None:
    """A tensor between nodes becomes an output, or is claimed to be of any shape."""
    if random.random() < 0.5:
        name = pick([name for node in model.graph.node for name in node.output], random)
        kind = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
        model.graph.output.append(onnx.ValueInfoProto(name=name, type=kind))
    else:
        value = pick([*model.graph.value_info, *model.graph.output], random)
        for dim in value.type.tensor_type.shape.dim:
            dim.dim_value = int(random.integers(1, 100))


def _op(model: Model, random: Random) -> None:
    node = pick(model.graph.node, random)
    others = [other.op_type for other in model.graph.node]
    node.op_type = pick(others if random.random() < 0.5 else OPS, random)
    if random.random() < 0.1:
        node.domain = pick(("ai.onnx", "com.microsoft", "unknown"), random)


def _claimed(model: Model, random: Random) -> None:
    """What a file says of its tensors without having to."""
    value = pick([*model.graph.value_info, *model.graph.output], random)
    _resize(value.type.tensor_type, random)


def _given(model: Model, random: Random) -> None:
    _resize(pick(model.graph.input, random).type.tensor_type, random)


def _resize(kind: onnx.TypeProto.Tensor, random: Random) -> None:
    match random.integers(5):
        case 0 | 1:
            pick(kind.shape.dim, random).dim_value = _number(random)
        case 2:
            pick(kind.shape.dim, random).dim_value = int(random.integers(1, 40))
        case 3:
            kind.shape.dim.add().dim_value = int(random.integers(0, 3))
        case 4:
            kind.elem_type = int(random.integers(0, 24))


def _order(model: Model, random: Random) -> None:
    nodes = list(model.graph.node)
    place, other = (int(random.integers(len(nodes))) for _ in range(2))
    match random.integers(3):
        case 0:
            nodes[place], nodes[other] = nodes[other], nodes[place]
        case 1:
            del nodes[place]
        case 2:
            nodes.insert(other, nodes[place])
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _results(model: Model, random: Random) -> None:
    outputs = model.graph.output
    if random.random() < 0.5:
        kind = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
        outputs.append(onnx.ValueInfoProto(name=pick(_names(model), random), type=kind))
    else:
        del outputs[int(random.integers(len(outputs)))]


def _versions(model: Model, random: Random) -> None:
    if random.random() < 0.8:
        model.opset_import[0].version = int(random.integers(7, 25))
    else:
        model.ir_version = int(random.integers(0, 15))


def _elsewhere(model: Model, random: Random) -> None:
    """Weights in another file, which is not there or may not be read."""
    item = pick(model.graph.initializer, random)
    item.ClearField("raw_data")
    place = pick(("/etc/hostname", "../weights", "weights.bin", "", "."), random)
    item.data_location = TensorProto.EXTERNAL
    del item.external_data[:]
    for key, value in (
        ("location", place),
        ("offset", _number(random)),
        ("length", _number(random)),
    ):
        item.external_data.add(key=key, value=str(value))


UNARY = ("Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Abs", "Neg", "Softplus", "Identity")
GENTLE: tuple[Callable[[Model, Random], None], ...] = (
    *(_nudge, _nudge, _nudge_numbers, _nudge_numbers, _other_unary, _resized, _tapped),
)
MUTATIONS: tuple[Callable[[Model, Random], None], ...] = (
    *(_attribute, _attribute, _new_attribute, _stored_shape, _stored_numbers, _stored_numbers),
    *(_stored_type, _read, _written, _op, _claimed, _claimed, _given, _given, _order, _results),
    *(_versions, _elsewhere),
)
