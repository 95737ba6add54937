"""The attention of optimum's files, spelled out in small operators, becomes one node a layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.errors import ModelError
from heimdall.graph import decoder_names as known
from heimdall.graph import decoder_trial
from heimdall.graph.values import attributes_of, fixed_shape

# What may stand between scores and their product with values.
_BETWEEN = frozenset({"Add", "Softmax", "IsNaN", "Where", "Identity", "Cast"})


def join_attention(path: Path, model: onnx.ModelProto, file: onnx.ModelProto) -> None:
    """Put GroupQueryAttention in the place of what each layer does, in a model of known shapes; its
    mask is left out, as are scalings and the turns by positions, which the node does itself.
    ``file``: as it was before. Raises ModelError, naming the layer, for what is not understood."""
    _Graph(path, model, file).join()


@dataclass(frozen=True)
class _Attended:
    """Where a layer attends: names of its tensors."""

    query: str  # (1, heads, rows, size)
    scores: str  # (1, heads, rows, all tokens)
    shares: str  # of the same shape: what each token takes of others
    made: str  # (1, heads, rows, size)
    scale: float
    factor: float  # its part behind the scores


@dataclass(frozen=True)
class _Turned:
    """A tensor that was turned by its positions: what it was, and by which cosines and sines."""

    x: str
    cosines: str
    sines: str


class _Graph:
    """A model of known shapes, whose attention becomes one node a layer."""

    def __init__(self, path: Path, model: onnx.ModelProto, file: onnx.ModelProto) -> None:
        self._path, self._model, self._file = path, model, file
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

    def join(self) -> None:
        found = (known.PAST.fullmatch(each.name) for each in self._model.graph.input)
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
        self._check_causal(where)
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
            known.ATTENTION,
            [*flat, *past, known.SEEN, known.TOTAL, *turns],
            [whole, *present],
            f"layer {layer}/attention",
            domain=known.MICROSOFT,
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
        """By the file as it is: here the tokens before are always as many."""
        context = next(self._shape(each.name)[2] for each in self._inputs_past())
        with decoder_trial.any_lengths(self._file):
            session, given = decoder_trial.part(self._file, named)

        def turns(before: int, rows: int) -> list[np.ndarray]:
            tokens = np.zeros(rows, np.int64)
            made = session.run(list(named), decoder_trial.feeds(given, tokens, before))
            return [each.reshape(-1, each.shape[-1]) for each in made]

        tables = turns(0, context)
        half = tables[0].shape[1] // 2
        for place in (1, context // 2, context - 1):
            alone = turns(place, 1)
            if not all(np.array_equal(t[[place]], a) for t, a in zip(tables, alone, strict=True)):
                return []  # they follow from more than the position
        if not all(np.array_equal(each[:, :half], each[:, half:]) for each in tables):
            return []
        names = []
        for name, table in zip(named, tables, strict=True):
            names.append(f"{name}/table")
            kept = numpy_helper.from_array(np.ascontiguousarray(table[:, :half]), names[-1])
            self._model.graph.initializer.append(kept)
        return names

    def _inputs_past(self) -> Iterator[onnx.ValueInfoProto]:
        return (each for each in self._model.graph.input if known.PAST.fullmatch(each.name))

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
        return _Attended(
            query, scores.output[0], made.input[0], made.output[0], scale * later, later
        )

    def _check_causal(self, where: _Attended) -> None:
        """Behind a full past, is what becomes of scores their softmax over the tokens before? Tried
        with numbers: masks are written in many ways."""
        shape = self._shape(where.scores)
        rows, total = shape[2:]
        scores = helper.make_tensor_value_info(where.scores, TensorProto.FLOAT, shape)
        session, inputs = decoder_trial.part(self._model, [where.shares], [scores])
        given: dict[str, Any] = {
            where.scores: np.random.default_rng(0).standard_normal(shape),
            known.MASK: 1,
            known.POSITIONS: np.arange(total - rows, total),
        }
        feeds = {
            each.name: np.broadcast_to(given.get(each.name, 0), fixed_shape(each.type) or ())
            .astype(helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type))
            for each in inputs
        }  # fmt: skip
        (found,) = session.run(None, feeds)
        later = np.triu(np.full((rows, total), -np.inf, np.float32), 1 + total - rows)
        wanted = np.exp(feeds[where.scores] * where.factor + later)
        wanted /= wanted.sum(-1, keepdims=True)
        if not np.allclose(found, wanted, atol=1e-4):
            raise _OtherwiseError("it is more than the softmax over all tokens before")

    def _product(
        self, name: str, place: int, through: frozenset[str] | None = None
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
                if factor is None and node.op_type not in (through or known.VIEWS):
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
