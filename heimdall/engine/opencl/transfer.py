"""Host arrays to device storages and back, with the change of layout done by numpy on the way.

A CPU device whose memory is coherent with the host's (PoCL) is written and read in place: to map
and to unmap are commands that its threads carry out between other networks' kernels, four waits
for each fallback op. Others that share memory with the host are mapped: the copy then costs the
calling thread. The rest get a staging array.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.placed import Array, Picture, Storage, Stored
from heimdall.system import forks

_ALIGNMENT = 128  # bytes: vectors are loaded and stored aligned, cache lines are fetched in pairs


IN_PLACE, MAPPED, STAGED = "in place", "mapped", "staged"


def ways(device: cl.Device) -> tuple[str, ...]:
    """How a device's memory can be reached, the cheapest first."""
    shared = (MAPPED,) if device.host_unified_memory else ()
    return (*((IN_PLACE,) if _is_coherent(device) else ()), *shared, STAGED)


class Transfer:
    """Copies on a ``queue`` of its own, so that they need not wait behind chunks.

    ``way`` is one of ``ways(device)``; by default the cheapest. ``dtype`` is what tensors are in
    the device's memory; on the host they are float32.
    """

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device,
        way: str | None = None,
        dtype: np.dtype = np.dtype(np.float32),  # noqa: B008  (a constant)
        queue: cl.CommandQueue | None = None,
    ) -> None:
        self._context = context
        self._queue = queue or cl.CommandQueue(context, device)
        self.way = way or ways(device)[0]
        self._dtype = dtype

    def holding(self, dtype: np.dtype) -> Transfer:
        """This transfer, to memory that holds ``dtype``."""
        other = copy.copy(self)
        other._dtype = dtype
        return other

    def of(self, storage: Storage) -> Transfer:
        """The transfer to a storage's own memory."""
        return self.holding(np.dtype(np.float32)) if storage.exact else self

    def allocate(self, floats: int) -> cl.Buffer:
        """Memory of the device for tensors, of the kind that is cheapest to copy to and from.

        Raises cl.Error when there is not enough.
        """
        flags, floats = int(cl.mem_flags.READ_WRITE), max(1, floats)
        if self.way == IN_PLACE:
            memory = cl.fsvm_empty(self._context, floats, self._dtype, alignment=_ALIGNMENT)
            flags |= int(cl.mem_flags.USE_HOST_PTR)
            return cl.Buffer(self._context, flags, hostbuf=memory)
        if self.way == MAPPED:
            flags |= int(cl.mem_flags.ALLOC_HOST_PTR)
        return cl.Buffer(self._context, flags, self._dtype.itemsize * floats)

    def upload(self, buffer: cl.Buffer, value: Stored, array: np.ndarray) -> None:
        """Write a tensor in the layout of the value. The rest of its storage becomes zero."""
        storage, layout = value.storage, value.storage.layout
        with self.of(storage).opened(buffer, storage.offset, storage.floats, write=True) as floats:
            if not _in_blocks(value):
                view = _view(floats, value)
                if view.size < floats.size:
                    floats[:] = 0.0
                view[...] = np.asarray(array).reshape(view.shape)
                return
            picture = np.asarray(array).reshape(storage.picture or ())
            if floats.dtype == np.float32:
                layout.pack_into(floats, picture)
            else:  # OpenCV transposes no halves
                floats[: layout.floats] = layout.pack(picture)

    def download(
        self,
        buffer: cl.Buffer,
        value: Stored,
        shape: tuple[int, ...],
        memory: np.ndarray | None = None,
    ) -> np.ndarray:
        """A copy of a tensor in its logical shape. A picture in channel blocks is put in
        ``memory``, where that is given."""
        storage = value.storage
        with self.of(storage).opened(buffer, storage.offset, storage.floats, write=False) as floats:
            if isinstance(value, Picture) and _in_blocks(value):
                layout = value.layout
                own = floats[layout.offset - storage.offset :]
                own = np.asarray(own, np.float32)
                array = layout.unpack(own, memory).reshape(shape)
                return array.copy() if np.may_share_memory(array, floats) else array
            return np.array(_view(floats, value), np.float32).reshape(shape)

    def reaches(self, other: Transfer) -> bool:
        """Whether both copy within the same memory, of elements of the same type."""
        return bool(self._context == other._context and self._dtype == other._dtype)

    def copy(self, source: cl.Buffer, origin: Stored, buffer: cl.Buffer, value: Stored) -> None:
        """Copy a tensor on the device, from the memory of one value to that of another of the same
        size, either both pictures in blocks of as many channels, or both dense arrays. The rest of
        its storage becomes zero. Waits."""
        size, storage = self._dtype.itemsize, value.storage
        there, here = value.layout, origin.layout
        if isinstance(there, Layout):
            count = there.blocks * there.height * there.width * there.block
        else:
            count = there.size
        if storage.floats > count:  # what was there before would show in a halo
            zero, start = self._dtype.type(0), size * storage.offset
            cl.enqueue_fill_buffer(self._queue, buffer, zero, start, size * storage.floats)
        if not isinstance(there, Layout) or not isinstance(here, Layout):
            cl.enqueue_copy(
                self._queue,
                buffer,
                source,
                byte_count=size * count,
                src_offset=size * here.offset,
                dst_offset=size * there.offset,
            ).wait()
            return
        cl.enqueue_copy(
            self._queue,
            buffer,
            source,
            src_origin=(size * here.origin, 0, 0),
            dst_origin=(size * there.origin, 0, 0),
            region=(size * here.width * here.block, here.height, here.blocks),
            src_pitches=(size * here.row, size * here.plane),
            dst_pitches=(size * there.row, size * there.plane),
        ).wait()

    @contextlib.contextmanager
    def opened(
        self, buffer: cl.Buffer, offset: int, floats: int, *, write: bool
    ) -> Iterator[np.ndarray]:
        """A part of a buffer as floats, to be written as a whole, or to be read."""
        forks.check()
        if self.way == IN_PLACE:
            memory = buffer.get_host_array((buffer.size // self._dtype.itemsize,), self._dtype)
            yield memory[offset : offset + floats]
            return
        size = self._dtype.itemsize
        if self.way == MAPPED:
            flags = cl.map_flags.WRITE if write else cl.map_flags.READ
            array, _ = cl.enqueue_map_buffer(
                self._queue, buffer, flags, size * offset, (floats,), self._dtype
            )
            try:
                yield array
            finally:
                array.base.release(self._queue).wait()
            return
        staging = np.empty(floats, self._dtype)
        if not write:
            cl.enqueue_copy(self._queue, staging, buffer, src_offset=size * offset)
        yield staging
        if write:
            cl.enqueue_copy(self._queue, buffer, staging, dst_offset=size * offset)


def _is_coherent(device: cl.Device) -> bool:
    """Host and device may use the same memory without mapping (fine-grained buffers)."""
    if not device.type & cl.device_type.CPU:
        return False
    try:
        return bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_BUFFER)
    except (cl.Error, AttributeError):  # OpenCL 1.2
        return False


def _in_blocks(value: Stored) -> bool:
    """Neither an array, nor a picture that numpy can view: planar or NHWC."""
    return isinstance(value, Picture) and value.layout.block not in (1, value.channels)


def _view(floats: np.ndarray, value: Stored) -> np.ndarray:
    """The tensor inside the floats of its storage, as a numpy view."""
    if isinstance(value, Array):
        view = value.view
        strides = tuple(floats.itemsize * stride for stride in view.strides)
        return np.lib.stride_tricks.as_strided(floats[view.offset :], view.shape, strides)
    layout = value.layout
    lane = layout.plane if layout.block == 1 else 1
    start = layout.origin - value.storage.offset
    return np.lib.stride_tricks.as_strided(
        floats[start:],
        (1, layout.channels, layout.height, layout.width),
        tuple(floats.itemsize * step for step in (0, lane, layout.row, layout.block)),
    )
