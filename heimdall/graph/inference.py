"""Types and shapes of all tensors, node by node from the inputs; constants are folded on the way.

Nothing that a file says of tensors between its nodes, or of the shapes of its outputs, is
believed: it may be stale. A node is looked at before anything of its size is allocated, and what
is wrong with it is said with its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, TypeProto, helper, numpy_helper, shape_inference

from heimdall.errors import ModelError
from heimdall.graph import control_flow, limits
from heimdall.graph.checks import BY_VALUE, MisfitError, Site, axes_and_scales, check_node
from heimdall.graph.folding import Constants
from heimdall.graph.limits import count, say_bytes
from heimdall.graph.opsets import write_defaults
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import (
    attributes_of,
    check_stored,
    constant_of,
    fixed_shape,
    is_plain,
    is_whole,
    opset_of,
    tensor_bytes,
    tensor_type,
)
from heimdall.graph.whole import OnlyWholeError
from heimdall.graph.windows import drop_windows_outside

_STANDARD = ("", "ai.onnx")
# How much these find is in the data, but never more than there are elements times dimensions.
_COUNTED = {"NonZero", "Unique", "Compress"}
_MOST_VALUES = 1 << 16  # of a constant that decides a shape; copied for each node that reads it
_POOLS = {"MaxPool", "AveragePool", "LpPool"}
_KINDS = {value: name.lower() for name, value in TensorProto.DataType.items()}


def infer(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without nodes that depend on constants alone, and with the type of every tensor.

    Raises ModelError, naming the node, for what does not fit or is too large; OnlyWholeError for a
    type that is no number of numpy's, and for what is not known before it runs: a shape, or which
    nodes run.
    """
    walk = _Walk(path, model)
    for index, node in enumerate(model.graph.node):
        walk.visit(index, node)
    return walk.result()


class _Walk:
    def __init__(self, path: Path, model: onnx.ModelProto) -> None:
        self._path, self._model = path, model
        self._opset = opset_of(model)
        self._constants = Constants(path, model)
        self._types: dict[str, TypeProto] = {value.name: value.type for value in model.graph.input}
        for item in model.graph.initializer:
            self._types[item.name] = tensor_type(item.data_type, tuple(item.dims))
        self._kept: list[onnx.NodeProto] = []
        self._read = {name for _, node in control_flow.nodes_of(model.graph) for name in node.input}
        self._read |= {value.name for value in model.graph.output}
        self._whole_reads = {  # by whoever cannot leave out what is empty
            name
            for _, node in control_flow.nodes_of(model.graph)
            if node.op_type != "Concat"
            for name in node.input
        } | {value.name for value in model.graph.output}
        for value in model.graph.input:
            self._check_size(f"input {value.name!r} of {path}", value.type, full=True)

    def visit(self, index: int, node: onnx.NodeProto) -> None:
        """Look at the next node."""
        where = control_flow.where(self._path, index, node)
        for name in node.input:
            if name and name not in self._types:
                raise ModelError(f"{where}: nothing before it makes its input {name!r}")
        for name in node.output:
            if name in self._types:
                raise ModelError(f"{where}: its output {name!r} is there already")
        if self._is_known(node, where):
            return
        if node.op_type in control_flow.OPS and node.domain in _STANDARD:
            self._branch(index, node, where)
            return
        self._drop_empty(node)
        folds = self._constants.folds(node)
        types = self._checked_types(node, where, folds)
        self._types |= types
        if self._is_empty(node):
            made = np.zeros(*_numpy(self._types[node.output[0]]))
            self._constants.store(numpy_helper.from_array(made, node.output[0]), where)
        elif folds:
            self._constants.add(node, types, where)
        else:
            for name in filter(None, [*node.input, *node.output]):
                if not is_plain(self._types[name]):
                    kind = _KINDS.get(self._types[name].tensor_type.elem_type, "no tensor")
                    raise OnlyWholeError(f"{where}: {name!r} is {kind}")
            self._kept.append(node)

    def _is_empty(self, node: onnx.NodeProto) -> bool:
        """Is it a part of something that has no elements, and is only joined to others?"""
        return self._may_be_empty(node) and 0 in (fixed_shape(self._types[node.output[0]]) or ())

    def _may_be_empty(self, node: onnx.NodeProto) -> bool:
        return node.op_type == "Slice" and self._whole_reads.isdisjoint(node.output)

    def _drop_empty(self, node: onnx.NodeProto) -> None:
        """Such parts, where they are joined to others."""
        if node.op_type == "Concat":
            full = [n for n in node.input if 0 not in (fixed_shape(self._types[n]) or ())]
            if full and len(full) < len(node.input):
                del node.input[:]
                node.input.extend(full)

    def _branch(self, index: int, node: onnx.NodeProto, where: str) -> None:
        """The branch of an If whose condition is known takes its place."""
        if node.op_type != "If" or node.input[0] not in self._constants:
            raise OnlyWholeError(f"{where}: what runs is not known beforehand")
        taken = control_flow.branch(node, bool(self._constants.array(node.input[0]).all()))
        self._read |= {name for _, inner in control_flow.nodes_of(taken) for name in inner.input}
        for item in taken.initializer:
            check_stored(f"tensor {item.name!r} of {self._path}", item)
            self._constants.store(item, where)
            self._types[item.name] = tensor_type(item.data_type, tuple(item.dims))
        for inner in taken.node:
            self.visit(index, inner)

    def _is_known(self, node: onnx.NodeProto, where: str) -> bool:
        """Is it a constant of the file, or the size of something? Then it is stored."""
        if node.domain not in _STANDARD:
            return False
        if node.op_type == "Constant":
            stored = constant_of(node)
            if stored is None:
                raise OnlyWholeError(f"{where}: it holds text")
        elif node.op_type in ("Shape", "Size"):
            shape = fixed_shape(self._types[node.input[0]])
            if shape is None:
                return False
            get = attributes_of(node).get
            part = np.array(shape[get("start", 0) : get("end", None)], np.int64)
            size = np.array(count(shape), np.int64)
            stored = numpy_helper.from_array(part if node.op_type == "Shape" else size)
        else:
            return False
        named = TensorProto()
        named.CopyFrom(stored)
        named.name = node.output[0]
        self._constants.store(named, where)
        self._types[named.name] = tensor_type(named.data_type, tuple(named.dims))
        return True

    def _checked_types(self, node: onnx.NodeProto, where: str, folds: bool) -> dict[str, TypeProto]:
        values = self._values(node)
        attributes = attributes_of(node)
        standard = node.domain in _STANDARD
        shapes = [fixed_shape(self._types[name]) if name else None for name in node.input]
        if standard:
            outputs = len(node.output)
            site = Site(
                node.op_type, self._opset, attributes, shapes, values, self._whole(node), outputs
            )
            try:
                check_node(site)
            except MisfitError as misfit:
                raise ModelError(f"{where}: {misfit}") from misfit
        types = self._inferred(node, where, values)
        if standard and node.op_type in _POOLS and shapes[0]:
            found = fixed_shape(types[node.output[0]])
            if found and drop_windows_outside(node, attributes, shapes[0][2:], found[2:]):
                types = self._inferred(node, where, values)
        if standard and node.op_type in ("Resize", "Upsample"):
            _resize(site, types[node.output[0]])
        if standard and node.op_type == "Einsum" and _broadcasts(attributes["equation"], shapes):
            raise OnlyWholeError(f"{where}: a size of 1 broadcasts, which ONNX does not infer")
        bounded = folds and node.op_type in _COUNTED
        for name, kind_of in types.items():
            if bounded and fixed_shape(kind_of) is None:
                types[name] = self._counted(node, name, kind_of)
                continue
            full = not folds and not self._may_be_empty(node)
            self._check_size(f"{where}: its output {name!r}", kind_of, full=full)
        return types

    def _values(self, node: onnx.NodeProto) -> dict[int, np.ndarray]:
        """The constants among the inputs that decide shapes or places."""
        found: dict[int, np.ndarray] = {}
        if node.op_type in ("Div", "Mod") and not self._whole(node):
            return found
        for index in BY_VALUE.get(node.op_type, ()):
            name = node.input[index] if index < len(node.input) else ""
            if name and name in self._constants:
                found[index] = self._constants.array(name)
        return found

    def _whole(self, node: onnx.NodeProto) -> bool:
        """Are the elements of its first input integers?"""
        first = node.input[0] if node.input else ""
        return bool(first) and is_whole(self._types[first])

    def _inferred(
        self, node: onnx.NodeProto, where: str, values: dict[int, np.ndarray]
    ) -> dict[str, TypeProto]:
        named = [name for name in node.output if name]
        try:
            if node.domain in _STANDARD:
                inputs = {name: self._types[name] for name in node.input if name}
                data = {
                    node.input[index]: self._constants.tensor(node.input[index])
                    for index, array in values.items()
                    if array.size <= _MOST_VALUES
                }
                schema = onnx.defs.get_schema(node.op_type, self._opset, "")
                found = shape_inference.infer_node_outputs(
                    schema, node, inputs, data, opset_imports=[helper.make_opsetid("", self._opset)]
                )
            else:
                found = self._cached(node)
            if any(name not in found or fixed_shape(found[name]) is None for name in named):
                found = dict(found) | self._asked(node)
        except Exception as error:  # C++ exceptions of several types
            why = f"{where} does not fit its inputs: {first_line(error)}"
            raise OnlyWholeError(why) from error  # onnxruntime may be less strict
        types = {}
        for index, name in enumerate(node.output):
            if (
                name
                and name not in self._read
                and fixed_shape(found.get(name, TypeProto())) is None
            ):
                node.output[index] = ""  # not asked for (the mask of a Dropout)
        for name in filter(None, node.output):
            if name not in found or not found[name].HasField("tensor_type"):
                raise OnlyWholeError(
                    f"{where}: the type of its output {name!r} cannot be inferred, or is no tensor"
                )
            types[name] = found[name]
        return types

    def _cached(self, node: onnx.NodeProto) -> dict[str, TypeProto]:
        """The types of attention over a cache of fixed size, which onnxruntime does not tell: the
        cache stays as it is, and what is made are as many heads as there are of queries."""
        if node.op_type != "GroupQueryAttention" or not all(node.input[3:5]):
            return {}
        query, past = (fixed_shape(self._types[node.input[place]]) for place in (0, 3))
        if query is None or past is None:
            return {}
        kind = self._types[node.input[0]].tensor_type.elem_type
        heads = attributes_of(node)["num_heads"]
        made = tensor_type(kind, (*query[:2], heads * past[3]))
        kept = (self._types[name] for name in node.input[3:5])
        return {n: each for n, each in zip(node.output, (made, *kept), strict=False) if n}

    def _asked(self, node: onnx.NodeProto) -> dict[str, TypeProto]:
        """Types by what an op is made of, or by onnxruntime, for ops that only it knows."""
        if node.domain in _STANDARD:
            schema: Any = onnx.defs.get_schema(node.op_type, self._opset, "")
            if schema.has_function:  # of all attributes
                write_defaults(node, schema)
        graph = helper.make_graph(
            [node],
            "node",
            [
                onnx.ValueInfoProto(name=name, type=self._types[name])
                for name in dict.fromkeys(node.input)
                if name and name not in self._constants
            ],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
            [self._constants.tensor(n) for n in dict.fromkeys(node.input) if n in self._constants],
        )
        model = helper.make_model(
            graph, opset_imports=self._model.opset_import, ir_version=self._model.ir_version
        )
        if node.domain in _STANDARD:
            inferred = shape_inference.infer_shapes(model, data_prop=True).graph.output
            if all(fixed_shape(value.type) is not None for value in inferred):
                return {value.name: value.type for value in inferred}
        kinds = {f"tensor({name})": value for value, name in _KINDS.items()}
        return {
            # [] is a number or, more often, what it does not know either
            each.name: helper.make_tensor_type_proto(kinds[each.type], each.shape or None)
            for each in open_session(model).get_outputs()
            if each.type in kinds
        }

    def _counted(self, node: onnx.NodeProto, name: str, kind: TypeProto) -> TypeProto:
        """The type of what is found in a constant: by finding it."""
        probe = {name: helper.make_tensor_type_proto(kind.tensor_type.elem_type, None)}
        self._constants.add(node, probe, "")
        dims = tuple(self._constants.tensor(name).dims)
        return tensor_type(kind.tensor_type.elem_type, dims)

    def _check_size(self, what: str, kind: TypeProto, *, full: bool) -> None:
        """``full``: it must have elements."""
        shape = fixed_shape(kind)
        if shape is None or (full and not all(shape)):
            raise OnlyWholeError(f"{what}: its shape is not known before it runs, or is empty")
        size = tensor_bytes(kind.tensor_type.elem_type, shape)
        if size > limits.TENSOR_BYTES:
            raise ModelError(
                f"{what} would be {list(shape)}, {say_bytes(size)}: more than the "
                f"{say_bytes(limits.TENSOR_BYTES)} that a tensor may have; choose smaller input "
                "shapes"
            )

    def result(self) -> onnx.ModelProto:
        """The model as it is known now."""
        outputs = [value.name for value in self._model.graph.output]
        for name in outputs:
            if name not in self._types:
                raise ModelError(f"model {self._path}: nothing makes its output {name!r}")
        needed = dict.fromkeys(name for node in self._kept for name in node.input if name)
        needed |= dict.fromkeys(outputs)
        constants = [name for name in needed if name in self._constants]
        self._constants.compute(constants)
        made = onnx.ModelProto()
        made.CopyFrom(_without_weights(self._model))
        made.graph.node.extend(self._kept)
        made.graph.initializer.extend(self._constants.tensor(name) for name in constants)
        made.graph.output.extend(self._value(name) for name in outputs)
        inner = dict.fromkeys(name for node in self._kept for name in node.output if name)
        made.graph.value_info.extend(self._value(n) for n in inner if n not in set(outputs))
        return made

    def _value(self, name: str) -> onnx.ValueInfoProto:
        return onnx.ValueInfoProto(name=name, type=self._types[name])


def _resize(site: Site, kind: TypeProto) -> None:
    """Give what is resized by scales the size that it has in onnxruntime, which multiplies in
    float32. ONNX's inference does in float64: 10 by 0.7 is 6 there, and 7 in onnxruntime."""
    if fixed_shape(kind) is None:
        return
    x, dims = site.shape(0), kind.tensor_type.shape.dim
    for axis, scale in zip(*axes_and_scales(site), strict=False):  # no scales: sizes are given
        dims[axis].dim_value = int(min(np.float32(x[axis]) * scale, 2.0**62))


def _broadcasts(equation: str, shapes: Sequence[tuple[int, ...] | None]) -> bool:
    """Has a label of the result of an Einsum several sizes? Inference takes the first."""
    if "." in equation:
        return False
    left, _, result = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, shape in zip(left.split(","), shapes, strict=False):
        for label, size in zip(term, shape or (), strict=False):
            if label in result and sizes.setdefault(label, size) != size:
                return True
    return False


def _numpy(kind: TypeProto) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of its arrays."""
    dtype = helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    return fixed_shape(kind) or (), dtype


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Its head and its inputs."""
    bare = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    bare.graph.name = model.graph.name
    bare.graph.input.extend(model.graph.input)
    return bare
