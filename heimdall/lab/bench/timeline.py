"""What a recorded run looked like: what had which processor when, and what each DNN was worth."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

from heimdall.coordinator.codec import from_dict
from heimdall.coordinator.coordinator import Coordinator
from heimdall.errors import ConfigError, HeimdallError
from heimdall.runtime.telemetry.trace import read_recording
from heimdall.schedulers import create
from heimdall.vocabulary.enums import Lane
from heimdall.vocabulary.plans import DnnPlan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Span:
    """A piece of work in a lane; times in ms since the first."""

    lane: str
    name: str
    start_ms: float
    ms: float
    ops: str = ""  # of a chunk: the first op, and the one after the last
    stage: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Timeline:
    """One run. ``utility`` is each DNN's (time in ms, utility over that of a fresh result; NaN
    while nothing is enqueued), and ``overhead`` what its chunks took beyond the same ops in the
    whole network, as a part of that; both are empty for a run without coordination, and one of
    requests."""

    spans: tuple[Span, ...]
    utility: dict[str, list[tuple[float, float]]]
    overhead: dict[str, float]

    @property
    def lanes(self) -> list[str]:
        """In the order of the file, those without work left out."""
        return list(dict.fromkeys(span.lane for span in self.spans))

    @property
    def further(self) -> list[str]:
        """The processors beside the GPU: where chunks have run."""
        ran = {span.lane for span in self.spans if span.ops}
        return [lane for lane in self.lanes if lane in ran and lane != Lane.GPU]


def read_timeline(path: Path, policy: str | None = None) -> Timeline:
    """The timeline in a trace file of ``heimdall run`` or ``bench``; ``policy``: the file of the
    run's policy, where that is a user's. Utilities are left out, with a warning, where the run
    cannot be replayed. Raises ConfigError when the file is damaged."""
    try:
        events = json.loads(path.read_text())["traceEvents"]
        lanes = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
        drawn = [e for e in events if e["ph"] == "X"]
        start_us = min((e["ts"] for e in drawn), default=0.0)
        spans = tuple(_span(e, lanes, start_us) for e in drawn)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"trace {path} cannot be read: {error!r}") from error
    recording = read_recording(path)
    order = {lane: tid for tid, lane in lanes.items()}
    spans = tuple(sorted(spans, key=lambda span: (order[span.lane], span.start_ms)))
    if not recording.config:
        return Timeline(spans, {}, {})
    plans = [from_dict(plan) for plan in recording.config["dnns"]]
    if any(plan.queued for plan in plans):  # many jobs of one, each with a utility of its own
        return Timeline(spans, {}, {})
    try:
        utility = _utility(recording.config, recording.records, policy)
    except HeimdallError as error:
        log.warning("no utilities over time: the run cannot be replayed: %s", error)
        utility = {}
    return Timeline(spans, utility, _overhead(spans, plans))


def _span(event: dict[str, Any], lanes: dict[int, str], start_us: float) -> Span:
    details = event["args"]
    return Span(
        lanes[event["tid"]],
        event["name"],
        (event["ts"] - start_us) / 1e3,
        event["dur"] / 1e3,
        details.get("ops", ""),
        details.get("stage", 0),
        details.get("reason", ""),
    )


def _utility(config: Any, records: Any, policy: str | None) -> dict[str, list[tuple[float, float]]]:
    """Replays the run: the utilities of Eq. 3 are not recorded, but follow from the events."""
    coordinator = Coordinator.from_config(config, None if policy is None else create(policy))
    fresh = {plan["name"]: from_dict(plan).utility.l0 or 1.0 for plan in config["dnns"]}
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in fresh}
    first_ns = records[0]["now_ns"] if records else 0
    for entry in records:
        now_ns = entry["now_ns"]
        for name, dnn in coordinator.snapshot(now_ns).dnns.items():  # before a result resets it
            value = nan if dnn.utility is None else dnn.utility / fresh[name]
            series[name].append(((now_ns - first_ns) / 1e6, value))
        if entry["event"] is None:
            coordinator.wake(now_ns)
        else:
            coordinator.receive(from_dict(entry["event"]), now_ns)
    return series


def _overhead(spans: tuple[Span, ...], plans: list[DnnPlan]) -> dict[str, float]:
    """Section 9.3: what the chunks on the GPU took, against the same ops as profiled."""
    stages = {plan.name: plan.stages for plan in plans}
    took: defaultdict[str, float] = defaultdict(float)
    profiled: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        if span.lane == Lane.GPU and span.ops:
            start, _, end = span.ops.partition("-")
            took[span.name] += span.ms
            ops = stages[span.name][span.stage].op_ns[int(start) : int(end)]
            profiled[span.name] += sum(ops) / 1e6
    return {name: took[name] / profiled[name] - 1 for name in stages if profiled[name]}
