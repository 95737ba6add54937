"""Decoders in both forms: they compute what Llama does, with and without tokens before."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from heimdall.errors import ConfigError
from heimdall.lab.standins.decoder import (
    SMOLLM_135M,
    SMOLLM_360M,
    DecoderShape,
    exported_decoder,
    fused_decoder,
    random_weights,
    weight_shapes,
)

SMALL = DecoderShape(vocabulary=50, width=64, layers=3, heads=4, kv_heads=2, inner=40)
SINGLE = DecoderShape(vocabulary=20, width=32, layers=1, heads=2, kv_heads=2, inner=8)
SHAPES = pytest.mark.parametrize("shape", [SMALL, SINGLE], ids=["shared", "single"])
FORMS = pytest.mark.parametrize(
    "form",
    [exported_decoder, fused_decoder, lambda *args: fused_decoder(*args, packed=False)],
    ids=["exported", "packed", "apart"],
)
CLOSE = 1e-4


class Running:
    """A decoder that keeps what it has seen of some texts."""

    def __init__(self, model: onnx.ModelProto, shape: DecoderShape, batch: int = 1) -> None:
        content = model.SerializeToString()
        self.session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        self.names = [each.name for each in self.session.get_inputs()]
        empty = np.zeros((batch, shape.kv_heads, 0, shape.head_width), np.float32)
        self.past = {name: empty for name in self.names if name.startswith("past_key_values")}
        self.mask = np.zeros((batch, 0), np.int64)

    def logits(self, ids: np.ndarray, real: np.ndarray | None = None) -> np.ndarray:
        """Of more tokens (batch, length); ``real`` is 0 where one is padding."""
        self.mask = np.hstack([self.mask, np.ones_like(ids) if real is None else real])
        positions = np.maximum(np.cumsum(self.mask, 1) - 1, 0)[:, -ids.shape[1] :]
        given = {"input_ids": ids, "attention_mask": self.mask, "position_ids": positions}
        given = {name: array for name, array in given.items() if name in self.names} | self.past
        logits, *present = self.session.run(None, given)
        self.past = dict(zip(self.past, present, strict=True))
        return logits


def llama(shape: DecoderShape, weights: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """Logits of one text (length,), straight from the definition."""

    def normed(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + shape.epsilon) * weights[name]

    def turned(x):  # (length, width of a head), pairs as complex numbers
        half = shape.head_width // 2
        angles = np.outer(np.arange(len(x)), shape.theta ** (-np.arange(half) / half))
        both = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * angles)
        return np.hstack([both.real, both.imag])

    table = weights["model.embed_tokens.weight"]
    x, size = table[ids], shape.head_width
    for index in range(shape.layers):
        name = f"model.layers.{index}."
        attention, gated = f"{name}self_attn.", f"{name}mlp."
        y = normed(x, f"{name}input_layernorm.weight")
        q, k, v = (y @ weights[f"{attention}{part}_proj.weight"].T for part in "qkv")
        found = []
        for head in range(shape.heads):
            shared = head * shape.kv_heads // shape.heads
            own, other = (slice(i * size, (i + 1) * size) for i in (head, shared))
            scores = turned(q[:, own]) @ turned(k[:, other]).T / np.sqrt(size)
            scores[np.triu_indices(len(ids), 1)] = -np.inf
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            found.append(shares / shares.sum(-1, keepdims=True) @ v[:, other])
        x = x + np.hstack(found) @ weights[f"{attention}o_proj.weight"].T
        y = normed(x, f"{name}post_attention_layernorm.weight")
        gate = y @ weights[f"{gated}gate_proj.weight"].T
        gate = gate / (1 + np.exp(-gate)) * (y @ weights[f"{gated}up_proj.weight"].T)
        x = x + gate @ weights[f"{gated}down_proj.weight"].T
    return normed(x, "model.norm.weight") @ table.T


def tokens(shape: DecoderShape, *sizes: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, shape.vocabulary, sizes)


@SHAPES
@FORMS
def test_logits_are_llamas(form, shape):
    weights, ids = random_weights(shape, 3), tokens(shape, 1, 9)
    found = Running(form(shape, weights), shape).logits(ids)
    np.testing.assert_allclose(found[0], llama(shape, weights, ids[0]), atol=CLOSE)


@SHAPES
@FORMS
def test_a_text_may_come_in_parts(form, shape):
    weights, ids = random_weights(shape, 4), tokens(shape, 1, 12)
    decoder = Running(form(shape, weights), shape)
    parts = [decoder.logits(part) for part in np.split(ids, [5, 6, 7, 10], axis=1)]
    np.testing.assert_allclose(np.hstack(parts)[0], llama(shape, weights, ids[0]), atol=CLOSE)


@FORMS
def test_several_texts_are_computed_at_once(form):
    weights, ids = random_weights(SMALL), tokens(SMALL, 3, 8)
    decoder = Running(form(SMALL, weights), SMALL, batch=3)
    parts = [decoder.logits(part) for part in np.split(ids, [6, 7], axis=1)]
    wanted = [llama(SMALL, weights, each) for each in ids]
    np.testing.assert_allclose(np.hstack(parts), wanted, atol=CLOSE)


def test_padding_before_a_text_changes_nothing():
    weights, ids = random_weights(SMALL), tokens(SMALL, 2, 7)
    real = np.ones_like(ids)
    real[1, :3] = 0
    decoder = Running(exported_decoder(SMALL, weights), SMALL, batch=2)
    first, second = decoder.logits(ids[:, :5], real[:, :5]), decoder.logits(ids[:, 5:])
    found = np.hstack([first, second])
    np.testing.assert_allclose(found[0], llama(SMALL, weights, ids[0]), atol=CLOSE)
    np.testing.assert_allclose(found[1, 3:], llama(SMALL, weights, ids[1, 3:]), atol=CLOSE)


@FORMS
def test_present_holds_the_tokens_before_and_the_new_ones(form):
    decoder = Running(form(SMALL), SMALL)
    decoder.logits(tokens(SMALL, 1, 4))
    before = decoder.past
    decoder.logits(tokens(SMALL, 1, 2))
    assert len(decoder.past) == 2 * SMALL.layers
    for name, array in decoder.past.items():
        assert array.shape == (1, SMALL.kv_heads, 6, SMALL.head_width)
        np.testing.assert_array_equal(array[:, :, :4], before[name])


def test_the_exported_form_is_onnx_and_has_optimums_names():
    model = exported_decoder(SMALL)
    onnx.checker.check_model(model, full_check=True)
    ends = [
        {
            value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
            for value in values
        }
        for values in (model.graph.input, model.graph.output)
    ]
    batch, past, after = "batch_size", "past_sequence_length", "past_sequence_length + 1"
    assert ends[0]["input_ids"] == ends[0]["position_ids"] == [batch, "sequence_length"]
    assert ends[0]["attention_mask"] == [batch, after]
    assert ends[0]["past_key_values.2.value"] == [batch, 2, past, 16]
    assert ends[1]["logits"] == [batch, "sequence_length", 50]
    assert ends[1]["present.0.key"] == [batch, 2, after, 16]
    names = {node.name for node in model.graph.node}
    assert {"/model/layers.0/self_attn/q_proj/MatMul", "/model/ScatterND"} <= names
    assert len(names) == len(model.graph.node)


def test_the_fused_form_has_one_operator_a_layer_for_attention():
    kinds = Counter(node.op_type for node in fused_decoder(SMALL).graph.node)
    assert kinds["GroupQueryAttention"] == SMALL.layers
    assert kinds["SimplifiedLayerNormalization"] == 1
    assert kinds["SkipSimplifiedLayerNormalization"] == 2 * SMALL.layers
    assert kinds["MatMul"] == 5 * SMALL.layers + 1
    assert not kinds["Softmax"]


def test_weights_follow_the_seed():
    first, again, other = (exported_decoder(SINGLE, seed=seed) for seed in (0, 0, 1))
    assert first.SerializeToString() == again.SerializeToString()
    assert first.SerializeToString() != other.SerializeToString()


@pytest.mark.parametrize(
    ("shape", "millions"), [(SMOLLM_135M, 134.5), (SMOLLM_360M, 361.8)], ids=["135M", "360M"]
)
def test_smollm_is_as_large_as_published(shape, millions):
    count = sum(int(np.prod(size)) for size in weight_shapes(shape).values())
    assert count / 1e6 == pytest.approx(millions, abs=0.05)


def test_weights_that_do_not_fit_are_refused_by_name():
    weights = random_weights(SINGLE)
    with pytest.raises(ConfigError, match=r"model\.norm\.weight is missing"):
        exported_decoder(SINGLE, {k: v for k, v in weights.items() if k != "model.norm.weight"})
    with pytest.raises(ConfigError, match=r"lm_head\.weight is not of this architecture"):
        fused_decoder(SINGLE, weights | {"lm_head.weight": weights["model.norm.weight"]})
    with pytest.raises(ConfigError, match=r"model\.norm\.weight is of shape \(3,\), not \(32,\)"):
        exported_decoder(SINGLE, weights | {"model.norm.weight": np.ones(3, np.float32)})


@pytest.mark.parametrize(("width", "heads", "kv_heads"), [(30, 4, 2), (36, 4, 2), (32, 4, 3)])
def test_sizes_that_do_not_divide_are_refused(width, heads, kv_heads):
    with pytest.raises(ConfigError, match=f"width {width} cannot have {heads} heads"):
        DecoderShape(50, width, 1, heads, kv_heads, 8)
