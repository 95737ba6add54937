"""Does somebody speak? Voice activity in windows of 32 ms, by Silero's network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.results import Speech
from heimdall.vocabulary.hearing import BUNDLED

# As Silero's own VADIterator has them.
SLACK = 0.15  # who speaks goes on until the probability is so much lower
SILENCE_S = 0.1  # ... and then for so long


class VoiceActivity(Pipeline[Speech]):
    """Result: a Speech: how likely a voice is in the last 32 ms, and whether somebody speaks.

    Somebody does from a probability of ``score`` on, until it has been well below for 0.1 s.
    """

    networks = (
        Network(
            "speech_silero_16k.onnx",
            {"input": (1, 576), "state": (2, 1, 128), "sr": 16000},
            state={"stateN": "state"},
        ),
    )
    hears = BUNDLED["speech"]

    def __init__(self, score: float = 0.5) -> None:
        self._score = score

    def prepare(
        self, stage: int, image: Any, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        return [Prepared({"input": image.samples[None]})]

    def decode(self, stage: int, outputs: Mapping[str, np.ndarray], context: Any) -> float:
        return float(outputs["output"].item())

    def follow(self, result: float, past: tuple[bool, int] | None) -> tuple[Speech, Any]:
        speaking, quiet = past or (False, 0)  # quiet: windows since the first such one, with that
        quiet += quiet > 0
        if result >= self._score:
            speaking, quiet = True, 0
        elif speaking and result < self._score - SLACK:
            quiet = max(quiet, 1)
            if (quiet - 1) / self.hears.rate_hz >= SILENCE_S:
                speaking, quiet = False, 0
        return Speech(result, speaking), (speaking, quiet)
