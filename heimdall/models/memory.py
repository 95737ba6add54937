"""What is kept of the last inference: outputs that are a network's next inputs, and what its
pipeline knows of results."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from heimdall.engine.checks import is_finite
from heimdall.errors import ModelError
from heimdall.graph.graph import Graph, Zeros

log = logging.getLogger(__name__)

_LOOK_EVERY = 30  # inferences: about once a second

Values = Mapping[str, Any]  # arrays, or what turns into one (``LoadedNetwork.keep``)


class Memory:
    """The state of one DNN, between its inferences: zeros at first, then what the last one that has
    ended made of it. One that was dropped or has failed changes nothing.

    ``state`` names inputs by outputs. ``looks``: for values that are no numbers. Callable from any
    thread.
    """

    def __init__(self, graph: Graph, state: Mapping[str, str], *, looks: bool = True) -> None:
        """Raises ModelError where the graph has no such output or input, or they do not fit."""
        check_state(graph, state)
        self._name, self._state, self._looks = graph.name, dict(state), looks
        self._zeros = {
            each.name: Zeros(each.shape, each.dtype)
            for each in graph.inputs
            if each.name in state.values()
        }
        self._lock = threading.Lock()
        self._values: Values = self._zeros
        self._past: Any = None  # the pipeline's
        self._begun = 0  # how often it was reset
        self._ended = count(1)  # inferences

    @property
    def outputs(self) -> tuple[str, ...]:
        """The network's outputs that are kept."""
        return tuple(self._state)

    @property
    def size_bytes(self) -> int:
        """What the state takes."""
        return sum(math.prod(each.shape) * each.dtype.itemsize for each in self._zeros.values())

    def recall(self) -> tuple[Values, int, Any]:
        """The inputs of an inference that begins now, what ``keep`` is to be told, and what the
        pipeline left."""
        with self._lock:
            return dict(self._values), self._begun, self._past

    def keep(self, outputs: Values, begun: int, past: Any = None) -> None:
        """An inference has ended, with these outputs, those that are not kept among them, and its
        pipeline leaves ``past``. Forgotten where ``reset`` was called since it began; values that
        are no numbers would stay for ever, so it begins anew instead, and says so.

        What lies on a device is looked at where another output has no numbers either, and now and
        then: each time it would have to be waited for.
        """
        problem = self._problem(outputs) if self._looks else ""
        with self._lock:
            if begun != self._begun:
                return
            self._values = {given: outputs[name] for name, given in self._state.items()}
            self._past = past
            if problem:
                self._begin_anew(problem)

    def _problem(self, outputs: Values) -> str:
        """Why the state that is among these outputs cannot be gone on with; "" where it can."""
        near = {name: each for name, each in outputs.items() if isinstance(each, np.ndarray)}
        suspect = not all(map(is_finite, near.values()))
        seen = outputs if suspect or next(self._ended) % _LOOK_EVERY == 0 else near
        try:
            for name in self._state:
                if name in seen and not is_finite(np.asarray(seen[name])):
                    return f"output {name!r} has values that are no numbers (NaN)"
        except Exception as error:  # whatever a driver raises
            return str(error)
        return ""

    def _begin_anew(self, why: str) -> None:
        self._values, self._past = self._zeros, None
        log.warning("%s: its state begins anew: %s", self._name, why)

    def reset(self) -> None:
        """Begin anew with zeros."""
        self.begin(self._zeros)

    def begin(self, values: Values) -> None:
        """Go on from another state, arrays by input. Raises ModelError where they are not its."""
        for name, zeros in self._zeros.items():
            found = values.get(name)
            if found is None or (found.shape, found.dtype) != (zeros.shape, zeros.dtype):
                raise ModelError(f"{self._name}: no {zeros.dtype} {list(zeros.shape)} for {name!r}")
        with self._lock:
            self._values, self._past = {name: values[name] for name in self._zeros}, None
            self._begun += 1

    def bring(self) -> None:
        """Have it on the host, for its processor may be gone; where that takes the state with it,
        begin anew, and say so."""
        with self._lock:
            try:
                self._values = {name: np.asarray(each) for name, each in self._values.items()}
            except Exception as error:  # whatever a driver raises
                self._begin_anew(str(error))


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
