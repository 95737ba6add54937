"""A decoder as the model builder of onnxruntime-genai writes it for a CPU: attention, with rotary
positions and the keys and values of tokens before, is one operator of onnxruntime's, and so is a
norm with the sum before it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from heimdall.lab.standins.decoder.shape import DecoderShape, Weights, chosen_weights
from heimdall.lab.standins.decoder.writing import MICROSOFT, Writer, path

OPSET = 21
BLOCK = 32  # weights that share a scale


def fused_decoder(
    shape: DecoderShape,
    weights: Weights | None = None,
    seed: int = 0,
    *,
    packed: bool = True,
    bits: int | None = None,
) -> onnx.ModelProto:
    """The decoder that ``exported_decoder`` writes, with the same outputs, and the same inputs but
    for ``position_ids``: there is none. Padding is behind a text, not before it. ``packed``:
    query, key and value are one product, as the builder's are unless told otherwise. ``bits``: of
    a weight in products, rounded by blocks; None: floats. Raises ConfigError for weights that do
    not fit.
    """
    return _Fused(shape, chosen_weights(shape, weights, seed), packed, bits).model()


class _Fused:
    """What is written layer by layer: methods return names of tensors."""

    def __init__(
        self, shape: DecoderShape, weights: Weights, packed: bool, bits: int | None
    ) -> None:
        self.shape, self.weights, self.packed, self.bits = shape, weights, packed, bits
        self.net = Writer("/output_")

    def model(self) -> onnx.ModelProto:
        shape, net = self.shape, self.net
        net.given("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        net.given("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])
        net.made("logits", ["batch_size", "sequence_length", shape.vocabulary])
        net.cache(shape, "total_sequence_length", "kv_cache_dim")
        table = self.weights["model.embed_tokens.weight"]
        stored = net.weight("model.embed_tokens.weight", table)
        total = net.node("/model/embed_tokens", "Gather", stored, "input_ids")
        lengths = self._lengths()
        normed = self._normed("model.layers.0.input_layernorm", total)
        for index in range(shape.layers):
            name = f"model.layers.{index}"
            found = self._attention(index, normed, lengths)
            normed, total = self._summed(f"{name}.post_attention_layernorm", total, found)
            found = self._gated(f"{name}.mlp", normed)
            last = index + 1 == shape.layers
            norm = "model.norm" if last else f"model.layers.{index + 1}.input_layernorm"
            normed, total = self._summed(norm, total, found, last)
        self._linear("/lm_head", normed, table, made="logits")
        return net.model("onnxruntime-genai", OPSET, **{MICROSOFT: 1})

    def _lengths(self) -> tuple[str, str]:
        """The place of each text's last token, and the length of the longest text: int32."""
        layer, net = "/model/attn_mask_reformat/attn_mask_subgraph", self.net
        one = net.constant(np.array([1], np.int64))
        tokens = net.node(layer, "ReduceSum", "attention_mask", one, keepdims=0)
        last = net.node(layer, "Sub", tokens, one)
        sizes = net.node(layer, "Shape", "attention_mask")
        total = net.node(layer, "Gather", sizes, net.constant(np.array(1, np.int64)), axis=0)
        to = TensorProto.INT32
        return (
            net.node(f"{layer}/Sub", "Cast", last, to=to),
            net.node(f"{layer}/Gather", "Cast", total, to=to),
        )

    def _attention(self, index: int, x: str, lengths: tuple[str, str]) -> str:
        name, shape, net = f"model.layers.{index}.self_attn", self.shape, self.net
        layer = f"/model/layers.{index}/attn"
        matrices = [self.weights[f"{name}.{each}_proj.weight"] for each in "qkv"]
        if self.packed:
            given = [self._linear(f"{layer}/qkv_proj", x, np.concatenate(matrices)), "", ""]
        else:
            pairs = zip("qkv", matrices, strict=True)
            given = [self._linear(f"{layer}/{part}_proj", x, each) for part, each in pairs]
        ends = [(f"past_key_values.{index}.{each}", f"present.{index}.{each}")
                for each in ("key", "value")]  # fmt: skip
        angles = np.outer(np.arange(shape.positions, dtype=np.float32), shape.frequencies)
        turns = [net.weight("cos_cache", np.cos(angles)), net.weight("sin_cache", np.sin(angles))]
        found, *_ = net.nodes(
            layer,
            "GroupQueryAttention",
            *given,
            *(past for past, _ in ends),
            *lengths,
            *turns,
            made=[None, *(present for _, present in ends)],
            domain=MICROSOFT,
            num_heads=shape.heads,
            kv_num_heads=shape.kv_heads,
            scale=shape.head_width**-0.5,
            local_window_size=-1,
            do_rotary=1,
            rotary_interleaved=0,
        )
        return self._linear(f"{layer}/o_proj", found, self.weights[f"{name}.o_proj.weight"])

    def _gated(self, name: str, x: str) -> str:
        net, layer = self.net, path(name)
        gate, up = (
            self._linear(f"{layer}/{part}", x, self.weights[f"{name}.{part}.weight"])
            for part in ("gate_proj", "up_proj")
        )
        act = f"{layer}/act_fn"
        gate = net.node(act, "Mul", gate, net.node(act, "Sigmoid", gate))
        down = self.weights[f"{name}.down_proj.weight"]
        return self._linear(f"{layer}/down_proj", net.node(layer, "Mul", gate, up), down)

    def _linear(self, layer: str, x: str, matrix: np.ndarray, made: str = "") -> str:
        name, net = f"{layer[1:].replace('/', '.')}.MatMul.weight", self.net
        if self.bits is None:
            return net.node(layer, "MatMul", x, net.weight(name, matrix.T), made=made)
        packed, scales = _rounded(matrix, self.bits)
        return net.node(
            layer,
            "MatMulNBits",
            x,
            net.weight(f"{name}_Q", packed, np.uint8),
            net.weight(f"{name}_scales", scales),
            made=made,
            domain=MICROSOFT,
            K=matrix.shape[1],
            N=matrix.shape[0],
            bits=self.bits,
            block_size=BLOCK,
        )

    def _normed(self, name: str, x: str) -> str:
        stored = self.net.weight(f"{name}.weight", self.weights[f"{name}.weight"])
        return self.net.node(
            path(name),
            "SimplifiedLayerNormalization",
            x,
            stored,
            axis=-1,
            epsilon=self.shape.epsilon,
            stash_type=1,
        )

    def _summed(self, name: str, total: str, x: str, last: bool = False) -> tuple[str, str]:
        """The norm of the sum, and the sum, which nobody reads at the end."""
        stored = self.net.weight(f"{name}.weight", self.weights[f"{name}.weight"])
        normed, *rest = self.net.nodes(
            path(name),
            "SkipSimplifiedLayerNormalization",
            total,
            x,
            stored,
            made=[None] if last else [None, "", "", None],
            domain=MICROSOFT,
            epsilon=self.shape.epsilon,
        )
        return normed, rest[-1] if rest else ""


def _rounded(matrix: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix (out, in) in whole numbers of so many bits, packed, (out, blocks, bytes), and the
    scales of its blocks."""
    middle = 1 << (bits - 1)
    blocks = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % BLOCK))).reshape(len(matrix), -1, BLOCK)
    scales = np.abs(blocks).max(-1) / (middle - 1)
    whole = np.rint(blocks / np.maximum(scales, np.finfo(np.float32).tiny)[..., None]) + middle
    parts = whole.astype(np.uint8).reshape(*scales.shape, -1, 8 // bits)
    return (parts << np.arange(0, 8, bits, dtype=np.uint8)).sum(-1, dtype=np.uint8), scales
