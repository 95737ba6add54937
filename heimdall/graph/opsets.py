"""The opset that a model is read as: the lowest at which each of its ops means the same.

New opsets mostly add element types to old ops. onnxruntime has no kernel for some of these newest
versions, and engines were written for older ones, which compute the same. An op that is new, or
uses what is new of it, is replaced by its function body, where ONNX defines one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import onnx
import onnx.inliner
from onnx import TypeProto, helper, shape_inference

from heimdall.errors import ModelError
from heimdall.graph.control_flow import nodes_of
from heimdall.graph.sessions import first_line
from heimdall.graph.values import (
    attributes_of,
    fixed_shape,
    is_whole,
    opset_of,
    tensor_type,
    type_name,
)

# Ops of older opsets differ from what engines know, and onnxruntime has few kernels for them.
OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
KNOWN = 23  # the newest that engines were written for
_LOOKED_AT = 28  # the newest whose changes were looked at, op by op
_LOWEST = 21  # nothing is read as an older opset: there, ops differ in more than types
_IR_VERSION = 10  # enough for opset 23; older releases of onnxruntime refuse what is newer
_BODIES = "heimdall.bodies"  # a domain
_DEPTH = 8  # a body may hold ops that have bodies

Types = Mapping[str, TypeProto]


class NamedOp(Protocol):
    """A node, in a file or in a graph."""

    @property
    def op_type(self) -> str: ...

    @property
    def domain(self) -> str: ...


def settle(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model as the lowest opset that says the same; ``model`` may be changed in place.

    Raises ModelError where the body of an op cannot be made.
    """
    opset = opset_of(model)
    if opset <= _LOWEST:
        return model
    types = _types(model)
    for _ in range(_DEPTH):
        new = [node for _, node in nodes_of(model.graph) if _has_body(node, model, types)]
        if not new:
            break
        try:
            model = _with_bodies(model, new, types)
        except Exception as error:  # onnx raises types of its own
            raise ModelError(
                f"model {path}: the function body of {new[0].op_type} cannot be made: "
                f"{first_line(error)}"
            ) from error
        types = _types(model)
    nodes = [node for _, node in nodes_of(model.graph)]
    lowest = max((_needs(node, opset, types) for node in nodes), default=_LOWEST)
    for node in nodes:
        _drop_defaults(node, lowest)
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = lowest
    if lowest <= KNOWN:
        model.ir_version = min(model.ir_version, _IR_VERSION)
    return model


def is_newer(node: NamedOp, opset: int) -> bool:
    """Has an op changed since engines were looked at? Then only onnxruntime knows it."""
    schema = _schema(node, opset) if opset > _LOOKED_AT else None
    return schema is not None and schema.since_version > _LOOKED_AT


def _types(model: onnx.ModelProto) -> dict[str, TypeProto]:
    """As far as ONNX infers them."""
    try:
        model = shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # what does not fit is said later, with the name of the node
        return {}
    return dict(_typed(model.graph))


def _typed(graph: onnx.GraphProto) -> Iterator[tuple[str, TypeProto]]:
    for value in [*graph.input, *graph.output, *graph.value_info]:
        yield value.name, value.type
    for item in graph.initializer:
        yield item.name, tensor_type(item.data_type, tuple(item.dims))
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from _typed(inner)


def _schema(node: NamedOp, opset: int) -> Any | None:
    """Of the standard op at that opset; None where there is none."""
    if node.domain not in ("", "ai.onnx"):
        return None
    try:
        return onnx.defs.get_schema(node.op_type, opset, "")
    except Exception:  # a type of onnx's own
        return None


def _needs(node: onnx.NodeProto, opset: int, types: Types) -> int:
    """The lowest opset at which a node means what it does at ``opset``."""
    newer = _schema(node, opset)
    while newer is not None and newer.since_version > _LOWEST:
        older = _schema(node, newer.since_version - 1)
        if older is None or not _is_same(node, older, newer, types):
            return int(newer.since_version)
        newer = older
    return _LOWEST


def _is_same(
    node: onnx.NodeProto, older: onnx.defs.OpSchema, newer: onnx.defs.OpSchema, types: Types
) -> bool:
    """Does a node mean the same by both definitions of its op?"""
    given = attributes_of(node)
    if _says_more(node, newer.since_version, given, types):
        return False
    for name, attribute in newer.attributes.items():
        default = helper.get_attribute_value(attribute.default_value)
        default = default.decode() if isinstance(default, bytes) else default
        if name not in older.attributes:
            if given.get(name, default) != default:
                return False
        elif name not in given and attribute.default_value != older.attributes[name].default_value:
            return False
    for names, known in ((node.input, older.inputs), (node.output, older.outputs)):
        for index, name in enumerate(names):
            last = known[min(index, len(known) - 1)]
            many = last.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
            if name and index >= len(known) and not many:
                return False
            if name in types and not _takes(last, types[name]):
                return False
    return True


def _says_more(node: onnx.NodeProto, since: int, given: Mapping[str, Any], types: Types) -> bool:
    """Does a node use what a version of its op has new in words only?"""
    if node.op_type == "Attention" and since == 24:
        return _has_short_mask(node, types)
    if node.op_type in ("AveragePool", "MaxPool") and since == 22:
        return bool(given.get("ceil_mode", 0))  # windows that start behind the picture do not count
    if node.op_type == "Mod" and since == 28:  # of floats, with the sign of the divisor
        return not given.get("fmod", 0) and not is_whole(types.get(node.input[0], TypeProto()))
    return False


def _takes(parameter: onnx.defs.OpSchema.FormalParameter, kind: TypeProto) -> bool:
    """May it have that type? Of sequences and others nothing is known."""
    if not kind.HasField("tensor_type"):
        return True
    return f"tensor({type_name(kind)})" in parameter.types


def _has_short_mask(node: onnx.NodeProto, types: Types) -> bool:
    """May the mask of Attention end before the keys do? From opset 24 on the rest is masked."""
    inputs = [*node.input, *[""] * 6]
    if not inputs[3]:
        return False
    mask, keys, past = (fixed_shape(types.get(inputs[i], TypeProto())) for i in (3, 1, 4))
    if mask is None or keys is None or (inputs[4] and past is None):
        return True
    return mask[-1] != keys[-2] + (past[-2] if past else 0)


def _drop_defaults(node: onnx.NodeProto, opset: int) -> None:
    """Attributes that an older definition does not know say what it does."""
    schema = _schema(node, opset)
    kept = [each for each in node.attribute if schema is None or each.name in schema.attributes]
    if len(kept) < len(node.attribute):
        del node.attribute[:]
        node.attribute.extend(kept)


# --- function bodies ---


def _has_body(node: onnx.NodeProto, model: onnx.ModelProto, types: Types) -> bool:
    """Is it an op that engines may not know, and that ONNX defines by others?"""
    schema = _newest(node, model)
    if schema is None or not (schema.has_function or schema.has_context_dependent_function):
        return False
    return node.domain not in ("", "ai.onnx") or _needs(node, opset_of(model), types) > KNOWN


def _newest(node: onnx.NodeProto, model: onnx.ModelProto) -> Any | None:
    """The definition of an op of ONNX that a model refers to, of any domain."""
    if node.domain in ("", "ai.onnx"):
        return _schema(node, opset_of(model))
    versions = {entry.domain: entry.version for entry in model.opset_import}
    try:
        return onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except Exception:  # a type of onnx's own
        return None


def _with_bodies(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto], types: Types
) -> onnx.ModelProto:
    """The model with the bodies of these of its nodes in their places."""
    for index, node in enumerate(nodes):
        schema = _newest(node, model)
        assert schema is not None
        function = onnx.FunctionProto.FromString(_body(schema, node, opset_of(model), types))
        function.domain, function.name = _BODIES, f"{node.op_type}_{index}"
        for entry in function.opset_import:  # inlined, it has the opset of the model
            if entry.domain in ("", "ai.onnx"):
                entry.version = opset_of(model)
        write_defaults(node, schema)
        model.functions.append(function)
        node.op_type, node.domain = function.name, function.domain
    model.opset_import.append(helper.make_opsetid(_BODIES, 1))
    made = onnx.inliner.inline_local_functions(model)
    imports = [each for each in made.opset_import if each.domain != _BODIES]
    del made.opset_import[:]
    made.opset_import.extend(imports)
    return made


def write_defaults(node: onnx.NodeProto, schema: Any) -> None:
    """Write out the attributes that a node leaves out: function bodies refer to them."""
    given = {each.name for each in node.attribute}
    node.attribute.extend(
        each.default_value
        for name, each in schema.attributes.items()
        if name not in given and each.default_value.name
    )


def _body(schema: Any, node: onnx.NodeProto, opset: int, types: Types) -> bytes:
    versions = schema.function_opset_versions if schema.has_function else None
    if versions is not None:
        return bytes(schema.get_function_with_opset_version(max(v for v in versions if v <= opset)))
    versions = schema.context_dependent_function_opset_versions
    kinds = [types.get(name, TypeProto()).SerializeToString() for name in node.input]
    return bytes(
        schema.get_context_dependent_function_with_opset_version(
            max(v for v in versions if v <= opset), node.SerializeToString(), kinds
        )
    )
