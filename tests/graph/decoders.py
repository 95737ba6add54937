"""Small language models with random weights, and what onnxruntime makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.lab.standins.decoder import DecoderShape, exported_decoder, fused_decoder

SHAPE = DecoderShape(
    vocabulary=100, width=64, layers=2, heads=4, kv_heads=2, inner=128, positions=4096
)
FORMS: dict[str, Callable[[DecoderShape], onnx.ModelProto]] = {
    "optimum": exported_decoder,
    "genai": fused_decoder,
    "genai int4": partial(fused_decoder, bits=4),
}


@cache
def decoder(form: str) -> Path:
    """A file of one of the forms; the weights are the same, or those rounded."""
    path = Path(mkdtemp(prefix="heimdall-decoder-")) / f"{form}.onnx"
    onnx.save(FORMS[form](SHAPE), path)
    return path


class Reference:
    """The file itself on onnxruntime, with a past that grows."""

    def __init__(self, path: Path) -> None:
        self._session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        self._given = self._session.get_inputs()
        self._past = {
            each.name: np.zeros((1, SHAPE.kv_heads, 0, SHAPE.head_width), np.float32)
            for each in self._given
            if each.name.startswith("past")
        }
        self._seen = 0

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """Behind the last of these tokens, which come behind those before."""
        whole = self._seen + len(tokens)
        more = {
            "input_ids": np.array([tokens], np.int64),
            "attention_mask": np.ones((1, whole), np.int64),
            "position_ids": np.arange(self._seen, whole, dtype=np.int64)[None],
        }
        known = {each.name for each in self._given}
        names = [each.name for each in self._session.get_outputs()]
        feeds = {name: each for name, each in more.items() if name in known}
        made = dict(zip(names, self._session.run(names, {**feeds, **self._past}), strict=True))
        self._seen = whole
        self._past = {
            name.replace("present", "past_key_values"): each
            for name, each in made.items()
            if name != "logits"
        }
        return made["logits"][0, -1]

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """The likeliest tokens behind a prompt."""
        found, tokens = [], list(prompt)
        for _ in range(count):
            found.append(int(self.logits(tokens).argmax()))
            tokens = found[-1:]
        return found
