"""A decoder as Hugging Face's optimum writes it: what PyTorch's exporter makes of the Llama of
transformers 4.4x, with keys and values of tokens before as inputs and outputs.

Sizes that vary are computed within the graph, from shapes, as the exporter does, and the mask of
what a token may see is written into a copy of itself by ScatterND, for ``mask[..., :n] = x``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
from onnx import TensorProto

from heimdall.lab.standins.decoder.shape import DecoderShape, Weights, chosen_weights
from heimdall.lab.standins.decoder.writing import Writer, path

OPSET = 17
HIDDEN = float(np.finfo(np.float32).min)  # added to the score of what may not be seen
_END = np.iinfo(np.int64).max  # as in x[a:]

Node = Callable[..., str]  # Writer.node of one layer


def exported_decoder(
    shape: DecoderShape, weights: Weights | None = None, seed: int = 0
) -> onnx.ModelProto:
    """A decoder with given weights (``weight_shapes``), or made-up ones of this ``seed``.

    Inputs: ``input_ids`` (batch, length), ``attention_mask`` (batch, past + length), of 0 where a
    token is padding, ``position_ids`` (batch, length), all int64; ``past_key_values.I.key`` and
    ``.value`` (batch, kv_heads, past, head width), where past may be 0. Outputs: ``logits`` (batch,
    length, vocabulary), ``present.I.key`` and ``.value`` (batch, kv_heads, past + length, ...).
    Raises ConfigError for weights that do not fit.
    """
    return _Exported(shape, chosen_weights(shape, weights, seed)).model()


class _Exported:
    """What is written layer by layer: methods return names of tensors."""

    def __init__(self, shape: DecoderShape, weights: Weights) -> None:
        self.shape, self.weights, self.net = shape, weights, Writer("_output_")

    def model(self) -> onnx.ModelProto:
        shape, net = self.shape, self.net
        after = "past_sequence_length + 1"  # whatever the length: optimum's name
        net.given("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        net.given("attention_mask", TensorProto.INT64, ["batch_size", after])
        net.given("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        net.made("logits", ["batch_size", "sequence_length", shape.vocabulary])
        net.cache(shape, after, shape.head_width)
        table = self._stored("model.embed_tokens.weight")
        x = net.node("/model/embed_tokens", "Gather", table, "input_ids")
        mask, turns = self._mask(x), self._turns()
        for index in range(shape.layers):
            x = self._layer(index, x, mask, turns)
        x = self._normed("model.norm", x)
        transposed = net.node("/lm_head", "Transpose", table, perm=[1, 0])
        net.node("/lm_head", "MatMul", x, transposed, made="logits")
        return net.model("pytorch", OPSET)

    # --- once ---------------------------------------------------------------------------------

    def _mask(self, x: str) -> str:
        """What is added to scores, (batch, 1, length, past + length)."""
        op: Node = partial(self.net.node, "/model")
        past = self._size(op, "past_key_values.0.key", 2)
        length, total = self._size(op, x, 1), self._size(op, "attention_mask", 1)
        one, zero = self._whole(1), self._whole(0)
        positions = op("Range", past, op("Add", past, length), one)
        hidden = self._filled(op, self._shape(op, length, total), HIDDEN)
        hidden = op("Trilu", hidden, one, upper=1)
        columns = op("Reshape", positions, self._whole([-1, 1]))
        later = op("Greater", op("Range", zero, total, one), columns)
        hidden = op("Mul", hidden, op("Cast", later, to=TensorProto.FLOAT))
        hidden = op("Unsqueeze", op("Unsqueeze", hidden, self._whole([0])), self._whole([1]))
        mask = self._expanded(op, hidden, self._shape(op, self._size(op, x, 0), 1, -1, -1))
        return self._padded(op, mask, total)

    def _padded(self, op: Node, mask: str, total: str) -> str:
        """The mask where padding is hidden, too."""
        tokens = op("Unsqueeze", "attention_mask", self._whole([1]))
        tokens = op("Unsqueeze", tokens, self._whole([2]))
        part = self._part(op, mask, 3, self._whole(0), total)
        both = op("Add", part, op("Cast", tokens, to=TensorProto.FLOAT))
        padding = op("Equal", both, self._number(0))
        return self._assigned(op, mask, total, op("Where", padding, self._number(HIDDEN), part))

    def _assigned(self, op: Node, x: str, stop: str, values: str) -> str:
        """``x[:, :, :, :stop] = values``: an index of four numbers for every value."""
        ranges = []
        for axis in range(4):
            every = op("Range", self._whole(0), self._size(op, x, axis), self._whole(1))
            if axis == 3:
                every = self._part(op, every, 0, self._whole(0), stop)
            ranges.append(op("Reshape", every, self._whole([-1] + [1] * (3 - axis))))
        joined = ranges[0]
        for each in ranges[1:]:
            joined = op("Add", joined, each)
        sizes = op("Shape", joined)
        full = [self._expanded(op, each, sizes) for each in ranges]
        parts = [op("Unsqueeze", each, self._whole([-1])) for each in full]
        rest = op("Slice", op("Shape", x), self._whole([4]), self._whole([_END]), self._whole([0]))
        shaped = op("Reshape", values, op("Concat", sizes, rest, axis=0))
        return op("ScatterND", x, op("Concat", *parts, axis=-1), shaped)

    def _turns(self) -> tuple[str, str]:
        """Cosine and sine of every position's angles, (batch, length, head width)."""
        op: Node = partial(self.net.node, "/model/rotary_emb")
        stored = self.net.weight("model.rotary_emb.inv_freq", self.shape.frequencies[None, :, None])
        batch = self._shape(op, self._size(op, "position_ids", 0), -1, 1)
        frequencies = op("Cast", self._expanded(op, stored, batch), to=TensorProto.FLOAT)
        positions = op("Unsqueeze", "position_ids", self._whole([1]))
        angles = op("MatMul", frequencies, op("Cast", positions, to=TensorProto.FLOAT))
        angles = op("Transpose", angles, perm=[0, 2, 1])
        angles = op("Concat", angles, angles, axis=-1)
        one = self._number(1)  # how much attention is scaled, in models of longer texts
        return op("Mul", op("Cos", angles), one), op("Mul", op("Sin", angles), one)

    # --- every layer --------------------------------------------------------------------------

    def _layer(self, index: int, x: str, mask: str, turns: tuple[str, str]) -> str:
        name = f"model.layers.{index}"
        op: Node = partial(self.net.node, path(name))
        normed = self._normed(f"{name}.input_layernorm", x)
        x = op("Add", x, self._attention(index, normed, mask, turns))
        gated = self._gated(f"{name}.mlp", self._normed(f"{name}.post_attention_layernorm", x))
        return op("Add", x, gated)

    def _attention(self, index: int, x: str, mask: str, turns: tuple[str, str]) -> str:
        name, shape = f"model.layers.{index}.self_attn", self.shape
        op: Node = partial(self.net.node, path(name))
        query, key, value = (self._linear(f"{name}.{each}_proj", x) for each in "qkv")
        batch, length = self._size(op, x, 0), self._size(op, x, 1)
        query = self._heads(op, query, batch, length, shape.heads)
        key, value = (self._heads(op, each, batch, length, shape.kv_heads) for each in (key, value))
        cos, sin = (op("Unsqueeze", each, self._whole([1])) for each in turns)
        query, key = (self._turned(op, each, cos, sin) for each in (query, key))
        key, value = (
            op("Concat", f"past_key_values.{index}.{part}", new,
               made=f"present.{index}.{part}", axis=-2)
            for part, new in (("key", key), ("value", value))
        )  # fmt: skip
        key, value = self._repeated(op, key), self._repeated(op, value)
        seen = self._part(op, mask, 3, self._whole(0), self._size(op, key, 2))
        found = op("Transpose", self._attended(op, query, key, value, seen), perm=[0, 2, 1, 3])
        found = op("Reshape", found, self._shape(op, batch, length, shape.width))
        return self._linear(f"{name}.o_proj", found)

    def _heads(self, op: Node, x: str, batch: str, length: str, heads: int) -> str:
        """(batch, length, heads * width) to (batch, heads, length, width)."""
        sizes = self._shape(op, batch, length, heads, self.shape.head_width)
        return op("Transpose", op("Reshape", x, sizes), perm=[0, 2, 1, 3])

    def _turned(self, op: Node, x: str, cos: str, sin: str) -> str:
        """Rotary positions: the second half of a head beside the first."""
        half = op("Div", self._size(op, x, 3), self._whole(2))
        first = self._part(op, x, 3, self._whole(0), half)
        second = self._part(op, x, 3, half, self._whole(_END))
        crossed = op("Concat", op("Neg", second), first, axis=-1)
        return op("Add", op("Mul", x, cos), op("Mul", crossed, sin))

    def _repeated(self, op: Node, x: str) -> str:
        """Keys or values once for every head that reads them."""
        times = self.shape.heads // self.shape.kv_heads
        if times == 1:
            return x
        batch, heads, length, width = (self._size(op, x, axis) for axis in range(4))
        apart = op("Unsqueeze", x, self._whole([2]))
        apart = self._expanded(op, apart, self._shape(op, batch, heads, times, length, width))
        joined = op("Mul", heads, self._whole(times))
        return op("Reshape", apart, self._shape(op, batch, joined, length, width))

    def _attended(self, op: Node, query: str, key: str, value: str, mask: str) -> str:
        """softmax(Q K' / sqrt(width) + mask) V, where both factors are scaled by the root."""
        last = [self._whole([each]) for each in (-1, _END)]
        width = op("Cast", op("Slice", op("Shape", query), *last), to=TensorProto.FLOAT)
        scale = op("Div", self._number([1]), op("Sqrt", width))
        scale = op("Cast", scale, to=TensorProto.FLOAT)
        turned = op("Transpose", key, perm=[0, 1, 3, 2])
        query, turned = op("Mul", query, op("Sqrt", scale)), op("Mul", turned, op("Sqrt", scale))
        scores = op("Add", op("MatMul", query, turned), mask)
        return op("MatMul", op("Softmax", scores, axis=-1), value)

    def _gated(self, name: str, x: str) -> str:
        """SwiGLU (Shazeer 2020)."""
        op: Node = partial(self.net.node, path(name))
        gate = self._linear(f"{name}.gate_proj", x)
        act: Node = partial(self.net.node, f"{path(name)}/act_fn")
        gate = act("Mul", gate, act("Sigmoid", gate))
        return self._linear(
            f"{name}.down_proj", op("Mul", gate, self._linear(f"{name}.up_proj", x))
        )

    def _normed(self, name: str, x: str) -> str:
        """RMS norm (Zhang and Sennrich 2019)."""
        op: Node = partial(self.net.node, path(name))
        x = op("Cast", x, to=TensorProto.FLOAT)
        mean = op("ReduceMean", op("Pow", x, self._number(2)), axes=[-1], keepdims=1)
        root = op("Sqrt", op("Add", mean, self._number(self.shape.epsilon)))
        x = op("Mul", x, op("Div", self._number(1), root))
        return op("Mul", self._stored(f"{name}.weight"), op("Cast", x, to=TensorProto.FLOAT))

    def _linear(self, name: str, x: str) -> str:
        turned = self.weights[f"{name}.weight"].T
        stored = self.net.weight(f"onnx::MatMul_{name}", turned)
        return self.net.node(path(name), "MatMul", x, stored)

    # --- what exporters write for one step of a program ---------------------------------------

    def _stored(self, name: str) -> str:
        return self.net.weight(name, self.weights[name])

    def _whole(self, value: int | list[int]) -> str:
        return self.net.constant(np.array(value, np.int64))

    def _number(self, value: float | list[float]) -> str:
        return self.net.constant(np.array(value, np.float32))

    def _size(self, op: Node, x: str, axis: int) -> str:
        """``x.shape[axis]``."""
        return op("Gather", op("Shape", x), self._whole(axis), axis=0)

    def _shape(self, op: Node, *sizes: str | int) -> str:
        """Sizes that are known, and those that are computed, as one tensor."""
        parts = [
            self._whole([each])
            if isinstance(each, int)
            else op("Unsqueeze", each, self._whole([0]))
            for each in sizes
        ]
        return op("Concat", *parts, axis=0)

    def _filled(self, op: Node, sizes: str, value: float) -> str:
        filling = onnx.numpy_helper.from_array(np.array([value], np.float32))
        return op("ConstantOfShape", sizes, value=filling)

    def _part(self, op: Node, x: str, axis: int, start: str, stop: str) -> str:
        """``x[..., start:stop]``."""
        ends = [op("Unsqueeze", each, self._whole([0])) for each in (start, stop)]
        return op("Slice", x, *ends, self._whole([axis]), self._whole([1]))

    def _expanded(self, op: Node, x: str, sizes: str) -> str:
        """``x.expand(sizes)``, in which -1 keeps a size, as 1 does in ONNX."""
        sizes = op("Reshape", sizes, self._whole([-1]))
        one = onnx.numpy_helper.from_array(np.array([1], np.int64))
        ones = op("ConstantOfShape", op("Shape", sizes), value=one)
        kept = op("Equal", sizes, op("Mul", ones, self._whole(-1)))
        return op("Expand", x, op("Where", kept, ones, sizes))
