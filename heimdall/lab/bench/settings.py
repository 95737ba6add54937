"""The tables of a scenario's file: what it says of a network, of a model, and of their events."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    model_validator,
)

from heimdall.app import DNN
from heimdall.errors import unknown
from heimdall.vocabulary.enums import Priority

MOST_REQUESTS = 1_000_000
LONGEST_S = 86_400.0
_MOST_AT_ONCE = 1000  # requests of one event
_LONGEST_MS = 3_600_000.0
_LONGEST_ALONE_MS = 10_000
_FASTEST_HZ = 100_000.0
_DEADLINES = ("slo_ms", "slo_multiplier", "deadline")
# What a DNN declared by an app may be given instead.
_TIMING = ("rate_hz", "max_rate_hz", "latency_constraint_ms", "on_event")
_OVERRIDES = (*_TIMING, "priority", "beta", "gamma", "l0")


class Table(BaseModel):
    """One table of a scenario's file, its keys as attributes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EventProcess(Table):
    """When something is asked for."""

    process: Literal["poisson", "periodic", "recorded", "closed"] = Field(
        description="At random (`poisson`), at even times (`periodic`), as it was somewhere "
        "(`recorded`), or in a `closed` loop: again as soon as all that the last event has led to "
        "is answered."
    )
    rate_hz: float | None = Field(
        default=None,
        allow_inf_nan=False,
        gt=0,
        le=_FASTEST_HZ,
        description="How often, on average; a closed loop has none.",
    )
    phase: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="Of a periodic one: the share of its period at which it begins. Unless given, "
        "requests begin anywhere in it, and a DNN of an app at its end.",
    )
    jitter_ms: float = Field(
        default=0.0,
        allow_inf_nan=False,
        ge=0,
        le=_LONGEST_MS,
        description="Of a periodic one: how much earlier or later than due each comes at most.",
    )

    waits: tuple[NonNegativeFloat, ...] = Field(
        default=(),
        description="Of a recorded one: from its beginning to the first event and from each to the "
        "next, in any unit: stretched to `rate_hz`. It ends with the last.",
    )

    @model_validator(mode="after")
    def _has_a_rate_or_needs_none(self) -> EventProcess:
        if self.process == "closed" and self.rate_hz is not None:
            raise ValueError("a closed loop has no rate_hz: it goes on when all is answered")
        if self.process != "closed" and self.rate_hz is None:
            raise ValueError(f"a {self.process} process needs rate_hz")
        if self.process != "periodic" and (self.phase is not None or self.jitter_ms):
            raise ValueError(f"phase and jitter_ms are of a periodic process, not {self.process}")
        if (self.process == "recorded") != (sum(self.waits) > 0):
            raise ValueError("waits are of a recorded process, which needs them: some above 0")
        if self.rate_hz is not None and self.jitter_ms >= 500 / self.rate_hz:
            raise ValueError(f"jitter_ms = {self.jitter_ms} is half a period or more")
        return self

    def times_s(self, draw: random.Random) -> Iterator[float]:
        """When requests come, without end unless they are recorded; of a closed loop, none."""
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

    def end_s(self, at_s: float) -> float:
        """When the period ends of what comes at ``at_s``, which jitter has moved by less than half
        of it. Of a periodic process with a ``phase``."""
        assert self.rate_hz is not None
        first = self.phase or 0.0
        return (round(at_s * self.rate_hz - first) + 1 + first) / self.rate_hz

    def _waits_s(self, draw: random.Random, phase: float) -> Iterator[float]:
        """Seconds from each event to the next as they are due, the first after ``phase``."""
        if self.rate_hz is None:
            return
        if self.process == "poisson":
            while True:
                yield draw.expovariate(self.rate_hz)
        if self.waits:
            unit_s = len(self.waits) / self.rate_hz / math.fsum(self.waits)
            yield from (unit_s * each for each in self.waits)
            return
        yield phase / self.rate_hz
        while True:
            yield 1 / self.rate_hz

    def _late_s(self, draw: random.Random) -> float:
        jitter_s = self.jitter_ms / 1000
        return draw.uniform(-jitter_s, jitter_s) if jitter_s else 0.0


class DnnSettings(Table):
    """What a scenario says of one DNN; as the app declares it where the file is silent."""

    rate_hz: PositiveFloat | None = Field(
        default=None, description="The least number of inferences a second."
    )
    max_rate_hz: PositiveFloat | None = Field(
        default=None, allow_inf_nan=True, description="The most; `inf` lifts the app's cap."
    )
    latency_constraint_ms: PositiveFloat | None = Field(
        default=None, description="How long an inference may take."
    )
    priority: str | None = Field(default=None, description="`high`, `normal` or `low`.")
    beta: PositiveFloat | None = Field(
        default=None,
        description="Weight of latency in the utility; the priority's by default, as of the next "
        "two.",
    )
    gamma: PositiveFloat | None = Field(
        default=None, description="Exponent of latency in the utility."
    )
    l0: PositiveFloat | None = Field(default=None, description="Utility of a fresh result.")
    on_event: bool | None = Field(default=None, description="It runs when it is asked for.")
    model: str | None = Field(
        default=None,
        description="Another network: a name of `heimdall models`. One that is not the app's "
        "stands in for its load only: its results do not reach the app.",
    )
    options: Mapping[str, Any] | None = Field(
        default=None, description="Options of the model, such as `size`."
    )
    alone_ms: float | None = Field(
        default=None,
        gt=0,
        le=_LONGEST_ALONE_MS,
        description="Live: the network gets the input size at which it takes so long alone on "
        "this machine, fallback ops included. `options.size` is where the search begins. A "
        "simulated phone has the load of its `reference`.",
    )
    force_fallback: tuple[str, ...] | None = Field(
        default=None, description="Op types or nodes that run on the CPU."
    )
    event: EventProcess | None = Field(default=None, description="When it is asked for.")
    reference: str | None = Field(
        default=None,
        description="The network of the simulated device's profile that it stands for; on phones, "
        "one of the paper's Table 2.",
    )

    @model_validator(mode="after")
    def _events_make_it_event_driven(self) -> DnnSettings:
        if self.event is not None and self.on_event is False:
            raise ValueError("has an event process, but on_event = false")
        if self.event is not None and self.event.process in ("closed", "recorded"):
            process = {"closed": "a closed loop", "recorded": "a recorded process"}
            raise ValueError(
                f"event: {process[self.event.process]} is of requests: give poisson or periodic"
            )
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
    """A GPU that gets hot."""

    after_s: float = Field(ge=0, description="Seconds of a run after which it is slower.")
    factor: float = Field(gt=0, le=100, description="How many times as long its work takes then.")


class ModelSettings(Table):
    """One model that is asked for: by `event`, or `after` another one."""

    reference: str | None = Field(
        default=None,
        description="The network of the simulated device's profile; the table's name by default.",
    )
    model: str | None = Field(
        default=None,
        description="Live: a name of `heimdall models`, or a file beside the scenario's.",
    )
    event: EventProcess | None = Field(default=None, description="When it is asked for.")
    after: str | None = Field(
        default=None, description="It is asked for whenever a request of this model has finished."
    )
    number: int | tuple[int, ...] = Field(
        default=1, description="How many requests each time makes; of a list one, drawn by seed."
    )
    slo_ms: float | None = Field(
        default=None,
        allow_inf_nan=False,
        gt=0,
        le=_LONGEST_MS,
        description="The SLO: how long a request may take.",
    )
    slo_multiplier: float | None = Field(
        default=None,
        allow_inf_nan=False,
        gt=0,
        le=1e6,
        description="The SLO as a multiple of what the model takes alone (see `lone`).",
    )
    deadline: Literal["period"] | None = Field(
        default=None,
        description="`period`: in place of an SLO, until the next one of its stream is due, "
        "whatever the jitter; of a model that comes `after` another, until that one's is.",
    )
    priority: str = Field(default=Priority.NORMAL, description="`high`, `normal` or `low`.")

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
        given = [each for each in _DEADLINES if getattr(self, each) is not None]
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(given)}: give one of them")
        self._check_period()
        if not self.numbers or not all(0 <= each <= _MOST_AT_ONCE for each in self.numbers):
            raise ValueError(f"number must be from 0 to {_MOST_AT_ONCE}, or a list of such")
        if self.event is not None and not any(self.numbers):
            raise ValueError("number is 0: it would never be asked for")
        if self.event is not None and self.event.process == "closed" and not all(self.numbers):
            raise ValueError("number is 0: a round of a closed loop needs a request")
        if self.priority not in Priority.values():
            raise ValueError(unknown("priority", self.priority, Priority.values()))
        return self

    def _check_period(self) -> None:
        """A deadline that is the end of a period needs one that begins at a known time."""
        event = self.event
        if self.deadline is None or event is None:
            return
        if event.process != "periodic" or event.phase is None:
            raise ValueError("deadline: the event must be periodic, with a phase, such as 0")


class Away(Table):
    """A processor that is lost for a while."""

    processor: str = Field(description="Its id in the device's profile.")
    from_s: float = Field(
        allow_inf_nan=False, ge=0, le=LONGEST_S, description="When it is lost, in s of the run."
    )
    for_s: float = Field(
        allow_inf_nan=False, gt=0, le=LONGEST_S, description="How long it is away, in s."
    )
