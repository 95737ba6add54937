"""Tensors as the protocol writes them: datatypes by name, values raw or as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heimdall.engine.remote import datatype
from heimdall.graph.graph import Tensor
from heimdall.serve.refusals import wrong

# What a list of values may hold, by the kind of the tensor: whole numbers are numbers too.
_FITTING = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}


def check(tensor: Tensor, given_type: object, shape: object) -> None:
    """Refuse an input whose type or shape is not the network's."""
    wanted = datatype(tensor.dtype)
    if given_type != wanted or not _fits(shape, tensor.shape):
        raise wrong(
            f"input {tensor.name!r} must be {wanted} of shape {list(tensor.shape)}; given was "
            f"{str(given_type)[:40]} of shape {str(shape)[:80]}"
        )


def _fits(given: object, shape: tuple[int, ...]) -> bool:
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != len(shape):
        return False
    pairs = zip(given, shape, strict=True)
    return all(type(n) is int and (n == own or own < 0 < n) for n, own in pairs)


def from_bytes(tensor: Tensor, raw: bytes | memoryview) -> np.ndarray:
    """Little-endian values, row by row, as gRPC and the binary extension send them."""
    if len(raw) != tensor.bytes:
        raise wrong(
            f"input {tensor.name!r} takes {tensor.bytes} bytes ({datatype(tensor.dtype)}, "
            f"{list(tensor.shape)}); given were {len(raw)}"
        )
    found = np.frombuffer(raw, _wire(tensor)).reshape(tensor.shape)
    return found.astype(tensor.dtype, copy=False)


def from_list(tensor: Tensor, data: Any) -> np.ndarray:
    """Values as a list, flat or nested by row."""
    try:
        found = np.asarray(data)
    except ValueError:  # rows of different lengths
        found = np.empty(0, object)
    if found.dtype.kind not in _FITTING[tensor.dtype.kind]:
        raise wrong(f"input {tensor.name!r}: data must be a list of {datatype(tensor.dtype)}")
    if found.shape not in (tensor.shape, (found.size,)) or found.nbytes == 0:
        raise wrong(f"input {tensor.name!r}: data of shape {found.shape}, not {tensor.shape}")
    if found.size * tensor.dtype.itemsize != tensor.bytes:
        raise wrong(f"input {tensor.name!r}: {found.size} values do not fill {tensor.shape}")
    if tensor.dtype.kind in "iu":
        bounds = np.iinfo(tensor.dtype)
        if int(found.min()) < bounds.min or int(found.max()) > bounds.max:
            raise wrong(f"input {tensor.name!r}: a value does not fit {datatype(tensor.dtype)}")
    return found.astype(tensor.dtype).reshape(tensor.shape)


def to_bytes(array: np.ndarray) -> bytes:
    """The values of an output, little-endian, row by row."""
    little = array.dtype.newbyteorder("<")
    return np.ascontiguousarray(array, little).tobytes()


def _wire(tensor: Tensor) -> np.dtype:
    return tensor.dtype.newbyteorder("<")
