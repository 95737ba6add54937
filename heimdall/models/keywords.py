"""Which of a few words was just said? A small network, and what makes one result of an utterance.

How the network was trained: ``scripts/keywords.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.graph.graph import Graph
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.classify import class_names
from heimdall.models.results import Label
from heimdall.vocabulary.hearing import BUNDLED

NO_WORDS = ("other", "silence")  # classes of the network
AVERAGED = 3  # windows, one every 0.1 s
PAUSE = 5  # windows after a word in which no other is found


@dataclass(frozen=True)
class _Heard:
    """What was said before a window."""

    scores: tuple[np.ndarray, ...] = ()  # of the last windows
    word: str = ""  # until it is no longer heard
    pause: int = 0  # windows


class Keywords(Pipeline[list[Label]]):
    """Result: the word that was just said, a Label; of most windows none.

    Each utterance gives its word once: when its probability, averaged over the last windows,
    reaches ``score``.
    """

    networks = (Network("keywords_16k.onnx"),)
    hears = BUNDLED["keywords"]

    def __init__(self, score: float = 0.7) -> None:
        self._score = score
        self._names: tuple[str, ...] = ()

    def bind(self, graphs: Sequence[Graph]) -> None:
        self._names = class_names(graphs[0])

    def prepare(
        self, stage: int, image: Any, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        return [Prepared({"sound": image.samples[None]})]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> np.ndarray:
        return outputs["probabilities"][0]

    def follow(self, result: np.ndarray, past: _Heard | None) -> tuple[list[Label], _Heard]:
        past = past or _Heard()
        scores = (*past.scores, result)[-AVERAGED:]
        means = np.sum(scores, axis=0) / AVERAGED
        best = int(means.argmax())
        name, score = self._names[best], float(means[best])
        word = past.word
        if word and means[self._names.index(word)] < self._score / 2:
            word = ""
        if past.pause or score < self._score or name in (word, *NO_WORDS):
            return [], _Heard(scores, word, max(0, past.pause - 1))
        return [Label(name, score)], _Heard(scores, name, PAUSE)
