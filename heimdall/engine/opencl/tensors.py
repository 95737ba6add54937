"""The forms a tensor takes while ops are placed: picture, array, or both, and conversions."""

from __future__ import annotations

import math
from typing import Any

from heimdall.engine.opencl.edges import find_edges
from heimdall.engine.opencl.launch import Traits
from heimdall.engine.opencl.layout import Halo
from heimdall.engine.opencl.lowered import Concat, Fallback, Lowered, Module
from heimdall.engine.opencl.ops_array import Pack, Unpack
from heimdall.engine.opencl.placed import (
    COPY,
    Array,
    Picture,
    PlacedOp,
    Step,
    Storage,
    Stored,
    Value,
)
from heimdall.engine.opencl.strided import Strided


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether a tensor of that shape can be in blocks of channels."""
    return len(shape) == 4 and shape[0] == 1


class Tensors:
    """Where every tensor lives, by name, and the steps that bring it into another form.

    ``pictures`` and ``arrays`` may both hold a tensor; ``host`` names those that (also) exist
    in host memory.
    """

    def __init__(self, module: Module, traits: Traits) -> None:
        self.module, self.edges, self.traits = module, find_edges(module), traits
        absorbed = self.edges.absorbed
        self.consumers = {
            name: [op for op in ops if id(op) not in absorbed]
            for name, ops in module.consumers().items()
        }
        self.left = self._left_for_host()
        self.pictures: dict[str, Picture] = {}
        self.arrays: dict[str, Array] = {}
        self.host: set[str] = set(module.inputs)  # tensors that (also) exist in host memory
        self.storages: list[Storage] = []
        self.in_place: dict[str, str] = {}  # tensors in the memory of the input that they replace
        self.ops: list[PlacedOp] = []
        self.parents = self._concat_parents()
        self._pending: tuple[str, ...] = ()
        self._step_count = 0
        self._current = PlacedOp(Lowered(Fallback(), (), (), ()))
        self._before_head: tuple[dict[str, Picture], dict[str, Array]] = {}, {}
        self._made_in_head: set[str] = set()

    def _leave_head(self) -> None:
        """After an early exit's head, which a job may skip: another op that needs a tensor in
        the form that the head converted it to converts it again."""
        pictures, arrays = self._before_head
        made = self._made_in_head
        self.pictures = pictures | {n: v for n, v in self.pictures.items() if n in made}
        self.arrays = arrays | {n: v for n, v in self.arrays.items() if n in made}

    def _left_for_host(self) -> list[str]:
        """Tensors that the host reads after the last op."""
        made = {name for op in self.edges.tails for name in op.outputs}
        names = [name for op in self.edges.tails for name in op.inputs if name not in made]
        names += [name for name in self.module.outputs if name not in made]
        return list(dict.fromkeys(names))

    def forms(self, name: str) -> list[Stored]:
        """What there is of a tensor on the device: a picture, an array, or both; that of an input
        which is written is first, before what an op converts it to."""
        found = self.pictures.get(name), self.arrays.get(name)
        forms = [value for value in found if value is not None]
        return sorted(forms, key=lambda value: not value.storage.dedicated)

    def _shape(self, name: str) -> tuple[int, ...]:
        return self.module.shapes[name]

    def _emit(self, spec: Any, inputs: tuple[Value, ...], *outputs: Stored) -> None:
        step = Step(spec, inputs, outputs)
        for value in (*step.stored.values(), *outputs):
            value.storage.touch(self._step_count)
        self._step_count += 1
        self._current.steps.append(step)

    def _new_picture(self, name: str, shape: tuple[int, ...], block: int = 0) -> Picture:
        _, channels, height, width = shape
        if name in self.parents and not block:
            parent, start = self.parents[name]
            picture = Picture(self._parent_storage(parent), channels, height, width, start)
        else:
            storage = Storage(name, (channels, height, width), block=block or self.traits.block)
            self.storages.append(storage)
            picture = Picture(storage, channels, height, width)
        self.pictures[name] = picture
        return picture

    def _parent_storage(self, parent: str) -> Storage:
        if parent not in self.pictures:
            self._new_picture(parent, self._shape(parent))
            self.pictures[parent].storage.shared = True
        return self.pictures[parent].storage

    def _new_array(
        self, name: str, shape: tuple[int, ...], dedicated: bool = False, exact: bool = False
    ) -> Array:
        size = max(1, math.prod(shape))
        storage = Storage(name, None, size, self.traits.block, dedicated=dedicated, exact=exact)
        self.storages.append(storage)
        self.arrays[name] = Array(storage, Strided.contiguous(shape))
        return self.arrays[name]

    def picture(self, name: str) -> Picture:
        """The tensor in channel blocks; converted when it is an array or a raw input."""
        found = self.pictures.get(name)
        if found is not None and found.layout.block == self.traits.block:
            return found
        shape = self._shape(name)
        shape = (1,) * (4 - len(shape)) + tuple(shape)
        if name in self.module.constants:
            made = self._new_picture(name, shape)
            self._emit(COPY, (self.module.constants[name].reshape(shape),), made)
            return made
        array = self.arrays[name]
        aligned = array.view.offset % self.traits.block == 0 and not array.storage.dedicated
        whole = shape[1] % self.traits.block == 0  # behind a part of a block lies anything
        begins = aligned and not array.view.offset
        if shape[2:] == (1, 1) and array.view.is_contiguous and begins and whole:
            array.storage.frozen = True
            self.pictures[name] = Picture(array.storage, shape[1], 1, 1)
            return self.pictures[name]
        made = self._new_picture(name, shape)
        view = Strided(
            shape, (0,) * (4 - len(array.view.shape)) + array.view.strides, array.view.offset
        )
        self._emit(Pack(), (Array(array.storage, view),), made)
        return made

    def array(self, name: str, contiguous: bool = False) -> Array:
        """The tensor as a strided array, contiguous if asked for."""
        if name not in self.arrays:
            self._unpack(name)
        found = self.arrays[name]
        if contiguous and not found.view.is_contiguous:
            del self.arrays[name]
            copy = self._new_array(name, self._shape(name))
            self._emit(COPY, (found,), copy)
            return copy
        return found

    def _unpack(self, name: str) -> None:
        shape = self._shape(name)
        if name in self.module.constants:
            made = self._new_array(name, shape)
            self._emit(COPY, (self.module.constants[name],), made)
            return
        source = self.pictures[name]
        pixel = source.height == source.width == 1
        if pixel and source.whole and source.storage.halo == (0, 0, 0, 0):
            source.storage.frozen = True
            self.arrays[name] = Array(source.storage, Strided.contiguous(shape))
            return
        self._emit(Unpack((0, 1, 2, 3)), (source,), self._new_array(name, shape))

    def _with_halo(self, name: str, halo: Halo) -> Picture:
        """The picture with at least this halo of zeros."""
        source = self._any_picture(name)
        if not any(halo):
            return source
        if source.storage.frozen or source.storage.picture is None:
            source = self._copied(name, source)
        source.storage.widen(halo)
        return source

    def _any_picture(self, name: str) -> Picture:
        """The tensor as a picture, also one that is planar or NHWC."""
        return self.pictures[name] if name in self.pictures else self.picture(name)

    def _copied(self, name: str, source: Picture) -> Picture:
        copy = Storage(
            f"{name}/copy", (source.channels, source.height, source.width), block=self.traits.block
        )
        self.storages.append(copy)
        made = Picture(copy, source.channels, source.height, source.width)
        self._emit(COPY, (source,), made)
        return made

    def _concat_parents(self) -> dict[str, tuple[str, int]]:
        """Tensors that can be computed directly into the storage of a Concat."""
        found: dict[str, tuple[str, int]] = {}
        producers = self.module.producers()
        for op in self.module.ops:
            shape = self._shape(op.output)
            joins = isinstance(op.spec, Concat) and op.spec.axis == 1 and is_picture(shape)
            if not joins or id(op) in self.edges.absorbed:
                continue
            start = 0
            for name in op.inputs:
                producer = producers.get(name)
                computed = producer is not None and producer.spec.writes_channels
                whole_blocks = start % self.traits.block == 0
                last = start + self._shape(name)[1] == shape[1]
                closed = last or self._shape(name)[1] % self.traits.block == 0
                once = name not in found and list(op.inputs).count(name) == 1
                padded = any(r.spec.fills_halo for r in self.consumers.get(name, []))
                fits = computed and whole_blocks and closed and once and not padded
                if fits and name not in self.left:
                    found[name] = (op.output, start)
                start += self._shape(name)[1]
        return found
