"""The tables of a scenario's file: what it says of a network, of a model, and of their events."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, model_validator

from heimdall.app import DNN
from heimdall.errors import unknown
from heimdall.vocabulary.enums import Priority

MOST_REQUESTS = 1_000_000
LONGEST_S = 86_400.0
_MOST_AT_ONCE = 1000  # requests of one event
_LONGEST_MS = 3_600_000.0
_LONGEST_ALONE_MS = 10_000
_FASTEST_HZ = 100_000.0
# What a DNN declared by an app may be given instead.
_TIMING = ("rate_hz", "max_rate_hz", "latency_constraint_ms", "on_event")
_OVERRIDES = (*_TIMING, "priority", "beta", "gamma", "l0")


class Table(BaseModel):
    """One table of a scenario's file, its keys as attributes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EventProcess(Table):
    """When something is asked for: at random (``poisson``), at even times (``periodic``), or in a
    ``closed`` loop: again as soon as all that the last event has led to is answered.

    ``phase``: of a periodic one, the share of its period at which it begins; None: requests begin
    anywhere in it (clients do not know of each other), an app's DNN at its end. ``jitter_ms``: how
    much earlier or later than due each comes at most."""

    process: Literal["poisson", "periodic", "closed"]
    rate_hz: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=_FASTEST_HZ)
    phase: float | None = Field(default=None, ge=0, lt=1)
    jitter_ms: float = Field(default=0.0, allow_inf_nan=False, ge=0, le=_LONGEST_MS)

    @model_validator(mode="after")
    def _has_a_rate_or_needs_none(self) -> EventProcess:
        if self.process == "closed" and self.rate_hz is not None:
            raise ValueError("a closed loop has no rate_hz: it goes on when all is answered")
        if self.process != "closed" and self.rate_hz is None:
            raise ValueError(f"a {self.process} process needs rate_hz")
        if self.process != "periodic" and (self.phase is not None or self.jitter_ms):
            raise ValueError(f"phase and jitter_ms are of a periodic process, not {self.process}")
        if self.rate_hz is not None and self.jitter_ms >= 500 / self.rate_hz:
            raise ValueError(f"jitter_ms = {self.jitter_ms} is half a period or more")
        return self

    def times_s(self, draw: random.Random) -> Iterator[float]:
        """When requests come, without end; of a closed loop, none."""
        anywhere = self.process == "periodic" and self.phase is None
        at_s = 0.0
        for wait_s in self._waits_s(draw, draw.random() if anywhere else self.phase or 0.0):
            at_s += wait_s
            yield max(at_s + self._late_s(draw), 0.0)

    def waits_s(self, seed: int) -> Iterator[float]:
        """Seconds from each event of an app's DNN to the next; the same for the same seed."""
        draw, before_s = random.Random(seed), 0.0
        for wait_s in self._waits_s(draw, 1.0 if self.phase is None else self.phase):
            late_s = self._late_s(draw)
            yield max(wait_s + late_s - before_s, 0.0)
            before_s = late_s

    def _waits_s(self, draw: random.Random, phase: float) -> Iterator[float]:
        """Seconds from each event to the next as they are due, the first after ``phase``."""
        if self.rate_hz is None:
            return
        if self.process == "poisson":
            while True:
                yield draw.expovariate(self.rate_hz)
        yield phase / self.rate_hz
        while True:
            yield 1 / self.rate_hz

    def _late_s(self, draw: random.Random) -> float:
        jitter_s = self.jitter_ms / 1000
        return draw.uniform(-jitter_s, jitter_s) if jitter_s else 0.0


class DnnSettings(Table):
    """What a scenario says of one DNN; None: as the app declares it.

    ``reference`` is the paper's network for this task (Table 2), under which the phones' profiles
    list it. ``max_rate_hz = inf`` lifts the app's cap. A ``model`` that is not the app's stands in
    for its load only: its results do not reach the app.

    ``alone_ms``: live, the network gets the input size at which it takes so long alone on this
    machine, its fallback ops included (see ``loads``); the option ``size`` is where the search
    begins. A phone's load is that of its ``reference``.
    """

    rate_hz: PositiveFloat | None = None
    max_rate_hz: PositiveFloat | None = None
    latency_constraint_ms: PositiveFloat | None = None
    priority: str | None = None
    beta: PositiveFloat | None = None
    gamma: PositiveFloat | None = None
    l0: PositiveFloat | None = None
    on_event: bool | None = None
    model: str | None = None
    options: Mapping[str, Any] | None = None
    alone_ms: float | None = Field(default=None, gt=0, le=_LONGEST_ALONE_MS)
    force_fallback: tuple[str, ...] | None = None
    event: EventProcess | None = None
    reference: str | None = None

    @model_validator(mode="after")
    def _events_make_it_event_driven(self) -> DnnSettings:
        if self.event is not None and self.on_event is False:
            raise ValueError("has an event process, but on_event = false")
        if self.event is not None and self.event.process == "closed":
            raise ValueError("event: a closed loop is of requests: give poisson or periodic")
        return self

    def applied_to(self, declared: DNN) -> DNN:
        """``declared`` with everything that is set here."""
        changes = {name: value for name in _OVERRIDES if (value := getattr(self, name)) is not None}
        if self.event is not None:
            changes["on_event"] = True
        if self.max_rate_hz == float("inf"):
            changes["max_rate_hz"] = None
        if self.model is not None and self.model != declared.model:
            changes |= {"model": self.model, "options": {}}
        if self.options is not None:
            changes["options"] = dict(self.options)
        if self.force_fallback is not None:
            changes["force_fallback"] = self.force_fallback
        return replace(declared, **changes)


class Throttle(Table):
    """A GPU that gets hot: ``after_s`` seconds of a run its work takes ``factor`` times as long."""

    after_s: float = Field(ge=0)
    factor: float = Field(gt=0, le=100)


class ModelSettings(Table):
    """One model that is asked for.

    ``event``: when; or ``after``: whenever a request of that model has finished. ``number``: how
    many requests each time makes; one of several, drawn by the seed. ``slo_multiplier``: the
    SLO as a multiple of what the model takes alone (see ``Scenario.lone``).
    """

    reference: str | None = None
    model: str | None = None
    event: EventProcess | None = None
    after: str | None = None
    number: int | tuple[int, ...] = 1
    slo_ms: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=_LONGEST_MS)
    slo_multiplier: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=1e6)
    priority: str = Priority.NORMAL

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of requests that one time may make."""
        return (self.number,) if isinstance(self.number, int) else self.number

    def slo_ns(self, lone_ns: float) -> int | None:
        """The SLO of a model that takes so long alone; None where there is none."""
        if self.slo_ms is not None:
            return round(self.slo_ms * 1e6)
        return None if self.slo_multiplier is None else round(self.slo_multiplier * lone_ns)

    @model_validator(mode="after")
    def _makes_sense(self) -> ModelSettings:
        if (self.event is None) == (self.after is None):
            raise ValueError("needs either event (when it is asked for) or after (which model)")
        if self.slo_ms is not None and self.slo_multiplier is not None:
            raise ValueError("has slo_ms and slo_multiplier: give one of them")
        if not self.numbers or not all(0 <= each <= _MOST_AT_ONCE for each in self.numbers):
            raise ValueError(f"number must be from 0 to {_MOST_AT_ONCE}, or a list of such")
        if self.event is not None and not any(self.numbers):
            raise ValueError("number is 0: it would never be asked for")
        if self.event is not None and self.event.process == "closed" and not all(self.numbers):
            raise ValueError("number is 0: a round of a closed loop needs a request")
        if self.priority not in Priority.values():
            raise ValueError(unknown("priority", self.priority, Priority.values()))
        return self


class Away(Table):
    """A processor that is lost for a while."""

    processor: str
    from_s: float = Field(allow_inf_nan=False, ge=0, le=LONGEST_S)
    for_s: float = Field(allow_inf_nan=False, gt=0, le=LONGEST_S)
