"""A tensor of a job that is over, in memory of its own on the device: the state of a recurrent
network, which its next inference takes from there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.placed import Array, Picture, Storage, Stored
from heimdall.engine.opencl.transfer import Transfer
from heimdall.graph.graph import Tensor


class _OnDevice:
    """A tensor in ``buffer``; an array to whoever takes it for one."""

    def __init__(
        self, transfer: Transfer, tensor: Tensor, value: Stored, buffer: cl.Buffer
    ) -> None:
        self.shape, self.dtype = tensor.shape, tensor.dtype
        self.buffer, self._transfer, self._value = buffer, transfer, value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self._transfer.download(self.buffer, self._value, self.shape)
        return found.astype(self.dtype if dtype is None else dtype, copy=False)


class KeptTensor(_OnDevice):
    """A copy of ``value`` from ``buffer``, in a buffer of its own, without halos."""

    def __init__(
        self, transfer: Transfer, tensor: Tensor, value: Stored, buffer: cl.Buffer
    ) -> None:
        """Raises cl.Error where there is no memory for it."""
        own = _compact(value)
        super().__init__(transfer, tensor, own, transfer.allocate(own.storage.floats))
        transfer.copy(buffer, value, self.buffer, own)

    def copy_to(self, transfer: Transfer, buffer: cl.Buffer, value: Stored) -> bool:
        """Write it into a job's memory; False where it lies in another way there, or on another
        device."""
        if not transfer.reaches(self._transfer) or _form(value) != _form(self._value):
            return False
        transfer.copy(self.buffer, self._value, buffer, value)
        return True


class HeldTensor(_OnDevice):
    """An output that lies where the next inference reads it: a cache that was written in place, in
    the buffer of a job or of several."""

    def fits(self, transfer: Transfer, value: Stored) -> bool:
        """Whether a job may have the buffer for its own, as that value."""
        same = self._value.storage.floats == value.storage.floats
        return transfer.reaches(self._transfer) and same and _form(value) == _form(self._value)


def is_dense(value: Stored) -> bool:
    """Whether it can be copied piece by piece: a whole array, or a picture."""
    return isinstance(value, Picture) or value.view.is_contiguous


def _compact(value: Stored) -> Stored:
    storage = value.storage
    if isinstance(value, Picture):
        picture = (value.channels, value.height, value.width)
        own = Storage(storage.name, picture, block=value.layout.block)
        return Picture(own, *picture)
    own = Storage(storage.name, None, size=value.view.size)
    return Array(own, value.view.moved(-value.view.offset))


def _form(value: Stored) -> tuple[Any, ...]:
    """Values of the same form are copied by copying memory."""
    if isinstance(value, Picture):
        return "picture", value.channels, value.height, value.width, value.layout.block
    return "array", value.view.size, is_dense(value), value.storage.exact
