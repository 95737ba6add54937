"""Where each number of a tensor lies in its device buffer.

Image tensors (batch 1, float32) are stored in *blocks* of neighbouring channels: pixel by pixel,
``block`` channels side by side (NCHWc), so that one vector load brings one pixel of a block.
Around the picture a *halo* of zeros may be stored, so that convolutions read their padding
instead of testing bounds. The same description covers the plain layouts: ``block=1`` is planar
NCHW, ``block=channels`` is NHWC, and a matrix is an NHWC picture of one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import cv2
import numpy as np

_VECTORS = 4, 8, 16  # blocks that kernels load as a whole; what else is side by side, one by one
Halo = tuple[int, int, int, int]  # top, left, bottom, right


@dataclass(frozen=True)
class Layout:
    """One float32 tensor of ``channels x height x width`` in a device buffer.

    Lanes beyond ``channels`` in the last block hold any finite value, written by the op that makes
    the last channel: readers ignore them (packed weights are zero there). The halo holds zeros:
    kernels never write it, so a buffer is zeroed once, and again when its memory goes to a tensor
    of another shape.

    ``offset`` floats of the buffer lie before this tensor: a channel slice on a block boundary
    is a view with the same rows and planes (a free Concat or Split). It is a multiple of
    ``block`` where that is a vector, which keeps loads aligned.
    """

    channels: int
    height: int
    width: int
    block: int = 16
    halo: Halo = (0, 0, 0, 0)
    offset: int = 0

    def __post_init__(self) -> None:
        if min(self.channels, self.height, self.width, self.block) < 1 or min(self.halo) < 0:
            raise ValueError(f"a layout needs positive sizes and a non-negative halo: {self}")
        if self.offset < 0 or (self.block in _VECTORS and self.offset % self.block):
            raise ValueError(f"offset must be a multiple of the block width: {self}")

    @classmethod
    def matrix(cls, rows: int, columns: int, offset: int = 0) -> Layout:
        """A row-major matrix: one picture row of ``rows`` pixels with ``columns`` channels."""
        return cls(columns, 1, rows, block=columns, offset=offset)

    @property
    def blocks(self) -> int:
        return -(-self.channels // self.block)

    @property
    def stored_height(self) -> int:
        return self.halo[0] + self.height + self.halo[2]

    @property
    def stored_width(self) -> int:
        return self.halo[1] + self.width + self.halo[3]

    @property
    def row(self) -> int:
        """Floats from one stored row to the next."""
        return self.stored_width * self.block

    @property
    def plane(self) -> int:
        """Floats from one block of channels to the next."""
        return self.stored_height * self.row

    @property
    def origin(self) -> int:
        """Index in the buffer of channel 0 at pixel (0, 0)."""
        return self.offset + self.halo[0] * self.row + self.halo[1] * self.block

    @property
    def floats(self) -> int:
        """Floats stored for this tensor, halo and padding lanes included."""
        return self.blocks * self.plane

    @property
    def dense(self) -> bool:
        """True when the rows follow each other without a halo."""
        return self.halo == (0, 0, 0, 0)

    def slice(self, start: int, channels: int) -> Layout:
        """The view of ``channels`` channels from ``start``, which must be on a block boundary."""
        if start % self.block or not 0 <= start <= start + channels <= self.channels:
            raise ValueError(f"channels {start}..{start + channels} are no view of {self}")
        offset = self.offset + start // self.block * self.plane
        return Layout(channels, self.height, self.width, self.block, self.halo, offset)

    def pack(self, array: np.ndarray) -> np.ndarray:
        """A CHW array as stored: ``floats`` float32 values, zeros in halo and padding lanes."""
        flat = np.empty(self.floats, np.float32)
        self.pack_into(flat, array)
        return flat

    def pack_into(self, flat: np.ndarray, array: np.ndarray) -> None:
        """``pack`` into the first ``floats`` values of ``flat``."""
        if array.shape != (self.channels, self.height, self.width):
            raise ValueError(f"array of shape {array.shape} does not fit {self}")
        (top, left, _, _), full = self.halo, self.channels // self.block
        flat = flat[: self.floats]
        if array.size < flat.size:
            flat[:] = 0.0
        stored = flat.reshape(self.blocks, self.stored_height, self.stored_width, self.block)
        inner = stored[:, top : top + self.height, left : left + self.width]
        array = np.ascontiguousarray(array, np.float32)
        for index in range(full):
            lanes = array[index * self.block : (index + 1) * self.block]
            _interleave(lanes, inner[index])
        rest = array[full * self.block :]
        if rest.size:
            inner[full, ..., : len(rest)] = rest.transpose(1, 2, 0)

    def unpack(self, flat: np.ndarray, memory: np.ndarray | None = None) -> np.ndarray:
        """The CHW array inside ``floats`` stored values (the inverse of ``pack``), in the first
        values of ``memory`` where that is given."""
        top, left, _, _ = self.halo
        stored = flat[: self.floats].reshape(
            self.blocks, self.stored_height, self.stored_width, self.block
        )
        inner = stored[:, top : top + self.height, left : left + self.width]
        shape = (self.blocks, self.block, self.height * self.width)
        lanes = np.empty(shape, flat.dtype) if memory is None else memory[: prod(shape)]
        lanes = lanes.reshape(shape)
        if self.height * self.width == 1:  # block by block is in order already
            lanes[...] = inner.reshape(shape)
            return lanes.reshape(-1, 1, 1)[: self.channels]
        for pixels, separate in zip(inner, lanes, strict=True):
            cv2.transpose(pixels.reshape(-1, self.block), separate)
        return lanes.reshape(-1, self.height, self.width)[: self.channels]


def _interleave(lanes: np.ndarray, pixels: np.ndarray) -> None:
    """Write channels (block, h, w) as ``pixels`` (h, w, block): by OpenCV, whose transpose takes
    half of numpy's time."""
    rows = lanes.reshape(len(lanes), -1)
    if pixels.flags.c_contiguous:
        cv2.transpose(rows, pixels.reshape(-1, len(lanes)))
    else:
        pixels[...] = cv2.transpose(rows).reshape(pixels.shape)
