"""A glTF file's numbers as arrays. Sizes are compared with the bytes that are there before
anything is made of them: a file that claims a thousand million triangles costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from heimdall.errors import ModelError
from heimdall.render.content.files import Files
from heimdall.render.content.schema import Accessor, pick

MOST_ELEMENTS = 30_000_000  # of one accessor
_TYPES: dict[int, np.dtype[Any]] = {
    5120: np.dtype("<i1"),
    5121: np.dtype("<u1"),
    5122: np.dtype("<i2"),
    5123: np.dtype("<u2"),
    5125: np.dtype("<u4"),
    5126: np.dtype("<f4"),
}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}


class Arrays:
    """The arrays of one file."""

    def __init__(self, files: Files):
        self._files = files
        self._kept: dict[int, np.ndarray] = {}

    def count(self, index: int) -> int:
        """How many elements an accessor says it has."""
        return self._entry(index).count

    def stored(self, index: int) -> bool:
        """Whether the file holds an accessor's elements, not only compressed ones."""
        return self._entry(index).bufferView is not None

    def numbers(self, index: int, widths: tuple[int, ...], what: str) -> np.ndarray:
        """Elements as float32 (count, width), normalised integers as shares; they are finite.
        Raises ModelError where the width is none of ``widths``."""
        entry, raw = self._entry(index), self.raw(index)
        if raw.shape[1] not in widths:
            wide = " or ".join(map(str, widths))
            raise ModelError(f"{what}: accessors[{index}] is {entry.type}; {wide} numbers needed")
        if raw.dtype == np.float32:
            if not np.isfinite(raw).all():
                raise ModelError(f"{what}: accessors[{index}] has numbers that are not finite")
            return raw
        found = raw.astype(np.float32)
        if entry.normalized:
            found = np.maximum(found / np.iinfo(raw.dtype).max, -1.0)
        return found

    def indices(self, index: int, limit: int, what: str) -> np.ndarray:
        """Elements as uint32 (count,), all below ``limit``."""
        raw = self.raw(index)
        if raw.shape[1] != 1 or raw.dtype.kind != "u":
            raise ModelError(f"{what}: accessors[{index}] holds no indices (unsigned scalars)")
        flat = raw[:, 0].astype(np.uint32)
        if len(flat) and int(flat.max()) >= limit:
            raise ModelError(
                f"{what}: accessors[{index}] has index {int(flat.max())}, and there are "
                f"{limit} vertices"
            )
        return flat

    def raw(self, index: int) -> np.ndarray:
        """Elements as they are stored, (count, width)."""
        if index not in self._kept:
            self._kept[index] = self._read(index)
        return self._kept[index]

    def _entry(self, index: int) -> Accessor:
        return pick(self._files.document.accessors, index, "accessors")

    def _read(self, index: int) -> np.ndarray:
        entry = self._entry(index)
        kind, width = _TYPES[entry.componentType], _WIDTHS[entry.type]
        where = f"accessors[{index}]"
        if entry.count > MOST_ELEMENTS:
            raise ModelError(f"{where} has {entry.count:,} elements; at most {MOST_ELEMENTS:,}")
        if entry.bufferView is None:
            found = np.zeros((entry.count, width), kind)
        else:
            found = self._packed(
                entry.bufferView, entry.byteOffset, entry.count, kind, width, where
            )
        if entry.sparse is not None:
            found = self._changed(found, entry, kind, width, where)
        return found

    def _changed(
        self, found: np.ndarray, entry: Accessor, kind: np.dtype[Any], width: int, where: str
    ) -> np.ndarray:
        """Some elements replaced: sparse storage."""
        sparse = entry.sparse
        assert sparse is not None
        if sparse.count > entry.count:
            raise ModelError(f"{where}: {sparse.count} sparse of {entry.count} elements")
        at, to = sparse.indices, sparse.values
        number = _TYPES[at.componentType]
        places = self._packed(at.bufferView, at.byteOffset, sparse.count, number, 1, where)[:, 0]
        values = self._packed(to.bufferView, to.byteOffset, sparse.count, kind, width, where)
        if len(places) and int(places.max()) >= entry.count:
            raise ModelError(f"{where}: sparse element {int(places.max())} of {entry.count}")
        found = found.copy()
        found[places] = values
        return found

    def _packed(
        self, view: int, offset: int, count: int, kind: np.dtype[Any], width: int, where: str
    ) -> np.ndarray:
        content = self._files.view(view)
        row = kind.itemsize * width
        stride = pick(self._files.document.bufferViews, view, "bufferViews").byteStride or row
        needed = offset + stride * (count - 1) + row if count else 0
        if needed > len(content):
            raise ModelError(
                f"{where}: {count:,} elements need {needed:,} bytes, and bufferViews[{view}] has "
                f"{len(content):,}: the file is cut off or broken"
            )
        strides = (stride, kind.itemsize)
        array = np.ndarray((count, width), kind, content, offset, strides)
        return np.ascontiguousarray(array)
