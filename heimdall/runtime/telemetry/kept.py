"""A session that is kept (``heimdall run --capture``): what of a run goes into its file.

Frames as they are captured, and what the user did, the networks found and the coordinator decided.
Handing that over is all that happens in the run's threads; ``capture.mcap_writer`` does the rest.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.capture import Frame
from heimdall.capture import mcap_messages as messages
from heimdall.capture.mcap_writer import McapWriter
from heimdall.coordinator.replay import record
from heimdall.errors import HeimdallError
from heimdall.models.memory import Memory, Values
from heimdall.render import InputEvent, Key, Pointer, Scroll
from heimdall.system.faults import Fallible, Faults
from heimdall.vocabulary.events import Action, Event, RenderStarted

log = logging.getLogger(__name__)

_BATCH = 64  # decisions in a message, or those of a frame
_STATES_S = 1.0  # between the states of recurrent networks
_STATE_LIMIT = 1 << 20  # bytes of one: packing a larger one each second would take others' time
_LISTED = 256  # numbers of an array that are written out; longer ones are packed
_INPUTS: dict[str, type[Key] | type[Pointer] | type[Scroll]] = {
    "Key": Key,
    "Pointer": Pointer,
    "Scroll": Scroll,
}


class Kept(Fallible):
    """Keeps a session from ``begin`` to ``close``. Raises ConfigError where ``path`` cannot be
    written.

    ``about``: of the app and what it runs on. ``config``: what the coordinator was made of; None
    where its decisions cannot be replayed, and are not kept.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], config: Mapping[str, Any] | None, lossless: bool
    ) -> None:
        self._faults = Faults()
        self._writer = McapWriter(path, lossless=lossless)
        self._about, self._config = dict(about), config
        self._begun = self._closed = False
        self._steps: list[tuple[int, Event | None, Sequence[Action]]] = []
        self._memories: dict[str, Memory] = {}  # whose states are kept
        self._states_ns = 0  # when they were kept last

    def begin(self, frame: Frame, live: bool, memories: Mapping[str, Memory]) -> None:
        """The first frame is about to be drawn, which shows ``frame``. A clip has waited for that:
        its frame counts as taken now. ``memories``: of recurrent networks, by DNN."""
        now_ns = time.perf_counter_ns()
        data = {"schema": messages.SCHEMA, **self._about, "config": self._config}
        self._writer.note(messages.RUN, now_ns, lambda: data)
        self._writer.note(messages.STATES, now_ns, dict)
        self._memories = {dnn: each for dnn, each in memories.items() if _fits(dnn, each)}
        self._begun = True
        if frame.captured_ns:  # else it stands in until one is pushed
            self.frame(frame if live else dataclasses.replace(frame, captured_ns=now_ns))

    def frame(self, frame: Frame) -> None:
        """Keep a frame; on the capture thread, mostly."""
        if self._begun:
            self._writer.frame(frame)

    def step(self, now_ns: int, event: Event | None, actions: Sequence[Action]) -> None:
        """Keep what the coordinator was told, and what it answered."""
        self._steps.append((now_ns, event, actions))
        if len(self._steps) >= _BATCH or isinstance(event, RenderStarted):
            self._hand_over()

    def result(self, dnn: str, value: Any, frame: Frame) -> None:
        """Keep a result of a DNN and, now and then, the states of all."""

        def data() -> dict[str, Any]:
            of_ns = self._writer.since_1970(frame.captured_ns)
            of = {"sequence": frame.sequence, "captured_ns": of_ns}
            return {"dnn": dnn, "frame": of, "value": plain(value)}

        now_ns = time.perf_counter_ns()
        self._writer.note(messages.RESULTS, now_ns, data)
        if self._memories and now_ns - self._states_ns >= _STATES_S * 1e9:
            self._states_ns = now_ns
            known = {dnn: memory.recall()[0] for dnn, memory in self._memories.items()}
            self._writer.note(messages.STATES, now_ns, lambda: _states_data(known))

    def input(self, event: InputEvent) -> None:
        """Keep what the user did."""
        if type(event).__name__ in _INPUTS:
            data = input_data(event)
            self._writer.note(messages.INPUTS, time.perf_counter_ns(), lambda: data)

    def _hand_over(self) -> None:
        steps, self._steps = self._steps, []
        if steps and self._config is not None:
            self._writer.note(
                messages.DECISIONS,
                steps[-1][0],
                lambda: {"records": [record(*step) for step in steps]},
            )

    def end(self) -> None:
        """Keep nothing more: what there is is written in the background."""
        self._hand_over()
        self._writer.end()

    def close(self) -> None:
        """``end``, and wait for it; closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        self.end()
        try:
            self._writer.close()
        except HeimdallError as error:
            self._faults.report(str(error))
        if self._writer.dropped:
            log.warning(
                "capture %s lacks %d frames: encoding could not keep up",
                self._writer.path,
                self._writer.dropped,
            )

    @property
    def summary(self) -> dict[str, Any]:
        """The entry of ``outputs``."""
        writer, errors = self._writer, self.errors
        return {
            "path": str(writer.path),
            "error": errors[0] if errors else None,
            "frames": writer.written,
            "dropped": writer.dropped,
        }


def plain(value: Any) -> Any:
    """A result as JSON data: values of classes as objects with their ``type``, arrays as lists;
    long ones, floats in half precision, as {"dtype", "shape", "zlib"}: their bytes, packed, in
    base64."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist() if value.size <= _LISTED else messages.array_data(_halved(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    return {"type": type(value).__name__}  # an app's own type, which says no more


def _halved(array: np.ndarray) -> np.ndarray:
    """Floats in half precision: a mask of 256 x 256 takes 10 kB so, else 27."""
    return array.astype(np.float16) if array.dtype.kind == "f" else array


def _fits(dnn: str, memory: Memory) -> bool:
    """Whether a state is kept; one that is not is told of."""
    size, most = memory.size_bytes / 1e6, _STATE_LIMIT / 1e6
    if size > most:
        log.warning("capture: the state of %s is left out: %.1f MB, over %.1f", dnn, size, most)
    return size <= most


def _states_data(known: Mapping[str, Values]) -> dict[str, Any]:
    """Those of DNNs that can still be had: a device may be gone."""
    found = {}
    for dnn, values in known.items():
        try:
            found[dnn] = {
                name: messages.array_data(np.asarray(each)) for name, each in values.items()
            }
        except Exception as error:  # whatever a driver raises
            log.debug("the state of %s is not kept: %s", dnn, error)
    return found


def begin_with(states: Mapping[str, Any], memories: Mapping[str, Memory]) -> None:
    """Have recurrent networks go on from the states of a session, as far as it has them; one that
    makes no sense is left out with a warning."""
    for dnn, memory in memories.items():
        try:
            if said := states.get(dnn):
                memory.begin({name: messages.read_array(each) for name, each in said.items()})
        except (HeimdallError, AttributeError, TypeError) as error:
            log.warning("%s begins with zeros: its state in the session: %s", dnn, error)


def input_data(event: InputEvent) -> dict[str, Any]:
    """An input event as JSON data."""
    fields = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in dataclasses.asdict(event).items()
    }
    return {"type": type(event).__name__, **fields}


def read_input(data: Mapping[str, Any]) -> InputEvent | None:
    """The event of ``input_data``; None for data that is none."""
    kind = _INPUTS.get(str(data.get("type")))
    if kind is None:
        return None
    fields: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, list) else value
        for name, value in data.items()
        if name != "type"
    }
    try:
        return kind(**fields)
    except TypeError:  # of a later version, or damaged
        return None
