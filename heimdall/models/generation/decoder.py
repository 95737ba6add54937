"""The two networks of a language model as pipelines of DNNs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.errors import AppError, ModelError
from heimdall.graph.decoder import CONTEXT
from heimdall.graph.decoder_names import LOGITS, POSITIONS, SEEN, TOKENS, TOTAL
from heimdall.graph.graph import Graph
from heimdall.graph.onnx_file import Inputs
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.generation.tokens import Tokenizer
from heimdall.models.generation.writer import Kind, Step, Writer
from heimdall.models.memory import Memory

OpenTokenizer = Callable[[], Tokenizer]


class Decoder:
    """A language model: its file, and what both of its networks share."""

    def __init__(
        self,
        path: Path,
        open_tokenizer: OpenTokenizer,
        context: int,
        rows: int,
        ends: Sequence[str],
        half: bool = False,
    ) -> None:
        """``half``: it runs in half precision where it runs on the GPU."""
        self.half = half
        self.path, self.writer = path, Writer(context, rows)
        self._open_tokenizer, self._ends = open_tokenizer, tuple(ends)
        self._memory: Memory | None = None
        self._lock = threading.Lock()

    def open(self, graph: Graph) -> None:
        """Told of the network of one row. Raises ModelError where the tokenizer is another one's,
        ConfigError without a package that it needs."""
        (logits,) = (each for each in graph.outputs if each.name == LOGITS)
        self.writer.open(self._open_tokenizer(), logits.shape[-1], self._ends)

    def memory(self, graph: Graph, state: Mapping[str, str]) -> Memory:
        """The cache, of which there is one. Nobody looks for what is no number in it: the logits
        tell."""
        with self._lock:
            if self._memory is None:
                self._memory = Memory(graph, state, looks=False)
            return self._memory

    def pipeline(self, kind: Kind) -> DecoderPipeline:
        """One of its networks."""
        return DecoderPipeline(self, kind)


class DecoderPipeline(Pipeline["np.ndarray | None"]):
    """Steps of one kind through their network: logits of shape (vocabulary,), or None of a piece
    of a prompt. Its picture is a Step."""

    stays = True

    def __init__(self, decoder: Decoder, kind: Kind) -> None:
        self.decoder, self.kind = decoder, kind
        self.makes = "tokens" if kind is Kind.STEP else "pieces"
        self._rows = decoder.writer.rows if kind is Kind.PROMPT else 1
        shapes: Inputs = {TOKENS: (1, self._rows), CONTEXT: decoder.writer.context}
        self.networks = (Network(str(decoder.path), shapes),)
        self._positions: np.dtype[Any] | None = None  # as which type they are given

    def bind(self, graphs: Sequence[Graph]) -> None:
        (graph,) = graphs
        self._positions = {each.name: each.dtype for each in graph.inputs}.get(POSITIONS)
        if self.decoder.half:
            _check_positions(graph)
        state = {each.name: _past(each.name) for each in graph.outputs if each.name != LOGITS}
        self.networks = (replace(self.networks[0], state=state),)
        if self.kind is Kind.STEP:
            self.decoder.open(graph)

    def memory(self, graphs: Sequence[Graph]) -> Memory:
        return self.decoder.memory(graphs[0], self.networks[0].state)

    def prepare(
        self, stage: int, image: Any, previous: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Prepared]:
        if not isinstance(image, Step):
            raise AppError("a language model is asked by its feed: self.NAME.ask(...)")
        inputs: dict[str, np.ndarray] = {
            TOKENS: np.zeros((1, self._rows), np.int64),
            SEEN: np.array([image.position + self._rows - 1], np.int32),
            TOTAL: np.array([image.position + self._rows], np.int32),
        }
        inputs[TOKENS][0, : len(image.tokens)] = image.tokens  # others are written over later
        if self._positions is not None:
            places = np.arange(image.position, image.position + self._rows)
            inputs[POSITIONS] = places[None].astype(self._positions)
        return [Prepared(inputs, image)]

    def decode(
        self, stage: int, outputs: Mapping[str, np.ndarray], context: Step
    ) -> np.ndarray | None:
        return outputs[LOGITS].reshape(-1) if LOGITS in outputs else None


def _check_positions(graph: Graph) -> None:
    """Raise ModelError where anything but a table's row follows from positions: half precision
    rounds them from 2048 on, and the angles that they become much sooner."""
    for node in graph.nodes:
        rows = node.op_type == "Gather" and node.inputs[0] != POSITIONS
        if POSITIONS in node.inputs and not rows:
            raise ModelError(
                f"{graph.name} computes with its positions ({node.op_type} {node.name!r}), which "
                "half precision rounds: use precision='fp32'"
            )


def _past(present: str) -> str:
    """The input that an output is in the next step."""
    return present.replace("present.", "past_key_values.", 1)
