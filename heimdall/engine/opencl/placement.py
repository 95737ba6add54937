"""Where every tensor of a network lives: which storage, in which layout, as a view of what.

Pictures (batch 1, four axes) are stored in channel blocks with the halo that their readers ask
for; everything else is row-major. A tensor that is needed in both forms is converted by the op
that needs the other one. Slices on block boundaries, reshapes and transposes are views; the
inputs of a Concat are computed directly into its storage where they fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from heimdall.engine.opencl.activation import NONE
from heimdall.engine.opencl.array_op import ArrayOp
from heimdall.engine.opencl.exits import heads_of
from heimdall.engine.opencl.expression import Expression, Operand
from heimdall.engine.opencl.kernel_op import KernelOp, PictureOp
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
from heimdall.engine.opencl.placed import COPY, Array, Picture, PlacedOp, Storage, Value
from heimdall.engine.opencl.strided import Strided
from heimdall.engine.opencl.tensors import Tensors


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
            self._way(op)(op)
            if self._current.steps:
                self._current.nodes = self._pending + op.nodes
                self._pending = ()
                self.ops.append(self._current)
            else:
                self._pending += op.nodes
        for name in self.left:
            for value in (self.pictures.get(name), self.arrays.get(name)):
                if value is not None:
                    value.storage.touch(self._step_count)

    def _way(self, op: Lowered) -> Callable[[Lowered], None]:
        """How an op is placed: by what kernels want, unless it is about layouts itself."""
        own = _OWN.get(type(op.spec))
        if own is not None:
            return partial(own, self)
        return self._place_array if isinstance(op.spec, ArrayOp) else self._place_pictures

    # --- inputs ---

    def _place_input(self, name: str) -> None:
        """Pictures that only convolutions read stay as they come: planar or NHWC, with a halo."""
        readers = self.consumers.get(name, [])
        if name in self.left or any(not isinstance(op.spec, Fallback) for op in readers):
            self._place_device_input(name, readers)
        for op in readers:
            for other in op.inputs:
                if other == name and isinstance(op.spec, Fallback):
                    self.host.add(name)

    def _place_device_input(self, name: str, readers: list[Lowered]) -> None:
        shape = self._shape(name)
        picture = len(shape) == 4 and shape[0] == 1
        raw = picture and shape[1] <= 4 and name not in self.left
        if raw and all(self._reads_raw(op, name) for op in readers):
            made = self._new_picture(name, shape, block=self._source_block(name))
            made.storage.dedicated = True
        elif picture and any(self._wants_picture(op) for op in readers):
            made = self._new_picture(name, shape, block=self.traits.block)
            made.storage.dedicated = True
        else:
            self._new_array(name, shape, dedicated=True)

    def _reads_raw(self, op: Lowered, name: str) -> bool:
        if isinstance(op.spec, FillHalo):
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

    @staticmethod
    def _wants_picture(op: Lowered) -> bool:
        if isinstance(op.spec, Conv):
            return not op.spec.matrix
        if isinstance(op.spec, KernelOp):
            return op.spec.wants_pictures
        return isinstance(op.spec, (Separable, Concat, Slice))

    # --- one method a kind of op ---

    def _place_conv(self, op: Lowered) -> None:
        conv: Conv = op.spec  # type: ignore[assignment]
        if conv.matrix:
            self._place_matrix(op)
            return
        spec, shape = conv.spec, self._shape(op.output)
        size = tuple(self._shape(op.inputs[0])[2:])
        x = self._with_halo(
            op.inputs[0],
            spec.required_halo(size, tuple(shape[2:])),  # type: ignore[arg-type]
        )
        residual = [self.picture(name) for name in op.inputs[1:]]
        planar = (
            not self.consumers.get(op.output)
            and op.output not in self.parents
            and not residual
            and 4 * shape[1] <= self.traits.block
        )
        y = self._new_picture(op.output, shape, block=1 if planar else 0)
        function = conv.spec.activation.kind
        if planar and function in ("sigmoid", "tanh") and shape[2] * shape[3] > 256:
            # in a convolution of few channels most lanes of a costly activation are idle
            self._emit(replace(conv, spec=replace(conv.spec, activation=NONE)), (x,), (y,))
            whole = Array(y.storage, Strided.contiguous(shape))
            step = Elementwise(Expression.of(function, Operand(0)))
            self._emit(step, (whole,), (whole,))
            return
        self._emit(conv, (x, *residual), (y,))

    def _place_separable(self, op: Lowered) -> None:
        pair: Separable = op.spec  # type: ignore[assignment]
        size, out = self._shape(op.inputs[0])[2:], self._shape(op.output)[2:]
        halo = pair.depthwise.spec.required_halo(tuple(size), tuple(out))  # type: ignore[arg-type]
        x = self._with_halo(op.inputs[0], halo)
        residual = [self.picture(name) for name in op.inputs[1:]]
        y = self._new_picture(op.output, self._shape(op.output))
        self._emit(pair, (x, *residual), (y,))

    def _place_matrix(self, op: Lowered) -> None:
        """Matrix layouts start at offset 0 of a buffer of their own."""
        x = self.array(op.inputs[0], contiguous=True)
        if not x.storage.dedicated or x.view.offset:
            copy = Storage(f"{op.output}/rows", None, x.view.size, 1, dedicated=True)
            self.storages.append(copy)
            made = Array(copy, Strided.contiguous(x.view.shape))
            self._emit(COPY, (x,), (made,))
            x = made
        y = self._new_array(op.output, self._shape(op.output), dedicated=True)
        self._emit(op.spec, (x,), (y,))

    def _place_elementwise(self, op: Lowered) -> None:
        shape = self._shape(op.output)
        variables = [name for name in op.inputs if name not in self.module.constants]
        pictured = any(name in self.pictures for name in variables)
        if len(shape) == 4 and shape[0] == 1 and pictured:
            inputs: list[Value] = []
            for name in op.inputs:
                constant = self.module.constants.get(name)
                inputs.append(self.picture(name) if constant is None else constant)
            self._emit(op.spec, tuple(inputs), (self._new_picture(op.output, shape),))
            return
        values = tuple(
            self.module.constants[name] if name in self.module.constants else self.array(name)
            for name in op.inputs
        )
        self._emit(op.spec, values, (self._new_array(op.output, shape),))

    def _place_pictures(self, op: Lowered) -> None:
        """Where an op makes one value a channel, kernels write these one after the other."""
        inputs = tuple(self.picture(name) for name in op.inputs)
        outputs = tuple(self._new_picture(name, self._shape(name)) for name in op.outputs)
        self._emit(op.spec, inputs, outputs)
        if isinstance(op.spec, PictureOp) and op.spec.vectors:
            for made in outputs:
                made.storage.frozen = True

    def _place_fillhalo(self, op: Lowered) -> None:
        spec: FillHalo = op.spec  # type: ignore[assignment]
        name = op.inputs[0]
        source = self.pictures[name] if name in self.pictures else self.picture(name)
        storage = source.storage
        others = [reader for reader in self.consumers[name] if reader is not op]
        free = source.whole and not (storage.frozen or storage.filled or storage.shared)
        if storage.picture is None or not free or not all(map(_ignores_halo, others)):
            source = self._copied(name, source)
            storage = source.storage
        storage.widen(spec.pads)
        storage.filled = True
        self.pictures[op.output] = source
        self._emit(spec, (), (source,))

    def _place_reduce(self, op: Lowered) -> None:
        spec: Reduce = op.spec  # type: ignore[assignment]
        name, shape = op.inputs[0], self._shape(op.output)
        if spec.axes == (2, 3) and name in self.pictures and len(shape) == 4:
            self._place_pictures(op)
            return
        self._emit(spec, (self.array(name),), (self._new_array(op.output, shape),))

    def _place_concat(self, op: Lowered) -> None:
        axis = op.spec.axis  # type: ignore[union-attr]
        shape = self._shape(op.output)
        pictured = any(name in self.pictures for name in op.inputs)
        if len(shape) == 4 and shape[0] == 1 and axis == 1 and pictured:
            self._concat_pictures(op)
            return
        parent = self._new_array(op.output, shape)
        starts = [0] * len(shape)
        for name in op.inputs:
            size = self._shape(name)
            view = parent.view.sliced(starts, [1] * len(shape), size)
            source = self.module.constants.get(name)
            value: Value = self.array(name) if source is None else source
            self._emit(COPY, (value,), (Array(parent.storage, view),))
            starts[axis] += size[axis]

    def _concat_pictures(self, op: Lowered) -> None:
        storage = self._parent_storage(op.output)
        whole = self.pictures[op.output]
        start = 0
        for name in op.inputs:
            channels = self._shape(name)[1]
            source = self.picture(name)
            if source.storage is not storage or self.parents.get(name) != (op.output, start):
                self._emit(MoveChannels(0, start, channels), (source,), (whole,))
            start += channels

    def _place_slice(self, op: Lowered) -> None:
        spec: Slice = op.spec  # type: ignore[assignment]
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
        if plain and rooted and (source.start + start) % self.traits.block == 0:
            source.storage.shared = True
            self.pictures[op.output] = Picture(
                source.storage, shape[1], source.height, source.width, source.start + start
            )
            return
        if plain:
            made = self._new_picture(op.output, shape)
            self._emit(MoveChannels(start, 0, shape[1]), (source,), (made,))
            return
        rows, columns = (
            tuple(spec.starts[axis] + spec.steps[axis] * i for i in range(shape[axis]))
            for axis in (2, 3)
        )
        made = self._new_picture(op.output, shape)
        self._emit(Gather(rows, columns, start), (source,), (made,))

    def _place_transpose(self, op: Lowered) -> None:
        perm = op.spec.perm  # type: ignore[union-attr]
        name, shape = op.inputs[0], self._shape(op.output)
        if name in self.pictures and name not in self.arrays:
            source = self.picture(name)
            self._emit(Unpack(perm), (source,), (self._new_array(op.output, shape),))
            return
        array = self.array(name)
        self.arrays[op.output] = Array(array.storage, array.view.transposed(perm))

    def _place_reshape(self, op: Lowered) -> None:
        array = self.array(op.inputs[0], contiguous=True)
        view = array.view.reshaped(self._shape(op.output))
        self.arrays[op.output] = Array(array.storage, view)

    def _place_expand(self, op: Lowered) -> None:
        array = self.array(op.inputs[0])
        view = array.view.broadcast(self._shape(op.output))
        self.arrays[op.output] = Array(array.storage, view)

    def _place_array(self, op: Lowered) -> None:
        inputs: list[Value] = []
        for name in op.inputs:
            constant = self.module.constants.get(name)
            inputs.append(self.array(name, contiguous=True) if constant is None else constant)
        self._emit(op.spec, tuple(inputs), (self._new_array(op.output, self._shape(op.output)),))

    def _place_fallback(self, op: Lowered) -> None:
        """Inputs from the device where the host has none; outputs to it where they are read."""
        values = []
        for name in op.inputs:
            if name in self.host:
                continue
            if name not in self.pictures and name not in self.arrays:
                self.array(name)
            values.append(self.pictures.get(name) or self.arrays[name])
        made: list[Value] = []
        for name in op.outputs:
            self.host.add(name)
            readers = self.consumers.get(name, [])
            if all(isinstance(reader.spec, Fallback) for reader in readers):
                continue
            shape = self._shape(name)
            if len(shape) == 4 and shape[0] == 1 and any(map(self._wants_picture, readers)):
                made.append(self._new_picture(name, shape, block=self.traits.block))
            else:
                made.append(self._new_array(name, shape))
        self._emit(op.spec, tuple(values), tuple(made))


def _ignores_halo(op: Lowered) -> bool:
    """True for readers that neither read the halo nor make views of the tensor."""
    if isinstance(op.spec, Conv):
        spec = op.spec.spec
        return spec.kernel == (1, 1) and not any(spec.pads) and not spec.transposed
    if isinstance(op.spec, PictureOp):
        return op.spec.ignores_halo
    return isinstance(op.spec, Fallback)


# Ops whose placement is their work, or that choose between layouts; all others follow their kind.
_OWN: dict[type, Callable[[Placer, Lowered], None]] = {
    Cast: Placer._place_reshape,
    Concat: Placer._place_concat,
    Conv: Placer._place_conv,
    Elementwise: Placer._place_elementwise,
    Expand: Placer._place_expand,
    Fallback: Placer._place_fallback,
    FillHalo: Placer._place_fillhalo,
    Reduce: Placer._place_reduce,
    Reshape: Placer._place_reshape,
    Separable: Placer._place_separable,
    Slice: Placer._place_slice,
    Transpose: Placer._place_transpose,
}
