"""Voice activity on a clip with labels, beside Silero's own code with its network in float32.

The clip, its labels and the reference: ``scripts/speech_clip.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heimdall.capture.sound import Sound
from heimdall.graph.graph import load_graph
from heimdall.models import open_pipeline
from heimdall.models.memory import Memory
from heimdall.models.speech import VoiceActivity

REFERENCE = json.loads(
    (Path(__file__).parent / "references" / "speech.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def windows(listened):
    return listened("words.ogg", VoiceActivity.hears)


@pytest.fixture(scope="module")
def found(windows, hear):
    return hear(open_pipeline("speech"), windows)


def test_it_decides_as_sileros_own_code_does(found):
    theirs = REFERENCE["speaking"]
    assert len(found) == pytest.approx(len(theirs), abs=1)
    same = [ours.speaking == bool(other) for ours, other in zip(found, theirs, strict=False)]
    assert np.mean(same) >= 0.99
    pairs = zip(found, REFERENCE["probabilities"], strict=False)
    assert np.mean([abs(ours.probability - other) for ours, other in pairs]) < 0.005


def test_it_agrees_with_who_speaks(found, windows):
    """Where speech begins and ends in an echo is a matter of a few steps."""
    hears = VoiceActivity.hears
    ends_s = [(hears.window + hears.step * number) / hears.rate for number in range(len(found))]
    said = [any(start <= end_s <= end for start, end, _ in REFERENCE["labels"]) for end_s in ends_s]
    assert np.mean([each.speaking for each in found]) == pytest.approx(np.mean(said), abs=0.1)
    assert np.mean([each.speaking == other for each, other in zip(found, said, strict=True)]) > 0.85


def test_silence_and_noise_are_no_speech(hear):
    hears, random = VoiceActivity.hears, np.random.default_rng(0)
    quiet = [np.zeros(hears.window, np.float32)] * 30
    quiet += [random.normal(0, 0.05, hears.window).astype(np.float32) for _ in range(30)]
    sounds = [Sound(each, hears.rate, number, 0) for number, each in enumerate(quiet)]
    assert not any(each.speaking for each in hear(open_pipeline("speech"), sounds))


def decisions(probabilities):
    pipeline, past, found = VoiceActivity(), None, []
    for each in probabilities:
        result, past = pipeline.follow(each, past)
        assert result.probability == each
        found.append(result.speaking)
    return found


def test_somebody_speaks_until_it_has_been_quiet_for_a_tenth_of_a_second():
    assert decisions([0.4, 0.5, 0.4, 0.36]) == [False, True, True, True]
    assert decisions([0.9, 0.3, 0.1, 0.1, 0.1, 0.1]) == [True] * 5 + [False]
    assert decisions([0.9, 0.1, 0.1, 0.6, 0.1, 0.1, 0.1, 0.1]) == [True] * 7 + [True]
    assert decisions([0.9, 0.1, 0.4, 0.4, 0.4, 0.1]) == [True] * 5 + [False]


def test_a_reset_forgets_who_speaks(windows, hear):
    (network,) = VoiceActivity.networks
    memory = Memory(load_graph(network.path, network.shapes), network.state)
    begun = windows[: REFERENCE["speaking"].index(1) + 3]
    quiet = Sound(np.zeros_like(begun[0].samples), begun[0].rate, 0, 0)
    assert hear(open_pipeline("speech"), [*begun, quiet], memory)[-1].speaking
    memory.reset()
    assert not hear(open_pipeline("speech"), [quiet], memory)[0].speaking
