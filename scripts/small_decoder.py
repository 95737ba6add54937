"""Trains the small language model that is bundled: small_decoder.py [--to FOLDER] [--steps N]

What it learns from is made here (``scene_questions``): what is seen and read, a question, and an
answer. Written are small_decoder.onnx, in the form in which Hugging Face's optimum writes a Llama,
its weights in float16, and small_decoder_tokenizer.json; then it is said how many of the held-out
questions it answers to the letter, and which not. `--start FILE` goes on with the weights of such
a file. Needed are `pip install jax optax tokenizers`; 1600 steps take about ten minutes on two
cores.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime as ort
import optax
from jax import numpy as jnp
from onnx import numpy_helper
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

from heimdall.lab.exits.storing import narrow
from heimdall.lab.standins.decoder import (
    DecoderShape,
    exported_decoder,
    random_weights,
    weight_shapes,
)
from heimdall.models.scene_prompt import MOST_COUNT
from heimdall.system.paths import replace_file
from scripts.scene_questions import KINDS, questions, words

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END, SPACE = "<|begin|>", "<|end|>", "Ġ"  # as ByteLevel writes a space
SHAPE = DecoderShape(vocabulary=497, width=128, layers=4, heads=4, kv_heads=2, inner=128)
LENGTHS = (40, 56, 88)  # to which texts are filled up: each is compiled once
TOKENS = 2048  # of a batch
RATE, ADAM_RATE = 0.015, 3e-3  # of matrices (Jordan et al. 2024: Muon), and of all else

Weights = dict[str, Any]


def small_tokenizer() -> Tokenizer:
    """A token for each word that questions are made of, behind a space; all else is written letter
    by letter, or byte by byte, so any text can be: of a word the longest token comes first, and
    what is left of it next. Plurals are so written with the token of the singular."""
    numbers = map(str, range(MOST_COUNT + 1))
    spaced = (SPACE + each for each in [*numbers, '"', "I", "a", *words()])
    pieces = [BEGIN, END, *sorted(pre_tokenizers.ByteLevel.alphabet()), "Seen", "es", *spaced]
    places = {piece: index for index, piece in enumerate(pieces)}
    model = models.WordPiece(
        places, unk_token=END, continuing_subword_prefix="", max_input_chars_per_word=1000
    )
    tokenizer = Tokenizer(model)
    parts = Regex(r" ?\p{L}+| ?\d+| ?[^\s\p{L}\d]|\s")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(parts, "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([BEGIN, END])
    begin = tokenizer.token_to_id(BEGIN)
    tokenizer.post_processor = processors.TemplateProcessing(f"{BEGIN} $0", None, [(BEGIN, begin)])
    return tokenizer


# --- training ---


def forward(weights: Weights, ids: jax.Array) -> jax.Array:
    """Logits (n, length, vocabulary) of token ids (n, length)."""
    count, length = ids.shape
    angles = jnp.outer(jnp.arange(length), SHAPE.frequencies)
    cos, sin = (jnp.tile(turn(angles), 2)[:, None] for turn in (jnp.cos, jnp.sin))
    seen = jnp.tril(jnp.ones((length, length), bool))
    table = weights["model.embed_tokens.weight"]
    x = table[ids]
    for index in range(SHAPE.layers):
        layer = {
            name.split(".")[-2]: array
            for name, array in weights.items()
            if name.startswith(f"model.layers.{index}.")
        }
        normed = _normed(x, layer["input_layernorm"])
        query, key, value = (
            (normed @ layer[f"{part}_proj"].T).reshape(count, length, -1, SHAPE.head_width)
            for part in "qkv"
        )
        query, key = _turned(query, cos, sin), _turned(key, cos, sin)
        times = SHAPE.heads // SHAPE.kv_heads
        key, value = jnp.repeat(key, times, 2), jnp.repeat(value, times, 2)
        scores = jnp.einsum("nqhd,nkhd->nhqk", query, key) / SHAPE.head_width**0.5
        shares = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
        found = jnp.einsum("nhqk,nkhd->nqhd", shares, value).reshape(x.shape)
        x = x + found @ layer["o_proj"].T
        normed = _normed(x, layer["post_attention_layernorm"])
        gate = jax.nn.silu(normed @ layer["gate_proj"].T)
        x = x + (gate * (normed @ layer["up_proj"].T)) @ layer["down_proj"].T
    return _normed(x, weights["model.norm.weight"]) @ table.T


def _normed(x: jax.Array, weight: jax.Array) -> jax.Array:
    return weight * x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + SHAPE.epsilon)


def _turned(x: jax.Array, cos: jax.Array, sin: jax.Array) -> jax.Array:
    first, second = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate([-second, first], -1) * sin


def first_weights(seed: int) -> dict[str, np.ndarray]:
    """Made-up weights, but for heads that all copying and looking up is built on (Olsson et al.
    2022), and which take longer to be found than all the rest. In the first layer three look one,
    two and three tokens back; in the second, two look at the same token as theirs, and two behind
    it: at the token that came after it before."""
    draw, weights = np.random.default_rng(seed), random_weights(SHAPE, seed)
    for name, array in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            array *= 0.1  # each layer adds a little at first
    table = weights["model.embed_tokens.weight"]
    table[:, 0] = 0.5  # of every token the same, after the norm, too
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    first, second = (
        {part: weights[f"model.layers.{index}.self_attn.{part}_proj.weight"] for part in "qkvo"}
        for index in (0, 1)
    )
    fast = SHAPE.frequencies > 0.02  # slower turns tell no neighbours apart
    slow = np.flatnonzero(np.tile(~fast, 2))  # and what is told by those is told from afar
    heads = [("k", 0, 1), ("k", 1, 1), *(("q", head, -head) for head in range(3))]
    for part, head, back in heads:
        rows, turn = _head(first[part], head), back * SHAPE.frequencies
        rows[:] = 0
        rows[:, 0] = 1.3 * np.concatenate([fast * np.cos(turn), fast * np.sin(turn)])
    sketch = draw.normal(0, SHAPE.width**-0.5, (len(slow), SHAPE.width))
    sketch[:, 0] = 0
    place = np.linalg.qr(draw.normal(size=(SHAPE.width, len(slow))))[0]  # for that of one back
    _head(first["v"], 0)[: len(slow)] = sketch
    first["o"][:, : len(slow)] = 0.25 * place
    for part, head, found in (
        *(("q", head, 1.6 * sketch) for head in range(4)),
        ("k", 0, 1.6 * sketch),
        ("k", 1, 0.7 * place.T),
    ):
        rows = _head(second[part], head)
        rows[:] = 0
        rows[slow] = found
    return weights


def restored(path: Path) -> dict[str, np.ndarray]:
    """The weights of a file that ``to_onnx`` made."""
    stored = {
        each.name.removesuffix("__half").removeprefix("onnx::MatMul_"): numpy_helper.to_array(each)
        for each in onnx.load(path).graph.initializer
    }
    found = {
        name: stored[name] if name in stored else stored[name.removesuffix(".weight")].T
        for name in weight_shapes(SHAPE)
    }
    return {name: array.astype(np.float32) for name, array in found.items()}


def _head(matrix: np.ndarray, index: int) -> np.ndarray:
    """The rows that make one head, as a view."""
    return matrix[index * SHAPE.head_width :][: SHAPE.head_width]


def loss(weights: Weights, ids: jax.Array, answers: jax.Array) -> jax.Array:
    """Mean cross-entropy of the tokens of answers."""
    logits = forward(weights, ids[:, :-1])
    found = optax.softmax_cross_entropy_with_integer_labels(logits, ids[:, 1:])
    return (found * answers[:, 1:]).sum() / answers[:, 1:].sum()


def batches(tokenizer: Tokenizer, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Token ids, filled up to one of LENGTHS, and which of them are an answer's."""
    waiting: dict[int, list[tuple[list[int], int]]] = {length: [] for length in LENGTHS}
    end, source = tokenizer.token_to_id(END), questions(seed)
    while True:
        some = list(islice(source, 256))
        prompts = tokenizer.encode_batch([each.prompt for each in some])
        answers = tokenizer.encode_batch([each.answer for each in some], add_special_tokens=False)
        for prompt, answer in zip(prompts, answers, strict=True):
            ids = [*prompt.ids, *answer.ids, end]
            fitting = next((each for each in LENGTHS if each >= len(ids)), None)
            if fitting is None:
                continue  # a long text of many bytes a letter
            waiting[fitting].append((ids, len(prompt.ids)))
            if len(waiting[fitting]) * fitting >= TOKENS:
                yield _filled(waiting[fitting], fitting)
                waiting[fitting] = []


def _filled(texts: list[tuple[list[int], int]], length: int) -> tuple[np.ndarray, np.ndarray]:
    ids, answers = np.zeros((2, len(texts), length), np.int32)
    for row, (text, start) in enumerate(texts):
        ids[row, : len(text)] = text
        answers[row, start : len(text)] = 1
    return ids, answers


def train(weights: Weights, tokenizer: Tokenizer, steps: int, seed: int) -> dict[str, np.ndarray]:
    """Better weights than these, by their names in Hugging Face's Llama."""
    weights = jax.tree.map(jnp.asarray, weights)
    decay = optax.linear_schedule(1.0, 0.0, steps)
    matrices = {
        name: optax.contrib.MuonDimensionNumbers() if "_proj" in name else None for name in weights
    }
    optimiser = optax.contrib.muon(
        lambda step: RATE * decay(step),
        adam_b2=0.98,
        adam_learning_rate=lambda step: ADAM_RATE * decay(step),
        muon_weight_dimension_numbers=matrices,
    )
    state = optimiser.init(weights)

    @jax.jit
    def step(weights: Weights, state: Any, ids: jax.Array, answers: jax.Array) -> tuple:
        found, slopes = jax.value_and_grad(loss)(weights, ids, answers)
        changes, state = optimiser.update(slopes, state, weights)
        return optax.apply_updates(weights, changes), state, found

    began, recent = time.monotonic(), []
    for number, batch in enumerate(islice(batches(tokenizer, seed), steps), 1):
        weights, state, found = step(weights, state, *batch)
        recent.append(float(found))
        if number % 50 == 0 or number == steps:
            took = time.monotonic() - began
            say = f"step {number}/{steps}: loss {np.mean(recent):.4f}, {took:.0f} s"
            print(say, file=sys.stderr, flush=True)
            recent = []
    return {name: np.asarray(array, np.float32) for name, array in weights.items()}


# --- what is written, and how good it is ---


def to_onnx(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The network in float16 storage."""
    model = exported_decoder(SHAPE, weights)
    narrow(model)
    onnx.checker.check_model(model)
    return model


def answer(
    session: ort.InferenceSession, tokenizer: Tokenizer, prompt: str, most: int = 128
) -> str:
    """The likeliest tokens, one after the other, each on the keys and values of those before."""
    past = {
        each.name: np.zeros((1, SHAPE.kv_heads, 0, SHAPE.head_width), np.float32)
        for each in session.get_inputs()
        if each.name.startswith("past_key_values")
    }
    given, end, made, length = tokenizer.encode(prompt).ids, tokenizer.token_to_id(END), [], 0
    while len(made) < most:
        length += len(given)
        inputs = {
            "input_ids": np.array([given], np.int64),
            "attention_mask": np.ones((1, length), np.int64),
            "position_ids": np.arange(length - len(given), length, dtype=np.int64)[None],
        }
        logits, *present = session.run(None, inputs | past)
        token = int(logits[0, -1].argmax())
        if token == end:
            break
        made.append(token)
        given, past = [token], dict(zip(past, present, strict=True))
    return tokenizer.decode(made)


def accuracy(content: bytes, tokenizer: Tokenizer, count: int, seed: int) -> dict[str, float]:
    """The share of held-out questions of each kind whose answer is right to the letter."""
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for each in questions(seed, held_out=True):
        found = right[each.kind]
        if len(found) < count:
            made = answer(session, tokenizer, each.prompt)
            found.append(made == each.answer)
            if made != each.answer:
                print(f"{each.prompt}{made}  [{each.answer} ]", file=sys.stderr)
        if all(len(found) == count for found in right.values()):
            return {kind: sum(found) / count for kind, found in right.items()}
    raise AssertionError("questions have no end")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--to", type=Path, default=ROOT / "assets" / "models")
    parser.add_argument("--steps", type=int, default=1600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="go on with the weights of this file")
    parser.add_argument("--count", type=int, default=200, help="held-out questions of each kind")
    arguments = parser.parse_args()
    tokenizer = small_tokenizer()
    start, seed = arguments.start, arguments.seed
    weights = first_weights(seed) if start is None else restored(start)
    weights = train(weights, tokenizer, arguments.steps, seed)
    content = to_onnx(weights).SerializeToString(deterministic=True)
    files = {"small_decoder.onnx": content}
    files["small_decoder_tokenizer.json"] = f"{tokenizer.to_str()}\n".encode()
    for name, stored in files.items():
        replace_file(arguments.to / name, stored)
        digest = hashlib.sha256(stored).hexdigest()
        print(f"{arguments.to / name}: {len(stored) / 1000:.0f} kB, sha256 {digest}")
    found = accuracy(content, tokenizer, arguments.count, seed)
    shares = ", ".join(f"{kind} {share:.1%}" for kind, share in found.items())
    count = sum(array.size for array in weights.values())
    print(f"{count} parameters; right of {arguments.count} of each kind: {shares}")


if __name__ == "__main__":
    main()
