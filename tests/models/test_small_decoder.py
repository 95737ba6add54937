"""The bundled language model: it answers questions that it has not learnt."""

from __future__ import annotations

import hashlib

import numpy as np
import onnxruntime as ort
import pytest

from heimdall.models.scene_prompt import scene_prompt
from heimdall.system import paths

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
MODELS = paths.ASSETS / "models"

# What is seen, what is read, what is asked, and the right answer.
ROOM = {"chair": 6, "dining table": 1, "potted plant": 2}
DESK = {"cell phone": 1, "keyboard": 2, "mouse": 1, "cup": 1}
FARM = {"horse": 2, "sheep": 8, "person": 1}
PLATFORM = {"train": 1, "person": 10}
ASKED = (
    ({"car": 9, "bus": 1, "bicycle": 3}, "P 24h", "How many bicycles can you see?", "bicycles: 3."),
    ({"clock": 2, "vase": 1, "chair": 4}, "OPEN 9", "are there any chairs", "chairs: 4."),
    ({"bottle": 4, "wine glass": 2, "fork": 1}, "", "do you see a bottle", "bottles: 4."),
    (FARM, "Farm", "Are there any dogs?", "dogs: none."),
    (PLATFORM, "Platform 4", "is there a banana", "bananas: none."),
    ({"tv": 1, "couch": 1, "remote": 2}, "", "what is here",
     "I see tvs: 1, couches: 1, remotes: 2."),
    (FARM, "Farm", "what's there", "I see horses: 2, sheep: 8, people: 1."),
    (ROOM, "Room 12", "read that", 'It says "Room 12".'),
    (DESK, "hello world", "read this to me", 'It says "hello world".'),
    ({"scissors": 1, "toothbrush": 2}, "Gate B7", "What does it say?", 'It says "Gate B7".'),
    (PLATFORM, "Platform 4", "are there more trains or people",
     "trains: 1, people: 10, so more people."),
    (ROOM, "Room 12", "are there more potted plants or chairs",
     "potted plants: 2, chairs: 6, so more chairs."),
    ({"person": 5}, "", "how are you", "I do not see that."),
)  # fmt: skip


@pytest.fixture(scope="module")
def session():
    path = MODELS / "small_decoder.onnx"
    return ort.InferenceSession(path, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def tokenizer():
    return tokenizers.Tokenizer.from_file(str(MODELS / "small_decoder_tokenizer.json"))


def answer(session, tokenizer, prompt, most=80):
    """The likeliest token after all before, again and again."""
    ids, end = tokenizer.encode(prompt).ids, tokenizer.token_to_id("<|end|>")
    start = len(ids)
    past = {
        each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32)
        for each in session.get_inputs()
        if each.name.startswith("past_key_values")
    }
    while ids[-1] != end and len(ids) < start + most:
        given = {
            "input_ids": np.array([ids]),
            "attention_mask": np.ones((1, len(ids)), np.int64),
            "position_ids": np.arange(len(ids))[None],
        }
        logits, *_ = session.run(None, given | past)
        ids.append(int(logits[0, -1].argmax()))
    return tokenizer.decode(ids[start:])


def test_it_answers_what_it_has_not_learnt(session, tokenizer):
    right = []
    for seen, read, question, wanted in ASKED:
        prompt = scene_prompt(seen, read, question)
        assert hashlib.sha256(prompt.encode()).digest()[0] < 8, "not held out from learning"
        right.append(answer(session, tokenizer, prompt) == f" {wanted}")
    assert len(right) >= 10
    assert sum(right) >= 0.75 * len(right)  # of 1200 others 92%, of lists and comparisons 83%


def test_any_text_becomes_tokens_and_text_again(tokenizer):
    for text in ("Größe: 20 €", "出口 →", "a  b\n"):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("a").tokens == ["<|begin|>", "a"]
    assert (tokenizer.token_to_id("<|begin|>"), tokenizer.token_to_id("<|end|>")) == (0, 1)


def test_both_files_are_small():
    files = ("small_decoder.onnx", "small_decoder_tokenizer.json")
    assert sum((MODELS / name).stat().st_size for name in files) <= 1_300_000
