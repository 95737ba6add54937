"""Scenarios without rendering: TOML files in apps/ that say which models are asked for, and when.

title = "Two models"
device = "jetson-nano"      # what it is simulated on, unless told otherwise
system = "response-ratio"   # ... and under what
requests = 1000             # it ends after so many; or seconds = 60; or frames = 200

[models.VGG19]
reference = "VGG19"         # the network of the device's profile; this is the default
model = "vgg19.onnx"        # live: of the catalogue, or a file beside this one
event = { process = "poisson", rate_hz = 3.6 }
slo_ms = 200                # or slo_multiplier = 4, of what the model takes alone
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from heimdall.bench.scenario import (
    Scenario,
    Table,
    first_problem,
    load_scenario,
    read_scenario,
)
from heimdall.bench.systems import parse_system
from heimdall.errors import ConfigError, unknown
from heimdall.vocabulary.enums import Priority
from heimdall.vocabulary.processors import GPU

MOST_REQUESTS = 1_000_000
_MOST_AT_ONCE = 1000  # requests of one event
_LONGEST_MS = 3_600_000.0
LONGEST_S = 86_400.0
_FASTEST_HZ = 100_000.0


class RequestProcess(Table):
    """When a model is asked for: at random (``poisson``), at even times from a random one on
    (``periodic``: clients do not know of each other), or in a ``closed`` loop: again as soon as
    all that the last event has led to is answered. ``phase``: of a periodic one, the share of its
    period at which it begins, where that is not left to chance; ``jitter_ms``: how much earlier or
    later than due each comes at most."""

    process: Literal["poisson", "periodic", "closed"]
    rate_hz: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=_FASTEST_HZ)
    phase: float | None = Field(default=None, ge=0, lt=1)
    jitter_ms: float = Field(default=0.0, allow_inf_nan=False, ge=0, le=_LONGEST_MS)

    @model_validator(mode="after")
    def _has_a_rate_or_needs_none(self) -> RequestProcess:
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
        """When an open stream's events come, without end; of a closed loop, none."""
        if self.rate_hz is None:
            return
        if self.process == "poisson":
            at_s = draw.expovariate(self.rate_hz)
            while True:
                yield at_s
                at_s += draw.expovariate(self.rate_hz)
        at_s = (draw.random() if self.phase is None else self.phase) / self.rate_hz
        jitter_s = self.jitter_ms / 1000
        while True:
            late_s = draw.uniform(-jitter_s, jitter_s) if jitter_s else 0.0
            yield max(at_s + late_s, 0.0)
            at_s += 1 / self.rate_hz


class ModelSettings(Table):
    """One model that is asked for.

    ``event``: when; or ``after``: whenever a request of that model has finished. ``number``: how
    many requests each time makes; one of several, drawn by the seed. ``slo_multiplier``: the
    SLO as a multiple of what the model takes alone (see ``RequestScenario.lone``).
    """

    reference: str | None = None
    model: str | None = None
    event: RequestProcess | None = None
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


class RequestScenario(Table):
    """A workload of requests. It ends after so many ``requests`` of all open streams together
    (beside those that come ``after`` them), when no more come after so many ``seconds``, or when
    each closed loop has gone round so many times (``frames``); what is under way then is finished.
    ``lone``: what multiples of the time that a model takes alone are of, its mean or its 99th
    percentile. ``drain`` false: it ends when no more requests come, whatever waits then. ``actor``:
    of a system that learns, what it has learnt: a bundled name, or a file beside this one.

    Live, requests run on ``processors`` of this machine, and with a ``load`` all open streams are
    so much faster or slower that what they ask for, whole and one after the other, takes this share
    of the time.
    """

    name: str
    title: str
    device: str | None = None
    system: str = "response-ratio"
    requests: int | None = Field(default=None, ge=1, le=MOST_REQUESTS)
    seconds: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=LONGEST_S)
    frames: int | None = Field(default=None, ge=1, le=MOST_REQUESTS)
    lone: Literal["mean", "p99"] = "mean"
    processors: tuple[str, ...] = (GPU,)
    load: float | None = Field(default=None, allow_inf_nan=False, gt=0, le=100)
    away: tuple[Away, ...] = ()
    drain: bool = True
    actor: str | None = None
    models: Mapping[str, ModelSettings] = Field(min_length=1)

    @model_validator(mode="after")
    def _ends_and_begins(self) -> RequestScenario:
        if sum(each is not None for each in (self.requests, self.seconds, self.frames)) != 1:
            raise ValueError("needs one of requests, seconds and frames: when it ends")
        if not self.drain and self.seconds is None:
            raise ValueError("drain = false needs seconds: when it ends")
        closed = [name for name in self.models if self.loop_of(name) is not None]
        if self.frames is not None and len(closed) != len(self.models):
            raise ValueError("frames are of closed loops: give requests or seconds instead")
        if self.requests is not None and closed:
            raise ValueError(
                f"requests are of open streams: {closed[0]} is in a closed loop; give "
                "frames or seconds instead"
            )
        return self

    def loop_of(self, model: str) -> str | None:
        """The model whose closed loop asks for this one, itself or by way of others; None where
        requests come whatever becomes of others. Raises as ``before`` does."""
        first = self.before(model)[-1]
        event = self.models[first].event
        return first if event is not None and event.process == "closed" else None

    def before(self, model: str) -> list[str]:
        """The model, the one that it comes after, and so on. Raises ValueError where ``after``
        leads nowhere."""
        seen = [model]
        while (before := self.models[seen[-1]].after) is not None:
            if before not in self.models:
                raise ValueError(
                    f"models.{seen[-1]}.after: {unknown('model', before, self.models)}"
                )
            if before in seen:
                raise ValueError(f"models.{model}: it comes after itself: {' <- '.join(seen)}")
            seen.append(before)
        return seen

    def ending_after(self, seconds: float) -> RequestScenario:
        """The same, where no more requests come after so many seconds."""
        ends = {"requests": None, "frames": None, "seconds": seconds}
        return self.model_copy(update=ends)

    def faster(self, times: float) -> RequestScenario:
        """The same, with all open streams so many times as fast."""
        models = {}
        for name, settings in self.models.items():
            event = settings.event
            if event is not None and event.rate_hz is not None:
                sooner = event.model_copy(update={"rate_hz": event.rate_hz * times})
                settings = settings.model_copy(update={"event": sooner})
            models[name] = settings
        return self.model_copy(update={"models": models})

    def offered(self, lone_s: Mapping[str, float]) -> float:
        """The share of a processor's time that open streams ask for, if each request takes as long
        as it does alone."""
        return math.fsum(self.rate_hz(name) * lone_s[name] for name in self.models)

    def rate_hz(self, model: str) -> float:
        """How often it is asked for on average, by an open stream or for what one leads to; 0 in a
        closed loop."""
        chain = self.before(model)
        event = self.models[chain[-1]].event
        if event is None or event.rate_hz is None:
            return 0.0
        means = [sum(numbers) / len(numbers) for numbers in map(self.numbers, chain)]
        return event.rate_hz * math.prod(means)

    def numbers(self, model: str) -> tuple[int, ...]:
        """The numbers of requests that one time may make."""
        return self.models[model].numbers

    def reference(self, model: str) -> str:
        """The network of a device's profile that a model stands for."""
        return self.models[model].reference or model


def load_requests(name_or_path: str) -> RequestScenario:
    """The scenario without rendering of a bundled name, or of a ``.toml`` file.

    Raises ConfigError as ``load_scenario`` does, and for one that draws.
    """
    path, table = read_scenario(name_or_path)
    if "models" not in table:
        raise ConfigError(f"scenario {path}: it has no models that are asked for: [models.NAME]")
    return parse_requests(path, table)


AnyScenario = Scenario | RequestScenario


def load_any(name_or_path: str) -> AnyScenario:
    """The scenario of either kind of a bundled name, or of a file. Raises as the loaders do."""
    _, table = read_scenario(name_or_path)
    return load_requests(name_or_path) if "models" in table else load_scenario(name_or_path)


def parse_requests(path: Path, table: Mapping[str, Any]) -> RequestScenario:
    """What a file says, checked. Raises ConfigError that names the file and the first key that is
    wrong."""
    try:
        found = RequestScenario.model_validate({"title": path.stem, **table, "name": path.stem})
        found = _beside(path, found)
        parse_system(found.system)
    except ValidationError as error:
        raise ConfigError(f"scenario {path}: {first_problem(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"scenario {path}: {error}") from error
    return found


def _beside(path: Path, scenario: RequestScenario) -> RequestScenario:
    """The scenario with model files that lie beside its own found."""
    models = {}
    for name, settings in scenario.models.items():
        beside = path.parent / (settings.model or "")
        if beside.is_file():
            settings = settings.model_copy(update={"model": str(beside)})
        models[name] = settings
    actor = path.parent / (scenario.actor or "")
    found = {"actor": str(actor)} if actor.is_file() else {}
    return scenario.model_copy(update={"models": models, **found})
