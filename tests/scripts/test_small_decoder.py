"""The training of the small decoder: what is written computes what was trained."""

from __future__ import annotations

import importlib

import numpy as np
import onnxruntime as ort
import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
pytest.importorskip("tokenizers")

small_decoder = importlib.import_module("scripts.small_decoder")


@pytest.fixture(scope="module")
def tokenizer():
    return small_decoder.small_tokenizer()


def test_any_text_is_written_again_as_it_was(tokenizer):
    for text in ("Read: “naïve café” 出口 100%!", "a  b\tc", "\U0001f600 x"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("a").tokens[0] == small_decoder.BEGIN
    assert tokenizer.get_vocab_size() == small_decoder.SHAPE.vocabulary


def test_a_thing_has_a_token_and_several_share_it(tokenizer):
    assert tokenizer.encode(" 12 cups, 1 cup").tokens[1:] == ["Ġ12", "Ġcup", "s", ",", "Ġ1", "Ġcup"]
    assert tokenizer.encode(" people").tokens[1:] == ["Ġpeople"]


def test_heads_of_the_first_layer_begin_by_looking_back(tokenizer):
    """At the token before, the one before that, and one more."""
    weights, shape = small_decoder.first_weights(0), small_decoder.SHAPE
    query, key = (weights[f"model.layers.0.self_attn.{part}_proj.weight"][:, 0] for part in "qk")
    angles = np.arange(20)[:, None] * shape.frequencies
    for head in range(3):
        at, then = (
            (array[index * 32 :][:16] + 1j * array[index * 32 :][16:32])
            for array, index in ((query, head), (key, head // 2))
        )
        scores = [(at * np.exp(1j * angles[19]) * (then * np.exp(1j * each)).conj()).real.sum()
                  for each in angles]  # fmt: skip
        assert 19 - int(np.argmax(scores)) == head + 1


def test_the_file_computes_what_was_trained_and_is_read_again(tokenizer, tmp_path):
    weights = small_decoder.random_weights(small_decoder.SHAPE, 2)
    path = tmp_path / "small.onnx"
    path.write_bytes(small_decoder.to_onnx(weights).SerializeToString())
    found = small_decoder.restored(path)
    assert found.keys() == weights.keys()
    for name, array in weights.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-6)  # halves
    ids = np.array([tokenizer.encode("Seen: cups: 2.").ids])
    session = ort.InferenceSession(path)
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    given["position_ids"] = np.arange(ids.shape[1])[None]
    past = [each.name for each in session.get_inputs() if each.name not in given]
    empty = np.zeros((1, 2, 0, 32), np.float32)
    logits, *_ = session.run(None, given | dict.fromkeys(past, empty))
    np.testing.assert_allclose(logits, small_decoder.forward(found, ids), atol=1e-4)


def test_training_lowers_the_loss(tokenizer, capsys):
    small_decoder.train(small_decoder.first_weights(0), tokenizer, 2, 0)
    (said,) = capsys.readouterr().err.splitlines()
    assert float(said.split()[3].strip(",")) < 8
