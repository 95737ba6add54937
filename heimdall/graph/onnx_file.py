"""Reading an ONNX file: bytes to a checked, simplified model with fixed shapes.

Reading fixes free dimensions, checks opsets and ops, and lets onnxruntime's *basic* optimiser
fold constants, batch norms and no-ops. That pass keeps standard ONNX operators and node names,
so op names of every engine still lead back to the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from onnx import helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import (
    control_flow,
    decoder,
    half,
    inference,
    opsets,
    packed_weights,
    quantised,
    whole,
)
from heimdall.graph.checked import check, put_right
from heimdall.graph.external_data import read_external_data
from heimdall.graph.opsets import OPSETS
from heimdall.graph.sessions import first_line, open_session
from heimdall.graph.values import dense, fixed_shape, node_name, opset_of
from heimdall.graph.whole import OnlyWholeError

# What onnxruntime can run, or defines by other ops
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "com.microsoft"}

NOTE = "heimdall.note"  # a key of metadata
Inputs = Mapping[str, Sequence[int] | float]  # shapes, or numbers that inputs always are
# Where a picture's sides are free: those of the usual camera.
_HEIGHT, _WIDTH = 480, 640


def read_model(
    path: Path, raw: bytes, shapes: Inputs | Sequence[int] | None
) -> tuple[onnx.ModelProto, int]:
    """The simplified model and its opset; every node is named and every output is written by a
    node. Raises ModelError as ``graph.load_graph`` says."""
    try:
        return _read(path, raw, shapes)
    except OnlyWholeError as error:
        if isinstance(shapes, Mapping) and decoder.CONTEXT in shapes:
            raise  # only engines keep a cache of that length
        return _read(path, raw, shapes, whole_for=str(error))


def _read(
    path: Path, raw: bytes, shapes: Inputs | Sequence[int] | None, whole_for: str = ""
) -> tuple[onnx.ModelProto, int]:
    """See ``read_model``; ``whole_for``: why the model must be one node."""
    model = _parse(path, raw)
    generates = isinstance(shapes, Mapping) and decoder.CONTEXT in shapes
    if generates:
        decoder.without_norms(model)
    opset = _checked_opset(path, model)
    _refuse_unsupported(path, model, opset)
    model = _read_payload(path, model, strict=not whole_for)
    _drop_overridable_constants(model)
    if generates:
        shapes = decoder.input_shapes(path, model, shapes)  # type: ignore[arg-type]
    _fix_input_shapes(path, model, shapes)
    assumed = "; ".join(entry.value for entry in model.metadata_props if entry.key == NOTE)
    try:
        return _made(path, model, generates, whole_for)
    except ModelError as error:
        if not assumed or isinstance(error, OnlyWholeError):
            raise
        raise ModelError(f"{error}; {assumed}: the network may need others") from error


def _made(
    path: Path, model: onnx.ModelProto, generates: bool, whole_for: str
) -> tuple[onnx.ModelProto, int]:
    """The rest of ``_read``, where sizes of inputs are known."""
    model = opsets.settle(path, model)
    half.widen(model)
    opset = opset_of(model)
    if whole_for:
        model, left = whole.as_one_node(path, model, whole_for)
        out = f", without its outputs {left}, which are no tensors of numbers" if left else ""
        note(model, f"{whole_for}, so all of it runs on the CPU{out}")
        return model, opset
    _forget_shapes(model)
    if any(node.op_type in control_flow.OPS for node in model.graph.node):
        model = _known_branches(path, model)
    packed_weights.unpack(path, model)
    rewritten = quantised.rewrite(path, model)
    if generates:
        model = decoder.rewrite(path, model)
    try:
        return _simplify(path, model), opset
    except ModelError as error:
        if rewritten and not isinstance(error, OnlyWholeError):  # the file may still be right
            raise OnlyWholeError(f"{error} (as floats)") from error
        raise


def _known_branches(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without control flow. Raises OnlyWholeError where that cannot be."""
    _name_nodes(model)
    made = inference.infer(path, model)
    made.metadata_props.extend(model.metadata_props)
    _forget_shapes(made)
    return made


def note(model: onnx.ModelProto, said: str) -> None:
    """Keep with a model what its user is to be told each time that it is loaded."""
    model.metadata_props.add(key=NOTE, value=said)


def _parse(path: Path, raw: bytes) -> onnx.ModelProto:
    if not raw:
        raise ModelError(f"model {path} is empty")
    try:
        model = onnx.load_model_from_string(raw)
    except Exception as error:  # protobuf raises types of its own
        raise ModelError(
            f"model {path} is not an ONNX file, or is truncated: {first_line(error)}"
        ) from error
    if not model.graph.node:
        raise ModelError(f"model {path} has no nodes: it is corrupt or not an ONNX model")
    if not all(isinstance(name, str) for name in _names(model.graph)):
        raise ModelError(f"model {path} is corrupt: a name in it is no text")
    outputs = [value.name for value in model.graph.output]
    if not outputs or "" in outputs or len(set(outputs)) < len(outputs):
        raise ModelError(f"model {path} has outputs {outputs}: one or more of different names")
    return model


def _names(graph: onnx.GraphProto) -> Iterator[str | bytes]:
    """All of them; those that are no UTF-8 are bytes."""
    yield from (each.name for each in [*graph.input, *graph.output, *graph.initializer])
    for _, node in control_flow.nodes_of(graph):
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)


def _read_payload(path: Path, model: onnx.ModelProto, strict: bool) -> onnx.ModelProto:
    """External data (only from the model's own folder), then the official checker (where
    ``strict``). Raises OnlyWholeError for what it refuses: onnxruntime is less strict."""
    read_external_data(path, model)
    put_right(model)
    try:
        if strict:
            check(model)
        _make_dense(model)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
    except Exception as error:
        # the checker and the inliner raise types of their own
        said = f"model {path} is not a valid ONNX file: {first_line(error)}"
        raise (OnlyWholeError if strict else ModelError)(said) from error
    return model


def _make_dense(model: onnx.ModelProto) -> None:
    """Sparse constants as onnxruntime reads them, too: with all their zeros."""
    graph = model.graph
    graph.initializer.extend(map(dense, graph.sparse_initializer))
    del graph.sparse_initializer[:]
    for _, node in control_flow.nodes_of(graph):
        if node.op_type == "Constant" and node.attribute[0].name == "sparse_value":
            value = dense(node.attribute[0].sparse_tensor)
            node.attribute[0].CopyFrom(helper.make_attribute("value", value))


def _drop_overridable_constants(model: onnx.ModelProto) -> None:
    """Weights that are listed as inputs too (IR version 3, older exporters) become constants.

    Left as they are, onnxruntime must expect them to be replaced at run time and folds
    nothing, and shape inference ignores those that are not listed.
    """
    constants = {item.name for item in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)


def _checked_opset(path: Path, model: onnx.ModelProto) -> int:
    opset = opset_of(model)
    nodes = control_flow.nodes_of(model.graph)
    if not opset and not any(node.domain in ("", "ai.onnx") for _, node in nodes):
        opset = opsets.KNOWN  # not one standard op: any will do
        model.opset_import.append(helper.make_opsetid("", opset))
    if opset not in OPSETS:
        raise ModelError(
            f"model {path} uses ONNX opset {opset}; supported are {OPSETS.start} to "
            f"{OPSETS.stop - 1}, the newest that onnx {onnx.__version__} knows. Convert it with "
            "onnx.version_converter, or install a newer onnx."
        )
    return opset


def _dims(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _fix_input_shapes(
    path: Path, model: onnx.ModelProto, shapes: Inputs | Sequence[int] | None
) -> None:
    inputs = model.graph.input
    names = [value.name for value in inputs]
    if shapes is None:
        shapes = {}
    if not isinstance(shapes, Mapping):
        if len(inputs) != 1:
            raise ModelError(f"model {path} has inputs {names}: give each one's shape by name")
        shapes = {names[0]: shapes}
    for name in shapes:
        if name not in names:
            raise ModelError(f"model {path} has no input {name!r}; its inputs are {names}")
    sizes = _named_sizes(inputs, shapes)
    for value in list(inputs):
        if not value.type.HasField("tensor_type"):
            raise ModelError(f"input {value.name!r} of {path} is not a tensor")
        given = shapes.get(value.name)
        if given is None:
            if not value.type.tensor_type.HasField("shape"):
                raise ModelError(
                    f"input {value.name!r} of {path} has no shape: choose one, such as "
                    f"shapes={{{value.name!r}: {[1, 3, _HEIGHT, _WIDTH]}}}"
                )
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
        if isinstance(given, int | float):
            model.graph.initializer.append(_always(path, value, given))
            inputs.remove(value)
        else:
            _fix_input_shape(path, model, value, given)


def _named_sizes(inputs: Sequence[onnx.ValueInfoProto], shapes: Inputs) -> dict[str, int]:
    """Free sizes by their names in the file: those of given shapes, then 1 for a batch."""
    sizes: dict[str, int] = {}
    for value in inputs:
        given, dims = shapes.get(value.name), value.type.tensor_type.shape.dim
        if given is not None and not isinstance(given, int | float) and len(given) == len(dims):
            named = zip(dims, given, strict=True)
            sizes |= {dim.dim_param: int(size) for dim, size in named if dim.dim_param}
    for value in inputs:
        dims = value.type.tensor_type.shape.dim
        if len(dims) > 1 and dims[0].dim_param:
            sizes.setdefault(dims[0].dim_param, 1)
    return sizes


def _always(path: Path, value: onnx.ValueInfoProto, number: float) -> onnx.TensorProto:
    """An input as a constant: the same number everywhere, of its type."""
    shape = [max(dim.dim_value, 1) for dim in value.type.tensor_type.shape.dim]
    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    array = np.full(shape, number).astype(kind)
    if not np.all(array == number):
        raise ModelError(f"input {value.name!r} of {path} is {kind}, and cannot be {number}")
    return numpy_helper.from_array(array, value.name)


def _forget_shapes(model: onnx.ModelProto) -> None:
    """They may be stale, and nothing tells which: shapes follow from those of the inputs."""
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _fix_input_shape(
    path: Path, model: onnx.ModelProto, value: onnx.ValueInfoProto, shape: Sequence[int] | None
) -> None:
    declared = value.type.tensor_type.shape.dim
    if shape is not None and not value.type.tensor_type.HasField("shape"):
        for _ in shape:  # not even their number is known
            declared.add()
    if shape is None:
        dims = [dim.dim_value for dim in declared]
        if len(dims) > 1 and dims[0] <= 0:
            dims[0] = 1  # a free batch is one
        if (assumed := _picture(dims)) != dims:
            dims = assumed
            note(
                model,
                f"input {value.name!r} of {path.name} has free sides: they are those of a camera's "
                f"picture, shapes={{{value.name!r}: {dims}}}",
            )
    elif len(shape) != len(declared) or not all(
        isinstance(size, int | np.integer) for size in shape
    ):
        raise ModelError(
            f"shape {list(shape)} does not fit input {value.name!r} of {path}, "
            f"which has {len(declared)} dimensions"
        )
    else:
        dims = [int(size) for size in shape]
    if any(size <= 0 for size in dims):
        free = [dim.dim_param or dim.dim_value for dim in declared]
        such = [1, 3, _HEIGHT, _WIDTH] if len(dims) == 4 else [max(size, 1) for size in dims]
        raise ModelError(
            f"input {value.name!r} of {path} has free or empty dimensions "
            f"{free if shape is None else dims}: choose a shape, "
            f"such as shapes={{{value.name!r}: {such}}}"
        )
    for dim, size in zip(declared, dims, strict=True):
        dim.dim_value = size


def _picture(dims: list[int]) -> list[int]:
    """Sizes of pictures whose sides are free: the usual camera's."""
    free = [index for index, size in enumerate(dims) if size <= 0]
    if len(dims) == 4 and free == [2, 3] and dims[1] in (1, 3, 4):
        return [*dims[:2], _HEIGHT, _WIDTH]
    if len(dims) == 4 and free == [1, 2] and dims[3] in (1, 3, 4):
        return [dims[0], _HEIGHT, _WIDTH, dims[3]]
    return dims


def _refuse_unsupported(path: Path, model: onnx.ModelProto, opset: int) -> None:
    functions = {(item.domain, item.name) for item in model.functions}
    for index, node in control_flow.nodes_of(model.graph):
        where = control_flow.where(path, index, node)
        if (node.domain, node.op_type) in functions:
            continue
        if node.domain not in _DOMAINS:
            raise ModelError(f"{where}: no engine knows the ops of domain {node.domain!r}")
        standard = node.domain in ("", "ai.onnx")
        if standard and not onnx.defs.has(node.op_type, max_inclusive_version=opset):
            raise ModelError(f"{where}: ONNX opset {opset} has no such op")


def _simplify(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """Constants are folded as shapes are inferred, so that the size of each is known before;
    batch norms and no-ops are folded by onnxruntime's basic optimiser."""
    _name_nodes(model)
    metadata = list(model.metadata_props)
    model = inference.infer(path, model)
    _give_outputs_producers(model)
    try:
        model, found = _optimised(model)
    except Exception as error:
        # onnxruntime raises a dozen types of its own; its message names the node
        raise ModelError(f"model {path} cannot be loaded: {first_line(error)}") from error
    model = inference.infer(path, model)
    _give_outputs_producers(model)
    _name_nodes(model)
    _compare(path, model, found)
    del model.metadata_props[:]
    model.metadata_props.extend(metadata)
    return model


def _compare(path: Path, model: onnx.ModelProto, found: Mapping[str, tuple[int, ...]]) -> None:
    """Raise OnlyWholeError where onnxruntime infers another shape than ONNX, and computes it."""
    makers = {name: node for node in model.graph.node for name in node.output}
    for value in [*model.graph.value_info, *model.graph.output]:
        shape = tuple(_dims(value))
        if found.get(value.name, shape) != shape and value.name in makers:
            node = makers[value.name]
            raise OnlyWholeError(
                f"node {node.name!r} ({node.op_type}) of {path}: ONNX gives its output the shape "
                f"{list(shape)}, onnxruntime {list(found[value.name])}"
            )


def _optimised(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, tuple[int, ...]]]:
    """What onnxruntime makes of the model, and the shapes that it infers."""
    _forget_shapes(model)  # those of its own are wanted
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        open_session(model, simplified=target)
        made = onnx.load(target)
    values = [*made.graph.value_info, *made.graph.output]
    shapes = {value.name: fixed_shape(value.type) for value in values}
    return made, {name: shape for name, shape in shapes.items() if shape is not None}


def _name_nodes(model: onnx.ModelProto) -> None:
    """Every node gets a name of its own, in the model too, so that engines can point to it."""
    taken: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = node_name(index, node)
        while name in taken:
            name = f"{name}_{index}"
        taken.add(name)
        node.name = name


def _give_outputs_producers(model: onnx.ModelProto) -> None:
    """An output that is a constant or an input (priors of a detector) is copied by an Identity,
    so that every output is written by a node."""
    written = {name for node in model.graph.node for name in node.output}
    for value in model.graph.output:
        if value.name in written:
            continue
        source = f"{value.name}__source"
        for item in [*model.graph.initializer, *model.graph.input]:
            if item.name == value.name:
                item.name = source
        for node in model.graph.node:
            for index, name in enumerate(node.input):
                if name == value.name:
                    node.input[index] = source
        model.graph.node.append(helper.make_node("Identity", [source], [value.name]))
