"""What is kept of the last inference: outputs that are a network's next inputs, and what its
pipeline knows of results."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, Zeros

log = logging.getLogger(__name__)

Kept = Mapping[str, Any]  # arrays, or what turns into one (``LoadedNetwork.keep``)


class Memory:
    """The state of one DNN, between its inferences: zeros at first, then what the last one that has
    ended made of it. One that was dropped or has failed changes nothing.

    ``state`` names inputs by outputs. Callable from any thread.
    """

    def __init__(self, graph: Graph, state: Mapping[str, str]) -> None:
        """Raises ModelError where the graph has no such output or input, or they do not fit."""
        check_state(graph, state)
        self._name, self._state = graph.name, dict(state)
        self._zeros = {
            each.name: Zeros(each.shape, each.dtype)
            for each in graph.inputs
            if each.name in state.values()
        }
        self._lock = threading.Lock()
        self._values: Kept = self._zeros
        self._past: Any = None  # the pipeline's
        self._begun = 0  # how often it was reset

    @property
    def outputs(self) -> tuple[str, ...]:
        """The network's outputs that are kept."""
        return tuple(self._state)

    def recall(self) -> tuple[Kept, int, Any]:
        """The inputs of an inference that begins now, what ``keep`` is to be told, and what the
        pipeline left."""
        with self._lock:
            return dict(self._values), self._begun, self._past

    def keep(self, outputs: Kept, begun: int, past: Any = None) -> None:
        """An inference has ended, of which its pipeline leaves ``past``. Forgotten where ``reset``
        was called since it began; values that are no numbers would stay for ever, so it begins anew
        instead, and says so."""
        lost = [
            name
            for name in self._state
            if isinstance(array := outputs[name], np.ndarray)
            and array.dtype.kind == "f"
            and not np.isfinite(array).all()
        ]
        with self._lock:
            if begun != self._begun:
                return
            self._values = {given: outputs[name] for name, given in self._state.items()}
            self._past = past
            if lost:
                self._values, self._past = self._zeros, None
        if lost:
            log.warning(
                "%s: output %r has values that are no numbers (NaN): its state begins anew",
                self._name,
                lost[0],
            )

    def reset(self) -> None:
        """Begin anew with zeros."""
        with self._lock:
            self._values, self._past = self._zeros, None
            self._begun += 1

    def bring(self) -> None:
        """Have it on the host, for its processor may be gone; where that takes the state with it,
        begin anew, and say so."""
        with self._lock:
            try:
                self._values = {name: np.asarray(each) for name, each in self._values.items()}
            except Exception as error:  # whatever a driver raises
                self._values = self._zeros
                log.warning("%s: its state is lost, and begins anew: %s", self._name, error)

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state by input, on the host."""
        return {name: np.asarray(each) for name, each in self.recall()[0].items()}


def without_state(graph: Graph, state: Mapping[str, str]) -> Graph:
    """The graph as those see it who make its other inputs, and read its other outputs."""
    inputs = tuple(each for each in graph.inputs if each.name not in state.values())
    outputs = tuple(each for each in graph.outputs if each.name not in state)
    return replace(graph, inputs=inputs, outputs=outputs) if state else graph


def check_state(graph: Graph, state: Mapping[str, str]) -> None:
    """Raise ModelError unless each output of ``state`` may be the input that it names."""
    outputs = {each.name: each for each in graph.outputs}
    inputs = {each.name: each for each in graph.inputs}
    for output, given in state.items():
        for kind, name, known in (("output", output, outputs), ("input", given, inputs)):
            if name not in known:
                raise ModelError(
                    f"state of {graph.name}: it has no {kind} {name!r}, only {list(known)}"
                )
        made, taken = outputs[output], inputs[given]
        if (made.shape, made.dtype) != (taken.shape, taken.dtype):
            raise ModelError(
                f"state of {graph.name}: output {output!r} is {made.dtype} {list(made.shape)}, and "
                f"cannot be the input {given!r}, {taken.dtype} {list(taken.shape)}"
            )
    if len(set(state.values())) < len(state):
        raise ModelError(f"state of {graph.name}: two outputs are the same input")
    if len(state) == len(inputs):
        raise ModelError(f"state of {graph.name}: none of its inputs is left for a picture")
