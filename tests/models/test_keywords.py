"""Words: once an utterance, in the clip of ``scripts/speech_clip.py``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heimdall.capture.sound import Sound
from heimdall.graph.graph import load_graph
from heimdall.models import open_pipeline
from heimdall.models.classify import class_names
from heimdall.models.keywords import NO_WORDS, Keywords

LABELS = json.loads(
    (Path(__file__).parent / "references" / "speech.json").read_text(encoding="utf-8")
)["labels"]
CLASSES = class_names(load_graph(Keywords.networks[0].path))


def scored(word, score=0.9):
    """Probabilities of a window."""
    found = np.full(len(CLASSES), (1 - score) / (len(CLASSES) - 1))
    found[CLASSES.index(word)] = score
    return found


def words(*windows):
    """What is found in each of these, by its word and how often it comes."""
    pipeline, past, found = Keywords(), None, []
    pipeline.bind([load_graph(Keywords.networks[0].path)])
    for word, count in windows:
        for _ in range(count):
            labels, past = pipeline.follow(scored(word), past)
            found += [label.name for label in labels]
    return found


def test_an_utterance_gives_its_word_once_however_long_it_is_heard():
    assert words(("other", 5), ("next", 8), ("silence", 5)) == ["next"]


def test_a_word_that_is_said_again_is_another():
    assert words(("next", 6), ("silence", 6), ("next", 6)) == ["next", "next"]
    assert words(("next", 6), ("silence", 4), ("red", 6)) == ["next", "red"]


def test_a_glimpse_is_no_word_nor_is_what_is_not_one():
    assert words(("other", 5), ("next", 1), ("other", 5)) == []
    assert words(*((name, 9) for name in NO_WORDS)) == []


def test_the_commands_of_the_clip_are_found_and_nothing_else(listened, hear):
    windows = listened("words.ogg", Keywords.hears)
    said = hear(open_pipeline("keywords"), windows)
    hop = Keywords.hears.step / Keywords.hears.rate
    found = [(1 + number * hop, each.name) for number, labels in enumerate(said) for each in labels]
    commands = [(end, text) for _, end, text in LABELS if text in CLASSES]
    assert [name for _, name in found] == [text for _, text in commands]
    for (at, _), (end, _) in zip(found, commands, strict=True):
        assert -0.3 < at - end < 0.9  # the window is a second long


@pytest.mark.parametrize("level", [0.0, 0.003, 0.3])
def test_silence_and_noise_are_no_words(level, hear):
    hears, random = Keywords.hears, np.random.default_rng(0)
    sounds = [
        Sound((level * random.standard_normal(hears.window)).astype(np.float32), hears.rate, n, 0)
        for n in range(20)
    ]
    assert not any(hear(open_pipeline("keywords"), sounds))
