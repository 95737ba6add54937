"""The trace of a run: a Chrome/Perfetto timeline, and the recording that can be replayed.

One file holds both: ``traceEvents`` for https://ui.perfetto.dev or chrome://tracing, and
``heimdall`` with the coordinator's configuration and every event it received, so that
``heimdall trace`` can feed them to a fresh coordinator and compare its actions.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heimdall.coordinator.replay import record
from heimdall.errors import ConfigError
from heimdall.system.paths import replace_file
from heimdall.vocabulary.enums import Lane
from heimdall.vocabulary.events import Action, Event

Span = tuple[str, str, int, int, Mapping[str, Any]]  # lane, name, start, end, details

log = logging.getLogger(__name__)

SCHEMA = 1
MOST = 1_000_000  # some 300 MB, and most of an hour of shopping
KEPT = ".mcap"  # files of sessions, which hold a recording, too
LANES = (*(str(lane) for lane in Lane if lane is not Lane.POOL), "pool-0", "pool-1")


@dataclass(frozen=True)
class Recording:
    """What ``replay`` needs: the coordinator's configuration, and its records as plain data."""

    config: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]


@dataclass
class Tracer:
    """Collects spans from all threads and the coordinator's events from the main thread.

    Appending to a list is all that happens during the run; ``save`` does the rest. It is full
    after ``MOST`` spans and steps, which is said once: what has been recorded is kept.
    """

    start_ns: int
    spans: list[Span] = field(default_factory=list)
    steps: list[tuple[int, Event | None, Sequence[Action]]] = field(default_factory=list)
    full_ns: int | None = None

    def span(
        self, lane: str, name: str, start_ns: int, end_ns: int, details: Mapping[str, Any]
    ) -> None:
        """A piece of work in a lane; the pool has a lane a thread."""
        if self._is_full(end_ns):
            return
        if lane == Lane.POOL:
            lane = threading.current_thread().name
        self.spans.append((lane, name, start_ns, end_ns, details))

    def step(self, now_ns: int, event: Event | None, actions: Sequence[Action]) -> None:
        """What the coordinator was told, and what it answered."""
        if not self._is_full(now_ns):
            self.steps.append((now_ns, event, actions))

    def _is_full(self, now_ns: int) -> bool:
        if self.full_ns is None and len(self.spans) + len(self.steps) >= MOST:
            self.full_ns = now_ns
            log.warning(
                "the trace is full after %.0f s (%d entries): the rest of the run is not in it; "
                "--capture keeps decisions of long runs on disk",
                (now_ns - self.start_ns) / 1e9,
                MOST,
            )
        return self.full_ns is not None

    def save(self, path: str | Path, config: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Write the file, replacing an old one only when the new one is complete.

        Raises ConfigError when it cannot be written.
        """
        spans = _side_by_side(self.spans)
        others = {span[0] for span in spans} - set(LANES)  # fallback ops, or a baseline's
        lanes = (*LANES, *sorted(others))
        events = [self._event(lanes.index(span[0]), *span[1:]) for span in spans]
        content = {
            "traceEvents": _named(lanes) + events,
            "displayTimeUnit": "ms",
            "otherData": {**about, **self._end()},
            "heimdall": {
                "schema": SCHEMA,
                "config": dict(config),
                "records": [record(*step) for step in self.steps],
            },
        }
        try:
            replace_file(Path(path), json.dumps(content).encode())
        except OSError as error:
            raise ConfigError(f"cannot write trace {path}: {error.strerror or error}") from error

    def _end(self) -> dict[str, float]:
        """When it was full."""
        return {} if self.full_ns is None else {"full_s": (self.full_ns - self.start_ns) / 1e9}

    def _event(
        self, lane: int, name: str, start_ns: int, end_ns: int, details: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "ph": "X",
            "pid": 1,
            "tid": lane,
            "name": name,
            "ts": (start_ns - self.start_ns) / 1e3,
            "dur": (end_ns - start_ns) / 1e3,
            "args": dict(details),
        }


def _side_by_side(spans: Sequence[Span]) -> list[Span]:
    """These spans with a lane for each of the CPU's workers: in one lane viewers take what overlaps
    for a mistake. Which worker it was does not matter: a span goes to the first lane with room."""
    free_ns: list[int] = []  # the end of each lane
    lanes: dict[int, str] = {}
    of_cpu = [index for index, span in enumerate(spans) if span[0] == Lane.CPU]
    for index in sorted(of_cpu, key=lambda index: spans[index][2]):
        _, _, start_ns, end_ns, _ = spans[index]
        row = next((row for row, ns in enumerate(free_ns) if ns <= start_ns), len(free_ns))
        free_ns[row : row + 1] = [end_ns]
        lanes[index] = f"{Lane.CPU}-{row}" if row else str(Lane.CPU)
    return [(lanes.get(index, span[0]), *span[1:]) for index, span in enumerate(spans)]


def _named(lanes: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "pid": 1, "tid": index, "name": "thread_name", "args": {"name": lane}}
        for index, lane in enumerate(lanes)
    ]


def read_recording(path: str | Path) -> Recording:
    """The recording in a trace file, or in the file of a session that was kept. Raises ConfigError
    when it has none or is damaged."""
    if Path(path).suffix.lower() == KEPT:
        return _of_session(Path(path))
    try:
        content = json.loads(Path(path).read_text())
        data = content["heimdall"]
        if data["schema"] != SCHEMA:
            raise ConfigError(
                f"trace {path} has schema {data['schema']}, this version reads {SCHEMA}"
            )
        if not isinstance(data["config"], Mapping):
            raise ConfigError(f"the configuration in {path} is damaged: it is no table")
        return Recording(data["config"], _listed(data["records"], Path(path)))
    except OSError as error:
        raise ConfigError(f"cannot read trace {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(
            f"{path} is not a trace written by `heimdall run --trace`: {error}"
        ) from error


def _of_session(path: Path) -> Recording:
    from heimdall.capture import mcap_messages as messages  # these load OpenCV
    from heimdall.capture.mcap_reader import as_json, read_messages

    config: object = None
    records: list[Any] = []
    for message in read_messages(path):
        if message.topic == messages.RUN and (about := as_json(message)).get("config"):
            if about.get("schema") != messages.SCHEMA:
                raise ConfigError(
                    f"session {path} has schema {about.get('schema')}, this version reads "
                    f"{messages.SCHEMA}"
                )
            config = about["config"]
        elif message.topic == messages.DECISIONS:
            records += _listed(as_json(message).get("records", []), path)
    if not isinstance(config, Mapping):
        raise ConfigError(
            f"{path} has no decisions ({messages.RUN}, {messages.DECISIONS}): give a session kept "
            "by `heimdall run --capture`"
        )
    return Recording(config, records)


def _listed(records: object, path: Path) -> list[Any]:
    if not isinstance(records, list):
        raise ConfigError(f"the decisions in {path} are damaged: {str(records)[:80]} is no list")
    return records
