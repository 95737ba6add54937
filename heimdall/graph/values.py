"""Types, constants and attributes of a model, as Python knows them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import limits
from heimdall.graph.limits import count, say_bytes

# Bits of an element; other types (text, sequences) are no tensors of numbers.
_BITS: dict[int, int] = {
    **dict.fromkeys((TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32), 32),
    **dict.fromkeys((TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64), 64),
    **dict.fromkeys((TensorProto.FLOAT16, TensorProto.BFLOAT16), 16),
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16), 16),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL), 8),
    **dict.fromkeys((TensorProto.COMPLEX64,), 64),
    **dict.fromkeys((TensorProto.COMPLEX128,), 128),
}
_NAMES = {number: name.lower() for name, number in TensorProto.DataType.items()}
# Those that share a byte, by their numbers in ONNX: older releases of onnx have no names for them.
_BITS |= {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # uint4, int4, float4e2m1, uint2, int2


def tensor_bytes(kind: int, shape: Sequence[int]) -> int:
    """What a tensor of an ONNX type takes in a file; a byte an element where that is unknown."""
    return -(-count(shape) * _BITS.get(kind, 8) // 8)


def is_plain(kind: TypeProto) -> bool:
    """Is it a tensor of numbers of a type that numpy has?"""
    if not kind.HasField("tensor_type") or kind.tensor_type.elem_type not in _NAMES:
        return False
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
    return dtype.isbuiltin == 1 and not dtype.hasobject


def is_whole(kind: TypeProto) -> bool:
    """Are its elements integers, as far as is known?"""
    return "int" in type_name(kind)


def type_name(kind: TypeProto) -> str:
    """The name of its elements' type."""
    number = kind.tensor_type.elem_type
    return _NAMES.get(number, f"of an unknown type ({number})")


def dense(sparse: onnx.SparseTensorProto) -> TensorProto:
    """A sparse tensor as a dense one of the same name. Raises ModelError if that is too large."""
    values = numpy_helper.to_array(sparse.values)
    what = f"sparse tensor {sparse.values.name!r}"
    size = tensor_bytes(sparse.values.data_type, sparse.dims)
    if any(each < 0 for each in sparse.dims) or size > limits.TENSOR_BYTES:
        raise ModelError(f"{what} of shape {list(sparse.dims)} takes {say_bytes(size)}")
    places = numpy_helper.to_array(sparse.indices)
    if places.ndim == 2:  # one row a value, else they count all elements before it
        places = np.ravel_multi_index(tuple(places.T), tuple(sparse.dims))
    found = np.zeros(count(sparse.dims), values.dtype)
    found[places] = values
    return numpy_helper.from_array(found.reshape(sparse.dims), sparse.values.name)


def tensor_type(kind: int, shape: tuple[int, ...]) -> TypeProto:
    """An ONNX type of a fixed shape."""
    return helper.make_tensor_type_proto(kind, shape)


def fixed_shape(kind: TypeProto) -> tuple[int, ...] | None:
    """The shape of a type, None unless all of it is known."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    if not all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in dims):
        return None
    return tuple(int(dim.dim_value) for dim in dims)


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes by name: text as str, tensors as arrays."""
    return {item.name: _attribute(item) for item in node.attribute}


def _attribute(item: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(item)
    if isinstance(value, bytes):
        return value.decode()
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def opset_of(model: onnx.ModelProto) -> int:
    """The version of the standard ops that a model uses; 0 where it does not say."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    return versions.get("", versions.get("ai.onnx", 0))


def node_name(index: int, node: onnx.NodeProto) -> str:
    """Its name in the file, or one that its place gives."""
    return node.name or f"{node.op_type}_{index}"


def keep_named(listed: Any, names: Collection[str]) -> None:
    """Delete the others of a repeated field in place: to write the rest anew would copy all
    weights, and the memory of the old ones is not free before the model is gone."""
    for index in reversed(range(len(listed))):
        if listed[index].name not in names:
            del listed[index]


def check_stored(what: str, tensor: TensorProto) -> None:
    """Raise ModelError unless a stored tensor has possible sizes and as many numbers as its shape
    says. ``what`` names it in the message."""
    if any(size < 0 for size in tensor.dims):
        raise ModelError(f"{what} has a negative size: {list(tensor.dims)}")
    size = tensor_bytes(tensor.data_type, tensor.dims)
    if size > limits.TENSOR_BYTES:
        raise ModelError(
            f"{what} of shape {list(tensor.dims)} takes {say_bytes(size)}: more than the "
            f"{say_bytes(limits.TENSOR_BYTES)} that a tensor may have"
        )
    known = tensor.data_type in _BITS
    if known and tensor.HasField("raw_data") and len(tensor.raw_data) != size:
        raise ModelError(
            f"{what} of shape {list(tensor.dims)} should take {size:,} bytes, and the file has "
            f"{len(tensor.raw_data):,}"
        )


def check_constants(size: int, where: str) -> None:
    """Raise ModelError if constants of ``size`` bytes in all are more than a model may have.
    ``where`` names the last of them."""
    if size > limits.CONSTANT_BYTES:
        raise ModelError(
            f"{where} brings the model's constants to {say_bytes(size)}: more than the "
            f"{say_bytes(limits.CONSTANT_BYTES)} that a model file can hold"
        )


def constant_of(node: onnx.NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, None for text and sparse ones."""
    for item in node.attribute:
        if item.name == "value":
            return item.t
        if item.name in ("value_float", "value_floats"):
            return numpy_helper.from_array(np.asarray(helper.get_attribute_value(item), np.float32))
        if item.name in ("value_int", "value_ints"):
            return numpy_helper.from_array(np.asarray(helper.get_attribute_value(item), np.int64))
    return None
