"""Language models as exporters write them, made static: a cache of fixed length, some tokens a step.

A file of optimum's or of onnxruntime-genai's takes tokens and the keys and values of those before
(``past_key_values.0.key``...), and returns these with the new ones behind (``present.0.key``...):
tensors that grow, copied at each step. Here past and present are of one size, ``context`` rows, and
onnxruntime's operator GroupQueryAttention writes the new rows in their places. Inputs are then:

- ``input_ids``: int64 (1, rows);
- ``position_ids``, where the file has it: float32 (1, rows);
- ``seqlens_k``: int32 (1,), the tokens behind the last row, less one;
- ``total_sequence_length``: int32 (1,), all tokens;
- the past, float32 (1, heads of keys, context, size of a head).

Attention must be causal and nothing else: a file's own mask is left out. ``rows`` > 1 is a piece of
a prompt, whose logits nobody needs: it makes the cache alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import inference
from heimdall.graph.sessions import open_session
from heimdall.graph.values import attributes_of, fixed_shape

CONTEXT = "context"  # a number among shapes: how many tokens the cache holds
TOKENS, POSITIONS, MASK, LOGITS = "input_ids", "position_ids", "attention_mask", "logits"
SEEN, TOTAL = "seqlens_k", "total_sequence_length"

_PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")
_MICROSOFT = "com.microsoft"
_ATTENTION = "GroupQueryAttention"
_VIEWS = {"Unsqueeze", "Squeeze", "Expand", "Reshape", "Transpose", "Identity", "Cast"}
_BETWEEN = {"Add", "Softmax", "IsNaN", "Where", "Identity", "Cast"}


def is_decoder(model: onnx.ModelProto) -> bool:
    """Does it take tokens, and the keys and values of those before?"""
    names = {value.name for value in model.graph.input}
    return TOKENS in names and any(map(_PAST.fullmatch, names))


def input_shapes(
    path: Path, model: onnx.ModelProto, shapes: Mapping[str, Any]
) -> dict[str, Sequence[int]]:
    """All shapes of a decoder's inputs, from that of its tokens (by default one) and ``CONTEXT``.
    Raises ModelError for what is no decoder, or has no room for its tokens."""
    if not is_decoder(model):
        raise ModelError(
            f"model {path} has no {CONTEXT}: it is no language model with a cache, as exporters "
            f"write them ({TOKENS}, past_key_values.0.key...)"
        )
    context, rows = shapes[CONTEXT], tuple(shapes.get(TOKENS, (1, 1)))
    if len(rows) != 2 or rows[0] != 1:
        raise ModelError(f"{TOKENS} of {path} must be of shape (1, tokens), not {list(rows)}")
    if int(context) != context or context < 2 * rows[1]:
        raise ModelError(
            f"a {CONTEXT} of {context} for {path} is too short, or no whole number: steps of "
            f"{rows[1]} tokens need at least {2 * rows[1]}"
        )
    found: dict[str, Sequence[int]] = {}
    for value in model.graph.input:
        if _PAST.fullmatch(value.name):
            _, heads, _, size = (dim.dim_value for dim in value.type.tensor_type.shape.dim)
            if heads < 1 or size < 1:
                raise ModelError(f"input {value.name!r} of {path} does not tell its heads' sizes")
            found[value.name] = (1, heads, int(context), size)
        elif value.name == MASK:
            found[value.name] = (1, int(context) + rows[1])
        elif value.name in (TOKENS, POSITIONS):
            found[value.name] = rows
        else:
            raise ModelError(f"input {value.name!r} of {path} is not known of language models")
    return found


def rewrite(path: Path, model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a cache of fixed length; its inputs have the shapes of ``input_shapes``.
    Raises ModelError, naming the layer, where its attention is not understood."""
    if not any(node.op_type == _ATTENTION for node in model.graph.node):
        model = inference.infer(path, model)
        _Graph(path, model).join_attention()
    for name in (SEEN, TOTAL):
        model.graph.input.append(helper.make_tensor_value_info(name, TensorProto.INT32, [1]))
    for node in model.graph.node:
        if node.op_type == _ATTENTION:
            node.input[5], node.input[6] = SEEN, TOTAL
    if _rows(model) > 1:
        kept = [value for value in model.graph.output if value.name != LOGITS]
        del model.graph.output[:]
        model.graph.output.extend(kept)
    _drop_dead(model)
    _drop_queries(model)
    _float_positions(model)
    _import_microsoft(model)
    del model.graph.value_info[:]
    return model


def _rows(model: onnx.ModelProto) -> int:
    (tokens,) = (value for value in model.graph.input if value.name == TOKENS)
    return int(tokens.type.tensor_type.shape.dim[1].dim_value)


def _import_microsoft(model: onnx.ModelProto) -> None:
    if all(each.domain != _MICROSOFT for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_MICROSOFT, 1))


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
        used = [each for each in listed if each.name in needed]
        del listed[:]  # type: ignore[attr-defined]
        listed.extend(used)  # type: ignore[arg-type]


def _drop_queries(model: onnx.ModelProto) -> None:
    """Those whose attention nobody reads, in the last layer of what only makes the cache: zeros
    are as good, and the nodes that would make them go."""
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    read.update(value.name for value in graph.output)
    for node in graph.node:
        if node.op_type != _ATTENTION or node.output[0] in read or not node.input[1]:
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
            else node.op_type in _VIEWS and becomes_float(node.output[0])
            for node in readers.get(name, ())
        )

    for value in model.graph.input:
        if value.name == POSITIONS and becomes_float(POSITIONS):
            value.type.tensor_type.elem_type = TensorProto.FLOAT


# --- onnxruntime-genai's form ---------------------------------------------------------------------


def without_norms(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnxruntime's own normalisations by length, as operators that every engine knows."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node in model.graph.node:
        if node.op_type in ("SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"):
            made.graph.node.extend(_norm(node, made.graph))
        else:
            made.graph.node.append(node)
    return made


def _norm(node: onnx.NodeProto, graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
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
    yield helper.make_node(
        "ReduceMean", [f"{prefix}squares"], [f"{prefix}mean"], f"{prefix}Mean", axes=[-1]
    )
    steps = [
        ("Add", [f"{prefix}mean", f"{prefix}epsilon"], "shifted"),
        ("Sqrt", [f"{prefix}shifted"], "length"),
        ("Div", [x, f"{prefix}length"], "unit"),
    ]
    for kind, inputs, output in steps:
        yield helper.make_node(kind, inputs, [prefix + output], prefix + kind)
    yield helper.make_node("Mul", [f"{prefix}unit", scale], [node.output[0]], f"{prefix}Mul")


# --- optimum's form -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Attended:
    """Where a layer attends: names of its tensors."""

    query: str  # (1, heads, rows, size)
    made: str  # of the same shape
    scale: float


@dataclass(frozen=True)
class _Turned:
    """A tensor that was turned by its positions: what it was, and by which cosines and sines."""

    x: str
    cosines: str
    sines: str


class _Graph:
    """A model of known shapes, whose attention becomes one node a layer."""

    def __init__(self, path: Path, model: onnx.ModelProto) -> None:
        self._path, self._model = path, model
        self._shapes = {
            value.name: fixed_shape(value.type)
            for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]
        }
        self._constants = {item.name: item for item in model.graph.initializer}
        self._makers = {name: node for node in model.graph.node for name in node.output}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._tables: dict[tuple[str, str], list[str]] = {}  # of cosines and sines

    def join_attention(self) -> None:
        """Put GroupQueryAttention in the place of what each layer does."""
        found = (_PAST.fullmatch(each.name) for each in self._model.graph.input)
        layers = {each[1] for each in found if each}
        added: list[onnx.NodeProto] = []
        for layer in sorted(layers, key=int):
            try:
                added += self._joined(layer)
            except _OtherwiseError as otherwise:
                raise ModelError(
                    f"attention of layer {layer} of {self._path} is not understood: {otherwise}; "
                    "export the model with optimum or onnxruntime-genai, and plain causal attention"
                ) from None
        made = {name for node in added for name in node.output}
        nodes = [node for node in self._model.graph.node if made.isdisjoint(node.output)]
        del self._model.graph.node[:]
        self._model.graph.node.extend(_in_order([*nodes, *added]))

    def _joined(self, layer: str) -> Iterator[onnx.NodeProto]:
        past = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        present = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        (keys, key), (values, value) = map(self._joint, past, present)
        where = self._attended(keys, values)
        _, heads, rows, size = self._shape(where.query)
        kv_heads = self._shape(past[0])[1]
        query, factor = self._unscaled(where.query)
        turned = self._turned(query), self._turned(key)
        turns: list[str] = []
        if turned[0] and turned[1]:
            turns = self._turns(turned[0], turned[1])
        if turns and turned[0] and turned[1]:
            query, key = turned[0].x, turned[1].x
        flat = []
        for name, count in ((query, heads), (key, kv_heads), (value, kv_heads)):
            flat.append(self._flat(name) or f"{where.made}/{name}/joined")
            if flat[-1] not in self._makers:
                middle = f"{flat[-1]}/turned"
                yield helper.make_node("Transpose", [name], [middle], middle, perm=[0, 2, 1, 3])
                yield self._reshape(middle, flat[-1], (1, rows, count * size))
        end = self._joined_later(where.made)
        whole = end or f"{where.made}/whole"
        yield helper.make_node(
            _ATTENTION,
            [*flat, *past, SEEN, TOTAL, *turns],
            [whole, *present],
            f"layer {layer}/attention",
            domain=_MICROSOFT,
            num_heads=heads,
            kv_num_heads=kv_heads,
            scale=where.scale * factor,
            do_rotary=int(bool(turns)),
        )
        if not end:
            split = f"{where.made}/split"
            yield self._reshape(whole, split, (1, rows, heads, size))
            yield helper.make_node(
                "Transpose", [split], [where.made], f"{split}/back", perm=[0, 2, 1, 3]
            )

    # --- what stands around attention ---

    def _flat(self, name: str) -> str | None:
        """The tensor (1, rows, heads x size) whose heads were put first, where there is one."""
        turn = self._makers.get(name)
        if turn is None or turn.op_type != "Transpose" or not _swaps(turn):
            return None
        split = self._makers.get(turn.input[0])
        if split is None or split.op_type != "Reshape" or split.input[0] not in self._makers:
            return None
        heads, size = self._shape(name)[1::2]
        shape = self._shapes.get(split.input[0])
        return split.input[0] if shape == (1, self._shape(name)[2], heads * size) else None

    def _joined_later(self, made: str) -> str | None:
        """The tensor (1, rows, heads x size) that becomes of what is made, where nothing else
        does."""
        name = made
        for kind in ("Transpose", "Reshape"):
            readers = self._readers.get(name, [])
            if len(readers) != 1 or readers[0].op_type != kind:
                return None
            if kind == "Transpose" and not _swaps(readers[0]):
                return None
            name = readers[0].output[0]
        _, heads, rows, size = self._shape(made)
        return name if self._shapes.get(name) == (1, rows, heads * size) else None

    def _unscaled(self, name: str) -> tuple[str, float]:
        """What was multiplied by a number, and by which."""
        factor = 1.0
        while (node := self._makers.get(name)) is not None:
            found = [(each, self._factor(node, each)) for each in node.input]
            scaled = [(each, number) for each, number in found if number is not None]
            if len(scaled) != 1:
                break
            name, factor = scaled[0][0], factor * scaled[0][1]
        return name, factor

    def _turned(self, name: str) -> _Turned | None:
        """x * cosines + (-second half, first half of x) * sines (Su et al. 2021, by halves)."""
        total = self._makers.get(name)
        if total is None or total.op_type != "Add":
            return None
        parts = [self._makers.get(each) for each in total.input]
        if not all(part is not None and part.op_type == "Mul" for part in parts):
            return None
        for plain, crossed in (parts, parts[::-1]):
            for x, cosines in _both(plain.input):  # type: ignore[union-attr]
                for rolled, sines in _both(crossed.input):  # type: ignore[union-attr]
                    if self._is_rolled(rolled, x):
                        return _Turned(x, cosines, sines)
        return None

    def _is_rolled(self, name: str, x: str) -> bool:
        join = self._makers.get(name)
        if join is None or join.op_type != "Concat" or len(join.input) != 2:
            return False
        half = self._shape(x)[3] // 2
        minus = self._makers.get(join.input[0])
        if minus is None or minus.op_type != "Neg":
            return False
        return self._is_part(minus.input[0], x, half) and self._is_part(join.input[1], x, 0)

    def _is_part(self, name: str, x: str, start: int) -> bool:
        """Is it half of the numbers of x, along its last axis, from there on?"""
        node = self._makers.get(name)
        if node is None or node.input[0] != x:
            return False
        if node.op_type == "Split":
            return list(node.output).index(name) == (1 if start else 0)
        shape = self._shape(x)
        given = [self._constants.get(each) for each in node.input[1:4]]
        if node.op_type != "Slice" or len(given) < 3 or None in given:
            return False
        first, _, axes = (numpy_helper.to_array(each).tolist() for each in given)  # type: ignore[arg-type]
        half = self._shapes.get(name) == (*shape[:3], shape[3] // 2)
        return half and first == [start] and axes in ([3], [-1])

    def _turns(self, query: _Turned, key: _Turned) -> list[str]:
        """Tables of cosines and sines by position, new constants; none where they are no tables."""
        named = query.cosines, query.sines
        if named != (key.cosines, key.sines):
            return []
        if named not in self._tables:
            self._tables[named] = self._tabled(named)
        return self._tables[named]

    def _tabled(self, named: tuple[str, str]) -> list[str]:
        (tokens,) = (each for each in self._model.graph.input if each.name == TOKENS)
        rows = tokens.type.tensor_type.shape.dim[1].dim_value
        context = next(self._shape(each.name)[2] for each in self._inputs_past())
        needed, nodes = set(named), []
        for node in reversed(self._model.graph.node):
            if needed.intersection(node.output):
                nodes.append(node)
                needed.update(node.input)
        given = [each for each in self._model.graph.input if each.name in needed]
        if [each.name for each in given] != [POSITIONS]:
            return []
        part = helper.make_graph(
            nodes[::-1],
            "turns",
            given,
            [onnx.ValueInfoProto(name=name) for name in named],
            [item for item in self._model.graph.initializer if item.name in needed],
        )
        session = open_session(
            helper.make_model(
                part, opset_imports=self._model.opset_import, ir_version=self._model.ir_version
            )
        )
        found: list[list[np.ndarray]] = []
        for start in range(0, context, rows):
            places = np.arange(start, start + rows, dtype=np.int64)[None]
            made = session.run(list(named), {POSITIONS: places})
            found.append([each.reshape(rows, -1) for each in made])
        names = []
        for name, parts in zip(named, zip(*found, strict=True), strict=True):
            whole = np.concatenate(parts)[:context]
            half = whole.shape[1] // 2
            if not np.array_equal(whole[:, :half], whole[:, half:]):
                return []
            names.append(f"{name}/table")
            table = numpy_helper.from_array(np.ascontiguousarray(whole[:, :half]), names[-1])
            self._model.graph.initializer.append(table)
        return names

    def _inputs_past(self) -> Iterator[onnx.ValueInfoProto]:
        return (each for each in self._model.graph.input if _PAST.fullmatch(each.name))

    def _reshape(self, x: str, y: str, shape: Sequence[int]) -> onnx.NodeProto:
        item = numpy_helper.from_array(np.array(shape, np.int64), f"{y}/shape")
        self._model.graph.initializer.append(item)
        self._constants[item.name] = item
        return helper.make_node("Reshape", [x, item.name], [y], y)

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = self._shapes.get(name)
        if shape is None or len(shape) != 4:
            raise _OtherwiseError(f"{name!r} is no tensor of heads")
        return shape

    def _joint(self, past: str, present: str) -> tuple[str, str]:
        """What a layer reads of all keys, or values, and what it puts behind those before."""
        name = present
        while (node := self._makers.get(name)) is not None and node.op_type == "Identity":
            name = node.input[0]
        if node is None or node.op_type != "Concat" or list(node.input)[:1] != [past]:
            raise _OtherwiseError(f"{present!r} is not {past!r} with what is new behind it")
        if len(node.input) != 2 or attributes_of(node)["axis"] not in (2, -2):
            raise _OtherwiseError(f"{present!r} is not one longer along its third axis")
        return name, node.input[1]

    def _attended(self, key: str, value: str) -> _Attended:
        """From the keys to their product with queries, from there to that with values."""
        scores, scale = self._product(key, place=1)
        query = scores.input[0]
        made, later = self._product(scores.output[0], place=0, through=_BETWEEN)
        values, _ = self._product(value, place=1)
        if values is not made:
            raise _OtherwiseError(f"{made.name!r} is no product with the layer's values")
        return _Attended(query, made.output[0], scale * later)

    def _product(
        self, name: str, place: int, through: set[str] | None = None
    ) -> tuple[onnx.NodeProto, float]:
        """The one product that a tensor ends in as that input, and by what it is scaled on its
        way."""
        scale, seen, ends = 1.0, {name}, []
        pending = [name]
        while pending:
            here = pending.pop()
            for node in self._readers.get(here, ()):
                if node.op_type == "MatMul" and node.input[place] == here:
                    ends.append(node)
                    continue
                factor = self._factor(node, here)
                if factor is None and node.op_type not in (through or _VIEWS):
                    raise _OtherwiseError(f"{node.op_type} ({node.name!r}) on the way")
                scale *= 1.0 if factor is None else factor
                fresh = [each for each in node.output if each and each not in seen]
                seen.update(fresh)
                pending += fresh
        if len({id(node) for node in ends}) != 1:
            raise _OtherwiseError(f"{name!r} ends in {len(ends)} products")
        return ends[0], scale

    def _factor(self, node: onnx.NodeProto, name: str) -> float | None:
        """What a node multiplies a tensor by; None: it does not, or not by one number."""
        if node.op_type not in ("Mul", "Div") or node.input[0] == node.input[1]:
            return None
        other = node.input[1] if node.input[0] == name else node.input[0]
        item = self._constants.get(other)
        if item is None or math.prod(item.dims) != 1:
            return None
        number = float(numpy_helper.to_array(item).reshape(-1)[0])
        if node.op_type == "Mul":
            return number
        return 1.0 / number if node.input[0] == name and number else None


def _swaps(node: onnx.NodeProto) -> bool:
    """Does it swap heads and rows?"""
    return list(attributes_of(node).get("perm", ())) == [0, 2, 1, 3]


def _both(pair: Sequence[str]) -> Iterator[tuple[str, str]]:
    first, second = pair
    yield first, second
    yield second, first


class _OtherwiseError(Exception):
    """A layer that is not as exporters write it."""


def _in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Nodes behind those that they read from; else in the order given."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    done: set[int] = set()
    ordered: list[onnx.NodeProto] = []
    for first in range(len(nodes)):
        stack = [first]
        while stack:
            index = stack[-1]
            needed = {makers[name] for name in nodes[index].input if name in makers} - done
            if index in done or not needed - {index}:
                stack.pop()
                if index not in done:
                    done.add(index)
                    ordered.append(nodes[index])
                continue
            stack += sorted(needed - {index}, reverse=True)
    return ordered
