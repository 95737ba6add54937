"""Where every tensor of a network lives: which storage, in which layout, as a view of what.

Pictures (batch 1, four axes) are stored in channel blocks with the halo that their readers ask
for; everything else is row-major. A tensor that is needed in both forms is converted by the op
that needs the other one. Slices on block boundaries, reshapes and transposes are views; the
inputs of a Concat are computed directly into its storage where they fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import singledispatchmethod

from heimdall.engine.opencl.activation import NONE
from heimdall.engine.opencl.array_op import ArrayOp, IndexedOp
from heimdall.engine.opencl.cache import Append
from heimdall.engine.opencl.exits import heads_of
from heimdall.engine.opencl.expression import Expression, Operand
from heimdall.engine.opencl.kernel_op import OpSpec, PictureOp
from heimdall.engine.opencl.lowered import (
    Cast,
    Concat,
    Conv,
    Expand,
    Fallback,
    Lowered,
    Reshape,
    Separable,
    Slice,
    Transpose,
)
from heimdall.engine.opencl.ops_array import Unpack
from heimdall.engine.opencl.ops_elementwise import Elementwise
from heimdall.engine.opencl.ops_picture import FillHalo, Gather, MoveChannels
from heimdall.engine.opencl.ops_reduce import Reduce
from heimdall.engine.opencl.placed import COPY, Array, Picture, PlacedOp, Storage, Stored, Value
from heimdall.engine.opencl.strided import Strided
from heimdall.engine.opencl.tensors import Tensors, is_picture


class Placer(Tensors):
    """Walks the ops in order and places their tensors. Use ``place``."""

    def place(self) -> None:
        for tensor, _ in self.edges.heads.values():
            self._place_input(tensor)
        absorbed = self.edges.absorbed
        heads, head = heads_of(self.module), None
        for op in self.module.ops:
            if id(op) in absorbed:
                continue
            if heads.get(id(op)) != head:
                if head is not None:
                    self._leave_head()
                head = heads.get(id(op))
                self._before_head = dict(self.pictures), dict(self.arrays)
                self._made_in_head.clear()
            self._made_in_head.update(op.outputs)
            self._current = PlacedOp(op)
            self._place(op.spec, op)
            if self._current.steps:
                self._current.nodes = self._pending + op.nodes
                self._pending = ()
                self.ops.append(self._current)
            else:
                self._pending += op.nodes
        for name in self.left:
            for value in self.forms(name):
                value.storage.touch(self._step_count)

    # --- inputs ---

    def _place_input(self, name: str) -> None:
        """Pictures that only convolutions read stay as they come: planar or NHWC, with a halo."""
        readers = self.consumers.get(name, [])
        if name in self.left or not all(op.spec.falls_back for op in readers):
            self._place_device_input(name, readers)
        if any(op.spec.falls_back for op in readers):
            self.host.add(name)

    def _place_device_input(self, name: str, readers: list[Lowered]) -> None:
        shape = self._shape(name)
        picture = is_picture(shape)
        raw = picture and shape[1] <= 4 and name not in self.left
        if raw and all(self._reads_raw(op, name) for op in readers):
            made = self._new_picture(name, shape, block=self._source_block(name))
            made.storage.dedicated = True
        elif picture and any(op.spec.wants_pictures for op in readers):
            made = self._new_picture(name, shape, block=self.traits.block)
            made.storage.dedicated = True
        else:
            exact = all(_is_index(reader, name) for reader in readers) and name not in self.left
            self._new_array(name, shape, dedicated=True, exact=exact)

    def _reads_raw(self, op: Lowered, name: str) -> bool:
        if op.spec.fills_halo:
            return all(self._reads_raw(reader, op.output) for reader in self.consumers[op.output])
        if not isinstance(op.spec, Conv) or op.spec.matrix:
            return False
        return op.spec.spec.groups == 1 and name not in op.inputs[1:]

    def _source_block(self, name: str) -> int:
        """NHWC inputs stay NHWC, others planar."""
        for tensor, chain in self.edges.heads.values():
            if tensor == name:
                transposed = any(op.kind == "transpose" for op in chain)
                return self._shape(name)[1] if transposed else 1
        return 1

    # --- one method a kind of op: what kernels want, unless it is about layouts itself ---

    @singledispatchmethod
    def _place(self, spec: OpSpec, op: Lowered) -> None:
        raise TypeError(f"{op.kind} -> {op.output} is no op that can be placed")

    @_place.register(Conv)
    @_place.register(Separable)
    def _place_conv(self, conv: Conv | Separable, op: Lowered) -> None:
        if isinstance(conv, Conv) and conv.matrix:
            self._place_matrix(op)
            return
        shape, size = self._shape(op.output), self._shape(op.inputs[0])[2:]
        x = self._with_halo(op.inputs[0], conv.window.required_halo(size, shape[2:]))
        residual = [self.picture(name) for name in op.inputs[1:]]
        planar = (
            not self.consumers.get(op.output)
            and op.output not in self.parents
            and not residual
            and 4 * shape[1] <= self.traits.block
        )
        y = self._new_picture(op.output, shape, block=1 if planar else 0)
        function = conv.window.activation.kind
        costly = function in ("sigmoid", "tanh") and shape[2] * shape[3] > 256
        if planar and costly and isinstance(conv, Conv):
            # in a convolution of few channels most lanes of a costly activation are idle
            self._emit(replace(conv, spec=replace(conv.spec, activation=NONE)), (x,), y)
            whole = Array(y.storage, Strided.contiguous(shape))
            step = Elementwise(Expression.of(function, Operand(0)))
            self._emit(step, (whole,), whole)
            return
        self._emit(conv, (x, *residual), y)

    def _place_matrix(self, op: Lowered) -> None:
        """A view that begins anywhere is copied: short rows are read as vectors."""
        x = self.array(op.inputs[0], contiguous=True)
        if x.view.offset % self.traits.block:
            copy = Storage(f"{op.output}/rows", None, x.view.size, 1)
            self.storages.append(copy)
            made = Array(copy, Strided.contiguous(x.view.shape))
            self._emit(COPY, (x,), made)
            x = made
        self._emit(op.spec, (x,), self._new_array(op.output, self._shape(op.output)))

    def _read(self, op: Lowered, form: Callable[[str], Value]) -> Iterator[Value]:
        """The inputs of an op: constants as they are, tensors in that form."""
        for name in op.inputs:
            constant = self.module.constants.get(name)
            yield form(name) if constant is None else constant

    @_place.register
    def _place_elementwise(self, spec: Elementwise, op: Lowered) -> None:
        shape = self._shape(op.output)
        pictured = any(
            name in self.pictures for name in op.inputs if name not in self.module.constants
        )
        if is_picture(shape) and pictured:
            inputs = tuple(self._read(op, self.picture))
            self._emit(spec, inputs, self._new_picture(op.output, shape))
            return
        inputs = tuple(self._read(op, self.array))
        self._emit(spec, inputs, self._new_array(op.output, shape))

    @_place.register
    def _place_pictures(self, spec: PictureOp, op: Lowered) -> None:
        """Where an op makes one value a channel, kernels write these one after the other."""
        inputs = tuple(self.picture(name) for name in op.inputs)
        outputs = tuple(self._new_picture(name, self._shape(name)) for name in op.outputs)
        self._emit(spec, inputs, *outputs)
        if spec.vectors:
            for made in outputs:
                made.storage.frozen = True

    @_place.register
    def _place_fillhalo(self, spec: FillHalo, op: Lowered) -> None:
        name = op.inputs[0]
        source = self._any_picture(name)
        storage = source.storage
        others = [reader.spec for reader in self.consumers[name] if reader is not op]
        free = source.whole and not (storage.frozen or storage.filled or storage.shared)
        free = free and all(other.ignores_halo for other in others)
        if storage.picture is None or not free:
            source = self._copied(name, source)
            storage = source.storage
        storage.widen(spec.pads)
        storage.filled = True
        self.pictures[op.output] = source
        self._emit(spec, (), source)

    @_place.register
    def _place_reduce(self, spec: Reduce, op: Lowered) -> None:
        name, shape = op.inputs[0], self._shape(op.output)
        if spec.axes == (2, 3) and name in self.pictures and len(shape) == 4:
            self._place_pictures(spec, op)
            return
        self._emit(spec, (self.array(name),), self._new_array(op.output, shape))

    @_place.register
    def _place_concat(self, spec: Concat, op: Lowered) -> None:
        axis, shape = spec.axis, self._shape(op.output)
        pictured = any(name in self.pictures for name in op.inputs)
        if is_picture(shape) and axis == 1 and pictured:
            self._concat_pictures(op)
            return
        parent = self._new_array(op.output, shape)
        starts = [0] * len(shape)
        for name, value in zip(op.inputs, self._read(op, self.array), strict=True):
            size = self._shape(name)
            view = parent.view.sliced(starts, [1] * len(shape), size)
            self._emit(COPY, (value,), Array(parent.storage, view))
            starts[axis] += size[axis]

    def _concat_pictures(self, op: Lowered) -> None:
        storage = self._parent_storage(op.output)
        whole = self.pictures[op.output]
        start = 0
        for name in op.inputs:
            channels = self._shape(name)[1]
            source = self.picture(name)
            if source.storage is not storage or self.parents.get(name) != (op.output, start):
                self._emit(MoveChannels(0, start, channels), (source,), whole)
            start += channels

    @_place.register
    def _place_slice(self, spec: Slice, op: Lowered) -> None:
        name, shape = op.inputs[0], self._shape(op.output)
        if name not in self.pictures or spec.steps[1] != 1:
            array = self.array(name)
            view = array.view.sliced(spec.starts, spec.steps, shape)
            self.arrays[op.output] = Array(array.storage, view)
            return
        source = self.picture(name)
        start = spec.starts[1]
        plain = tuple(shape[2:]) == (source.height, source.width) and spec.steps[2:] == (1, 1)
        rooted = source.storage.picture is not None and not source.storage.filled
        # other channels in the last block may be infinite, and readers multiply them by 0
        closed = shape[1] % self.traits.block == 0 or start + shape[1] == source.channels
        aligned = (source.start + start) % self.traits.block == 0
        if plain and rooted and aligned and closed:
            source.storage.shared = True
            self.pictures[op.output] = Picture(
                source.storage, shape[1], source.height, source.width, source.start + start
            )
            return
        if plain:
            made = self._new_picture(op.output, shape)
            self._emit(MoveChannels(start, 0, shape[1]), (source,), made)
            return
        rows, columns = (
            tuple(spec.starts[axis] + spec.steps[axis] * i for i in range(shape[axis]))
            for axis in (2, 3)
        )
        made = self._new_picture(op.output, shape)
        self._emit(Gather(rows, columns, start), (source,), made)

    @_place.register
    def _place_transpose(self, spec: Transpose, op: Lowered) -> None:
        name, shape = op.inputs[0], self._shape(op.output)
        if name in self.pictures and name not in self.arrays:
            source = self.picture(name)
            self._emit(Unpack(spec.perm), (source,), self._new_array(op.output, shape))
            return
        array = self.array(name)
        self.arrays[op.output] = Array(array.storage, array.view.transposed(spec.perm))

    @_place.register(Cast)
    @_place.register(Reshape)
    def _place_reshape(self, spec: Cast | Reshape, op: Lowered) -> None:
        array = self.array(op.inputs[0], contiguous=True)
        view = array.view.reshaped(self._shape(op.output))
        self.arrays[op.output] = Array(array.storage, view)

    @_place.register
    def _place_expand(self, spec: Expand, op: Lowered) -> None:
        array = self.array(op.inputs[0])
        view = array.view.broadcast(self._shape(op.output))
        self.arrays[op.output] = Array(array.storage, view)

    @_place.register
    def _place_array(self, spec: ArrayOp, op: Lowered) -> None:
        inputs: list[Value] = []
        for index, value in enumerate(self._read(op, self.array)):
            copied = isinstance(value, Array) and not spec.reads(index, value.view)
            inputs.append(self.array(op.inputs[index], contiguous=True) if copied else value)
        y = self._new_array(op.output, self._shape(op.output))
        self._emit(_by_indices(spec, inputs), tuple(inputs), y)

    @_place.register
    def _place_append(self, spec: Append, op: Lowered) -> None:
        """In the cache's own memory, unless somebody else reads what it was before."""
        cache, made, last = op.inputs
        alone = len(self.consumers[cache]) == 1 and cache not in self.left
        there = self.arrays.get(cache)
        if alone and there is not None and there.view.is_contiguous:
            place = self.arrays[op.output] = Array(there.storage, there.view)
            if there.storage.dedicated:
                self.in_place[op.output] = cache
        else:
            place = self._new_array(op.output, self._shape(op.output))
            self._emit(COPY, (self.array(cache),), place)
        inputs = place, *(self.array(name, contiguous=True) for name in (made, last))
        self._emit(_by_indices(spec, inputs), inputs, place)

    @_place.register
    def _place_fallback(self, spec: Fallback, op: Lowered) -> None:
        """Inputs from the device where the host has none; outputs to it where they are read."""
        values = []
        for name in op.inputs:
            if name in self.host:
                continue
            values.append((self.forms(name) or [self.array(name)])[0])
        made: list[Stored] = []
        for name in op.outputs:
            self.host.add(name)
            readers = self.consumers.get(name, [])
            if all(reader.spec.falls_back for reader in readers):
                continue
            shape = self._shape(name)
            if is_picture(shape) and any(reader.spec.wants_pictures for reader in readers):
                made.append(self._new_picture(name, shape, block=self.traits.block))
            else:
                made.append(self._new_array(name, shape))
        self._emit(spec, tuple(values), *made)


def _is_index(op: Lowered, name: str) -> bool:
    """Whether an op reads a tensor as indices, and in no other way."""
    places = [place for place, read in enumerate(op.inputs) if read == name]
    return isinstance(op.spec, IndexedOp) and places == [op.spec.index]


def _by_indices(spec: ArrayOp, inputs: Sequence[Value]) -> ArrayOp:
    """The op, told how its indices lie in memory."""
    if not isinstance(spec, IndexedOp):
        return spec
    value = inputs[spec.index]
    return replace(spec, exact=isinstance(value, Array) and value.storage.exact)
