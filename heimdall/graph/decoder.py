"""Language models as exporters write them, made static: a cache of fixed length, tokens by steps.

A file of optimum's or of onnxruntime-genai's takes tokens and the keys and values of those before
(``past_key_values.0.key``...), and returns these with the new ones behind (``present.0.key``...):
tensors that grow, copied at each step. Here past and present are of one size, ``context`` rows, and
onnxruntime's operator GroupQueryAttention writes the new rows in their places. Inputs are then:

- ``input_ids``: int64 (1, rows);
- ``position_ids``, where the file has it: (1, rows), float32 if they are only turned into angles,
  else int64;
- ``seqlens_k``: int32 (1,), the tokens behind the last row, less one;
- ``total_sequence_length``: int32 (1,), all tokens;
- the past, float32 (1, heads of keys, context, size of a head).

Attention must be causal and nothing else, which is tried: a file's own mask is left out.
``rows`` > 1 is a piece of a prompt, whose logits nobody needs: it makes the cache alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import decoder_names as known
from heimdall.graph import decoder_trial, inference
from heimdall.graph.decoder_attention import join_attention
from heimdall.graph.sessions import first_line
from heimdall.graph.values import attributes_of, keep_named, opset_of

CONTEXT = "context"  # a number among shapes: how many tokens the cache holds


def is_decoder(model: onnx.ModelProto) -> bool:
    """Does it take tokens, and the keys and values of those before?"""
    names = {value.name for value in model.graph.input}
    return known.TOKENS in names and any(map(known.PAST.fullmatch, names))


def input_shapes(
    path: Path, model: onnx.ModelProto, shapes: Mapping[str, Any]
) -> dict[str, Sequence[int]]:
    """All shapes of a decoder's inputs, from that of its tokens (by default one) and ``CONTEXT``.
    Raises ModelError for what is no decoder, or has no room for its tokens."""
    if not is_decoder(model):
        raise ModelError(
            f"model {path} has no {CONTEXT}: it is no language model with a cache, as exporters "
            f"write them ({known.TOKENS}, past_key_values.0.key...)"
        )
    context, rows = shapes[CONTEXT], tuple(shapes.get(known.TOKENS, (1, 1)))
    if len(rows) != 2 or rows[0] != 1:
        raise ModelError(f"{known.TOKENS} of {path} must be of shape (1, tokens), not {list(rows)}")
    if int(context) != context or context < 2 * rows[1]:
        raise ModelError(
            f"a {CONTEXT} of {context} for {path} is too short, or no whole number: steps of "
            f"{rows[1]} tokens need at least {2 * rows[1]}"
        )
    _tell_heads(path, model)
    found: dict[str, Sequence[int]] = {}
    for value in model.graph.input:
        if known.PAST.fullmatch(value.name):
            heads, size = _heads(value)
            found[value.name] = (1, heads, int(context), size)
        elif value.name == known.MASK:
            found[value.name] = (1, int(context) + rows[1])
        elif value.name in (known.TOKENS, known.POSITIONS):
            found[value.name] = rows
        else:
            raise ModelError(f"input {value.name!r} of {path} is not known of language models")
    return found


def _tell_heads(path: Path, model: onnx.ModelProto) -> None:
    """How large heads are, where a file does not say it of the past: the queries' width does.
    Raises ModelError where that is not known either."""
    past = [value for value in model.graph.input if known.PAST.fullmatch(value.name)]
    unknown = {value.name for value in past if not all(_heads(value))}
    if not unknown:
        return
    nodes = [node for node in model.graph.node if node.op_type == known.ATTENTION]
    try:
        session, _ = decoder_trial.part(model, [node.input[0] for node in nodes])
        for node, query in zip(nodes, session.get_outputs(), strict=True):
            get, packed = attributes_of(node), not node.input[1]  # one tensor with keys and values
            parts = get["num_heads"] + 2 * get["kv_num_heads"] * packed
            for value in past:
                if value.name in node.input[3:5]:
                    dims = value.type.tensor_type.shape.dim
                    dims[1].dim_value = get["kv_num_heads"]
                    dims[3].dim_value = query.shape[-1] // parts
                    unknown.discard(value.name)
    except Exception as error:  # onnxruntime raises a dozen types of its own
        raise ModelError(
            f"the heads' sizes of {path} are not known: {first_line(error)}"
        ) from error
    if unknown:
        raise ModelError(f"input {min(unknown)!r} of {path} does not tell its heads' sizes")


def _heads(past: onnx.ValueInfoProto) -> tuple[int, int]:
    """How many there are, and their size; 0 where the file does not say it."""
    sizes = [dim.dim_value for dim in past.type.tensor_type.shape.dim]
    return (sizes[1], sizes[3]) if len(sizes) == 4 else (0, 0)


def rewrite(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a cache of fixed length; its inputs have the shapes of ``input_shapes``.
    Raises ModelError, naming the layer, where its attention is not understood, and for one that
    would then compute something else. The one given is not to be used any more."""
    _check_room(path, model)
    trial = decoder_trial.Trial(path, model, _rows(model))
    if not any(node.op_type == known.ATTENTION for node in model.graph.node):
        file, model = model, inference.infer(path, model)
        join_attention(path, model, file)
        file.Clear()  # its weights, before those of the new one are copied
    for name in (known.SEEN, known.TOTAL):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT32, [1]))
    for node in model.graph.node:
        if node.op_type == known.ATTENTION:
            node.input[5], node.input[6] = known.SEEN, known.TOTAL
    if _rows(model) > 1:
        kept = [value for value in model.graph.output if value.name != known.LOGITS]
        del model.graph.output[:]
        model.graph.output.extend(kept)
    _drop_dead(model)
    _drop_queries(model)
    _float_positions(model)
    _import_microsoft(model)
    del model.graph.value_info[:]
    trial.check(model)
    return model


def _rows(model: onnx.ModelProto) -> int:
    (tokens,) = (value for value in model.graph.input if value.name == known.TOKENS)
    return int(tokens.type.tensor_type.shape.dim[1].dim_value)


def _check_room(path: Path, model: onnx.ModelProto) -> None:
    """Raise ModelError where a table of the file's has fewer positions than the cache."""
    graph = model.graph
    past = next(value for value in graph.input if known.PAST.fullmatch(value.name))
    context = past.type.tensor_type.shape.dim[2].dim_value
    rows = {item.name: item.dims[0] for item in graph.initializer if item.dims}
    for node in graph.node:
        turned = node.op_type == known.ATTENTION and len(node.input) > 7
        picked = node.op_type == "Gather" and node.input[1] == known.POSITIONS
        table = node.input[7] if turned else node.input[0] if picked else ""
        if rows.get(table, context) < context:
            raise ModelError(
                f"a {CONTEXT} of {context} for {path} is too long: it has {rows[table]} positions"
            )


def _import_microsoft(model: onnx.ModelProto) -> None:
    if all(each.domain != known.MICROSOFT for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(known.MICROSOFT, 1))


def _drop_dead(model: onnx.ModelProto) -> None:
    """Nodes that nobody reads any more, and inputs that only they read."""
    needed, kept = {value.name for value in model.graph.output}, []
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del model.graph.node[:]
    model.graph.node.extend(reversed(kept))
    for listed in (model.graph.input, model.graph.initializer):
        keep_named(listed, needed)


def _drop_queries(model: onnx.ModelProto) -> None:
    """Those whose attention nobody reads, in the last layer of what only makes the cache: zeros
    are as good, and the nodes that would make them go."""
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    read.update(value.name for value in graph.output)
    for node in graph.node:
        if node.op_type != known.ATTENTION or node.output[0] in read or not node.input[1]:
            continue
        size = attributes_of(node)["num_heads"] * _size(graph, node.input[3])
        zeros = numpy_helper.from_array(
            np.zeros((1, _rows(model), size), np.float32), f"{node.output[0]}/nobody"
        )
        graph.initializer.append(zeros)
        node.input[0] = zeros.name
    _drop_dead(model)


def _size(graph: onnx.GraphProto, past: str) -> int:
    """Of a head, by the input that holds those before."""
    (value,) = (each for each in graph.input if each.name == past)
    return int(value.type.tensor_type.shape.dim[3].dim_value)


def _float_positions(model: onnx.ModelProto) -> None:
    """Positions are only turned into angles: given as floats no integers are computed with."""
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)

    def becomes_float(name: str) -> bool:
        return all(
            node.op_type == "Cast" and attributes_of(node)["to"] == TensorProto.FLOAT
            if node.op_type == "Cast"
            else node.op_type in known.VIEWS and becomes_float(node.output[0])
            for node in readers.get(name, ())
        )

    for value in model.graph.input:
        if value.name == known.POSITIONS and becomes_float(known.POSITIONS):
            value.type.tensor_type.elem_type = TensorProto.FLOAT


# --- onnxruntime-genai's form ---------------------------------------------------------------------


def without_norms(model: onnx.ModelProto) -> None:
    """Make onnxruntime's own normalisations by length operators that every engine knows."""
    graph, nodes = model.graph, list[onnx.NodeProto]()
    for node in graph.node:
        if node.op_type in ("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"):
            nodes += _norm(node, graph, opset_of(model))
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)


def _norm(node: onnx.NodeProto, graph: onnx.GraphProto, opset: int) -> Iterator[onnx.NodeProto]:
    x, scale, prefix = node.input[0], node.input[-1], f"{node.output[0]}/"
    if node.op_type.startswith("Skip"):
        scale, total = node.input[2], (*node.output, "", "", "")[3] or f"{prefix}sum"
        yield helper.make_node("Add", list(node.input[:2]), [total], f"{prefix}Add")
        x = total
        if len(node.input) > 3 and node.input[3]:
            raise ModelError(f"node {node.name!r} ({node.op_type}) has a bias: not supported")
    epsilon = np.float32(attributes_of(node).get("epsilon", 1e-5))
    numbers = {"two": np.float32(2), "epsilon": epsilon, "axes": np.array([-1], np.int64)}
    for name, number in numbers.items():
        graph.initializer.append(numpy_helper.from_array(np.asarray(number), prefix + name))
    yield helper.make_node("Pow", [x, f"{prefix}two"], [f"{prefix}squares"], f"{prefix}Pow")
    given: list[str] = [f"{prefix}axes"] if opset >= 18 else []
    axes: dict[str, Any] = {} if given else {"axes": [-1]}
    yield helper.make_node(
        "ReduceMean", [f"{prefix}squares", *given], [f"{prefix}mean"], f"{prefix}Mean", **axes
    )
    steps = [
        ("Add", [f"{prefix}mean", f"{prefix}epsilon"], "shifted"),
        ("Sqrt", [f"{prefix}shifted"], "length"),
        ("Div", [x, f"{prefix}length"], "unit"),
    ]
    for kind, inputs, output in steps:
        yield helper.make_node(kind, inputs, [prefix + output], prefix + output)
    yield helper.make_node("Mul", [f"{prefix}unit", scale], [node.output[0]], f"{prefix}Mul")
