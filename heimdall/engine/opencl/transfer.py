"""Host arrays to device storages and back, with the change of layout done by numpy on the way.

Devices that share memory with the host (PoCL) are mapped: the copy then costs the calling
thread, not the software GPU. Others get a staging array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pyopencl as cl

from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.placed import Array, Picture


class Transfer:
    """Copies on a queue of its own, so that they need not wait behind chunks."""

    def __init__(self, context: cl.Context, device: cl.Device) -> None:
        self._queue = cl.CommandQueue(context, device)
        self._shared = bool(device.host_unified_memory)

    def upload(self, buffer: cl.Buffer, value: Picture | Array, array: np.ndarray) -> None:
        """Write a tensor. The rest of its storage becomes zero."""
        storage = value.storage
        with self._mapped(buffer, storage.offset, storage.floats, write=True) as floats:
            floats[:] = 0.0
            view = _view(floats, value)
            view[...] = np.asarray(array).reshape(view.shape)

    def upload_blocks(self, buffer: cl.Buffer, value: Picture, array: np.ndarray) -> None:
        """Write a picture in channel blocks."""
        storage = value.storage
        with self._mapped(buffer, storage.offset, storage.floats, write=True) as floats:
            layout = storage.layout
            packed = layout.pack(np.asarray(array, np.float32).reshape(storage.picture or ()))
            floats[: layout.floats] = packed

    def download(
        self, buffer: cl.Buffer, value: Picture | Array, shape: tuple[int, ...]
    ) -> np.ndarray:
        """A copy of a tensor in its logical shape."""
        storage = value.storage
        with self._mapped(buffer, storage.offset, storage.floats, write=False) as floats:
            if isinstance(value, Picture) and not _plain(value.layout):
                layout = value.layout
                own = floats[layout.offset - storage.offset :]
                array = layout.unpack(own).reshape(shape)
                return array.copy() if np.may_share_memory(array, floats) else array
            return np.array(_view(floats, value), np.float32).reshape(shape)

    @contextlib.contextmanager
    def _mapped(
        self, buffer: cl.Buffer, offset: int, floats: int, *, write: bool
    ) -> Iterator[np.ndarray]:
        if self._shared:
            flags = cl.map_flags.WRITE if write else cl.map_flags.READ
            dtype = np.dtype(np.float32)
            array, _ = cl.enqueue_map_buffer(
                self._queue, buffer, flags, 4 * offset, (floats,), dtype
            )
            try:
                yield array
            finally:
                array.base.release(self._queue)
                self._queue.finish()
            return
        staging = np.empty(floats, np.float32)
        if not write:
            cl.enqueue_copy(self._queue, staging, buffer, src_offset=4 * offset)
        yield staging
        if write:
            cl.enqueue_copy(self._queue, buffer, staging, dst_offset=4 * offset)


def write(transfer: Transfer, buffer: cl.Buffer, value: Picture | Array, array: np.ndarray) -> None:
    """Upload in the layout of the value."""
    if isinstance(value, Picture) and not _plain(value.layout):
        transfer.upload_blocks(buffer, value, array)
    else:
        transfer.upload(buffer, value, array)


def _plain(layout: Layout) -> bool:
    """Planar or NHWC: numpy can view it."""
    return layout.block in (1, layout.channels)


def _view(floats: np.ndarray, value: Picture | Array) -> np.ndarray:
    """The tensor inside the floats of its storage, as a numpy view."""
    if isinstance(value, Array):
        view = value.view
        strides = tuple(4 * stride for stride in view.strides)
        return np.lib.stride_tricks.as_strided(floats[view.offset :], view.shape, strides)
    layout = value.layout
    lane = layout.plane if layout.block == 1 else 1
    start = layout.origin - value.storage.offset
    return np.lib.stride_tricks.as_strided(
        floats[start:],
        (1, layout.channels, layout.height, layout.width),
        (0, 4 * lane, 4 * layout.row, 4 * layout.block),
    )
