"""Reading an ONNX file: bytes to a checked, simplified model with fixed shapes.

Reading fixes free dimensions, checks opsets and ops, and lets onnxruntime's *basic* optimiser
fold constants, batch norms and no-ops. That pass keeps standard ONNX operators and node names,
so op names of every engine still lead back to the file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx import helper, numpy_helper, shape_inference

from heimdall.errors import ModelError

OPSETS = range(9, 24)
_CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}
_QUANTISED = {"ConvInteger", "MatMulInteger", "MatMulIntegerToFloat", "MatMulNBits", "MatMulBnb4"}
_QUANTISED |= {"QGemm", "QAttention", "QMoE", "QOrderedMatMul"}
_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}  # what onnxruntime can run
_MAX_CONSTANT_BYTES = 2**31  # what one protobuf message can hold


def read_model(
    path: Path, raw: bytes, shapes: Mapping[str, Sequence[int]] | Sequence[int] | None
) -> tuple[onnx.ModelProto, int]:
    """The simplified model and its opset; every node is named and every output is written by a
    node. Raises ModelError as ``graph.load_graph`` says."""
    model = _parse(path, raw)
    opset = _checked_opset(path, model)
    _refuse_unsupported(path, model)
    model = _read_payload(path, model)
    _drop_overridable_constants(model)
    _fix_input_shapes(path, model, shapes)
    return _simplify(path, model), opset


def _parse(path: Path, raw: bytes) -> onnx.ModelProto:
    if not raw:
        raise ModelError(f"model {path} is empty")
    try:
        model = onnx.load_model_from_string(raw)
    except Exception as error:  # protobuf raises types of its own
        raise ModelError(
            f"model {path} is not an ONNX file, or is truncated: {_first_line(error)}"
        ) from error
    if not model.graph.node:
        raise ModelError(f"model {path} has no nodes: it is corrupt or not an ONNX model")
    return model


def _read_payload(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """External data (only from the model's own folder), then the official checker."""
    try:
        onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
        onnx.checker.check_model(model)
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
    except Exception as error:
        # the checker, the inliner and external data each raise types of their own
        raise ModelError(f"model {path} is not a valid ONNX file: {_first_line(error)}") from error
    return model


def _drop_overridable_constants(model: onnx.ModelProto) -> None:
    """Weights that are listed as inputs too (IR version 3, older exporters) become constants.

    Left as they are, onnxruntime must expect them to be replaced at run time and folds
    nothing, and shape inference ignores those that are not listed.
    """
    constants = {item.name for item in model.graph.initializer}
    kept = [value for value in model.graph.input if value.name not in constants]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.ir_version = max(model.ir_version, 4)


def _checked_opset(path: Path, model: onnx.ModelProto) -> int:
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    opset = versions.get("ai.onnx", 0)
    if opset not in OPSETS:
        raise ModelError(
            f"model {path} uses ONNX opset {opset}; supported are {OPSETS.start} to "
            f"{OPSETS.stop - 1}. Convert it with onnx.version_converter."
        )
    return opset


def _dims(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _fix_input_shapes(
    path: Path,
    model: onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | Sequence[int] | None,
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
    for value in inputs:
        if not value.type.HasField("tensor_type"):
            raise ModelError(f"input {value.name!r} of {path} is not a tensor")
        _fix_input_shape(path, value, shapes.get(value.name))
    if shapes or any(not all(_dims(value)) for value in model.graph.output):
        _forget_shapes(model)


def _forget_shapes(model: onnx.ModelProto) -> None:
    """Stale: they are inferred again from what has changed."""
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def _fix_input_shape(path: Path, value: onnx.ValueInfoProto, shape: Sequence[int] | None) -> None:
    declared = value.type.tensor_type.shape.dim
    if shape is None:
        dims = [dim.dim_value for dim in declared]
        if len(dims) == 4 and dims[0] <= 0:
            dims[0] = 1  # a free batch dimension is one image
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
        raise ModelError(
            f"input {value.name!r} of {path} has free or empty dimensions "
            f"{free if shape is None else dims}: choose a shape, "
            f"e.g. shapes={{{value.name!r}: [1, 3, 480, 640]}}"
        )
    for dim, size in zip(declared, dims, strict=True):
        dim.dim_value = size


def _refuse_unsupported(path: Path, model: onnx.ModelProto) -> None:
    if model.graph.sparse_initializer:
        name = model.graph.sparse_initializer[0].values.name
        raise ModelError(f"model {path}: sparse tensor {name!r} is not supported; make it dense")
    versions = {entry.domain: entry.version for entry in model.opset_import}
    opset = versions.get("", versions.get("ai.onnx", 0))
    functions = {(item.domain, item.name) for item in model.functions}
    for index, node in enumerate(model.graph.node):
        where = f"node {_node_name(index, node)!r} ({node.op_type}) of {path}"
        if node.op_type in _CONTROL_FLOW:
            raise ModelError(f"{where}: control flow is not supported; export without it")
        named = "quantize" in node.op_type.lower() or node.op_type.startswith("QLinear")
        if named or node.op_type in _QUANTISED:
            raise ModelError(f"{where}: quantised networks are not supported; export in float32")
        if any(item.name == "sparse_value" for item in node.attribute):
            raise ModelError(f"{where}: sparse tensors are not supported; make it dense")
        if (node.domain, node.op_type) in functions:
            continue
        if node.domain not in _DOMAINS:
            raise ModelError(f"{where}: nobody here knows the ops of domain {node.domain!r}")
        standard = node.domain in ("", "ai.onnx")
        if standard and not onnx.defs.has(node.op_type, max_inclusive_version=opset):
            raise ModelError(f"{where}: ONNX opset {opset} has no such op")


def _expand_constant_fills(path: Path, model: onnx.ModelProto) -> bool:
    """ConstantOfShape of a known shape becomes a constant; true if there was one.

    onnxruntime leaves these, and with them every weight that is built that way (the light
    classics of the onnx wheel).
    """
    known = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            known[node.output[0]] = node.attribute[0].t
    fills = [
        node
        for node in model.graph.node
        if node.op_type == "ConstantOfShape" and node.input[0] in known
    ]
    for node in fills:
        shape = numpy_helper.to_array(known[node.input[0]])
        value = numpy_helper.to_array(node.attribute[0].t) if node.attribute else np.zeros(1, "f4")
        if (shape < 0).any() or np.prod(shape, dtype=float) * value.itemsize > _MAX_CONSTANT_BYTES:
            raise ModelError(
                f"node {node.name or node.output[0]!r} (ConstantOfShape) of {path}: "
                f"shape {shape.tolist()} is not possible"
            )
        filled = np.full(shape, value.reshape(-1)[0], value.dtype)
        model.graph.initializer.append(numpy_helper.from_array(filled, node.output[0]))
        model.graph.node.remove(node)
    return bool(fills)


def _simplify(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """Constant folding and batch-norm fusion by onnxruntime's basic optimiser, until nothing
    changes: a shape folded in one pass may make a constant that the next one can fold."""
    _name_nodes(model)
    _expand_constant_fills(path, model)
    try:
        model = _optimised(model)
        while _expand_constant_fills(path, model):
            model = _optimised(model)
        _give_outputs_producers(model)
        _name_nodes(model)
        model = shape_inference.infer_shapes(model, data_prop=True)
        while _drop_windows_outside(model):
            _forget_shapes(model)
            model = shape_inference.infer_shapes(model, data_prop=True)
        return model
    except ModelError:
        raise
    except Exception as error:
        # onnxruntime raises a dozen types of its own; its message names the node
        raise ModelError(f"model {path} cannot be loaded: {_first_line(error)}") from error


def _drop_windows_outside(model: onnx.ModelProto) -> bool:
    """Pools in ceil mode whose last window would start behind the picture: shape inference of
    older opsets counts it, onnxruntime (and PyTorch) do not. The first such pool gets pads that
    end before it; true if there was one."""
    known = {value.name: _dims(value) for value in [*model.graph.input, *model.graph.value_info]}
    outputs = {value.name: _dims(value) for value in model.graph.output}
    for node in model.graph.node:
        attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        pool = node.op_type in ("MaxPool", "AveragePool") and not node.domain
        if not pool or not attributes.get("ceil_mode", 0):
            continue
        if attributes.get("auto_pad", b"NOTSET").startswith(b"SAME"):  # says the size by itself
            _set_attributes(node, ceil_mode=0)
            return True
        if attributes.get("count_include_pad", 0) and any(attributes.get("pads", ())):
            continue  # what is counted would change
        size = known.get(node.input[0], [])[2:]
        found = (known | outputs).get(node.output[0], [])[2:]
        if not size or not found:
            continue
        pads = _pads_of_windows_inside(attributes, size, found)
        if pads is not None:
            _set_attributes(node, auto_pad=0, ceil_mode=0, count_include_pad=0, pads=pads)
            return True
    return False


def _set_attributes(node: onnx.NodeProto, **values: Any) -> None:
    """Attributes that are zero are left out: not every opset knows them."""
    kept = [item for item in node.attribute if item.name not in values]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(k, v) for k, v in values.items() if v)


def _pads_of_windows_inside(
    attributes: Mapping[str, Any], size: Sequence[int], found: Sequence[int]
) -> list[int] | None:
    """Pads that floor mode needs for the windows which start inside; None if all of them do."""
    rank, kernel = len(size), attributes["kernel_shape"]
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    pads = list(attributes.get("pads", [0] * (2 * rank)))
    outside = False
    for axis in range(rank):
        inside, count = size[axis] + pads[axis], found[axis]
        if (count - 1) * strides[axis] >= inside:
            outside, count = True, count - 1
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        pads[axis + rank] = max(0, (count - 1) * strides[axis] + reach - inside)
    return pads if outside else None


def _optimised(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # its errors arrive as exceptions
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.onnx"
        options.optimized_model_filepath = str(target)
        ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return onnx.load(target)


def _name_nodes(model: onnx.ModelProto) -> None:
    """Every node gets a name of its own, in the model too, so that engines can point to it."""
    taken: set[str] = set()
    for index, node in enumerate(model.graph.node):
        name = _node_name(index, node)
        while name in taken:
            name = f"{name}_{index}"
        taken.add(name)
        node.name = name


def _node_name(index: int, node: onnx.NodeProto) -> str:
    return node.name or f"{node.op_type}_{index}"


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


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
