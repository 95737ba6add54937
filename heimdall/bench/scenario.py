"""Scenarios: TOML files in apps/ that name an app and override it, for comparisons.

A scenario never repeats what its app declares. One without an app is simulated only and
declares its DNNs itself.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationError, model_validator

from heimdall.app import DNN, App, load_app, validate
from heimdall.app.options import MAX_FPS, MAX_SIDE, check_scheduler
from heimdall.errors import ConfigError, unknown
from heimdall.schedulers import name_of
from heimdall.system import paths

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LONGEST_ALONE_MS = 10_000
# What a DNN declared by an app may be given instead.
_TIMING = ("rate_hz", "max_rate_hz", "latency_constraint_ms", "on_event")
_OVERRIDES = (*_TIMING, "priority", "beta", "gamma", "l0")


class Table(BaseModel):
    """One table of a scenario's file, its keys as attributes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EventProcess(Table):
    """When an event-driven DNN is asked for: at even times, or at random ones (Poisson)."""

    process: Literal["poisson", "periodic"]
    rate_hz: PositiveFloat

    def waits_s(self, seed: int) -> Iterator[float]:
        """Seconds from each event to the next; the same for the same seed."""
        draw = random.Random(seed)
        while True:
            poisson = self.process == "poisson"
            yield draw.expovariate(self.rate_hz) if poisson else 1.0 / self.rate_hz


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
    alone_ms: float | None = Field(default=None, gt=0, le=LONGEST_ALONE_MS)
    force_fallback: tuple[str, ...] | None = None
    event: EventProcess | None = None
    reference: str | None = None

    @model_validator(mode="after")
    def _events_make_it_event_driven(self) -> DnnSettings:
        if self.event is not None and self.on_event is False:
            raise ValueError("has an event process, but on_event = false")
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


class Scenario(Table):
    """A workload. ``fps``, ``size`` (width, height) and ``scheduler`` are the app's where the
    file is silent; ``dnns`` holds what the file says, ``declared`` all DNNs as they will run;
    those ``without`` names are the app's and not this workload's."""

    name: str
    title: str
    app: str | None = None
    fps: float = Field(gt=0, le=MAX_FPS)
    size: tuple[int, int]
    scheduler: str = "max-total"
    seed: int = 0
    throttle: Throttle | None = None  # in a simulation; a machine that runs does as it does
    dnns: Mapping[str, DnnSettings] = Field(default_factory=dict)
    without: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _size_can_be_drawn(self) -> Scenario:
        if not all(1 <= side <= MAX_SIDE for side in self.size):
            raise ValueError(f"size must be two sides of 1 to {MAX_SIDE} pixels")
        return self

    def settings(self, dnn: str) -> DnnSettings:
        """What this scenario says of ``dnn``."""
        return self.dnns.get(dnn, DnnSettings())

    def without_fallback(self) -> Scenario:
        """The same, with no op forced to the CPU."""
        none = {"force_fallback": ()}
        dnns = {name: settings.model_copy(update=none) for name, settings in self.dnns.items()}
        return self.model_copy(update={"dnns": dnns})

    def with_sizes(self, sizes: Mapping[str, tuple[int, int]]) -> Scenario:
        """The same, with an input of (height, width) for each of these DNNs."""
        dnns = {**self.dnns}
        for dnn in self.declared():
            if dnn.name in sizes:
                options = {"options": {**dnn.options, "size": list(sizes[dnn.name])}}
                dnns[dnn.name] = self.settings(dnn.name).model_copy(update=options)
        return self.model_copy(update={"dnns": dnns})

    def app_class(self) -> type[App]:
        """The app that this scenario names, unchanged. Raises ConfigError when it has none."""
        if self.app is None:
            raise ConfigError(
                f"scenario {self.name!r} has no app: it can only be simulated (heimdall simulate)"
            )
        return load_app(self.app)

    def declared(self) -> tuple[DNN, ...]:
        """Every DNN as it will run, in the app's order (without an app: in the file's).

        Raises ConfigError where an override makes a declaration impossible.
        """
        if self.app is None:
            return tuple(
                settings.applied_to(DNN(name, model=settings.model or settings.reference or name))
                for name, settings in self.dnns.items()
            )
        kept = [dnn for dnn in self.app_class().dnns if dnn.name not in self.without]
        return tuple(self.settings(dnn.name).applied_to(dnn) for dnn in kept)


def load_scenario(name_or_path: str) -> Scenario:
    """The scenario of a bundled name, or of a ``.toml`` file.

    Raises ConfigError for an unknown name (listing the valid ones), a file that cannot be read,
    and every impossible value, naming it.
    """
    path, table = read_scenario(name_or_path)
    if "models" in table:
        raise ConfigError(f"scenario {path}: it draws nothing, and is no app's: it has [models]")
    says_scheduler = "scheduler" in table
    if isinstance(table.get("app"), str):
        app = load_app(_beside(path, table["app"]))
        validate(app)
        table["app"] = _beside(path, table["app"])
        table = {"fps": app.fps, "size": app.size, "scheduler": name_of(app.scheduler), **table}
        names = [dnn.name for dnn in app.dnns]
        _check_names(path, table.get("without"), names)
        left_out = table.get("without")
        kept = [name for name in names if not (isinstance(left_out, list) and name in left_out)]
        _check_names(path, table.get("dnns"), kept)
    try:
        scenario = Scenario.model_validate({"title": path.stem, **table, "name": path.stem})
        dnns = scenario.declared()
    except ValidationError as error:
        raise ConfigError(f"scenario {path}: {first_problem(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"scenario {path}: {error}") from error
    if says_scheduler:  # an app's own may be an object, which has no name to be found by
        check_scheduler(scenario.scheduler, f"scenario {path}")
    _check_whole(path, scenario, dnns)
    return scenario


def read_scenario(name_or_path: str) -> tuple[Path, dict[str, Any]]:
    """The file of a bundled name, or that file, and what it holds, unchecked. Raises ConfigError
    for an unknown name (listing the valid ones), and a file that cannot be read."""
    path = _find(name_or_path)
    try:
        return path, tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"scenario {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"scenario {path} is not valid TOML: {error}") from error


def scenario_names() -> list[str]:
    """The bundled scenarios of apps."""
    return sorted(path.stem for path in _bundled() if not _asks(path))


def request_scenario_names() -> list[str]:
    """The bundled scenarios without rendering (see ``request_scenario``)."""
    return sorted(path.stem for path in _bundled() if _asks(path))


def _bundled() -> list[Path]:
    return list(paths.APPS.glob("*.toml"))


def _asks(path: Path) -> bool:
    """Whether a bundled scenario is one of requests."""
    return "\n[models." in path.read_text(encoding="utf-8")


def _find(name_or_path: str) -> Path:
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if not path.is_file():
            raise ConfigError(f"scenario file {path} does not exist")
        return path
    names = [path.stem for path in _bundled()]
    if name_or_path not in names:
        raise ConfigError(
            unknown("scenario", name_or_path, names) + ", or give a file: path/to/scenario.toml"
        )
    return paths.APPS / f"{name_or_path}.toml"


def _beside(path: Path, app: str) -> str:
    """An app's file is looked for beside the scenario that names it."""
    return str(path.parent / app) if ".py" in app and not Path(app).is_absolute() else app


def _check_names(path: Path, dnns: object, declared: list[str]) -> None:
    for name in dnns if isinstance(dnns, Mapping | list) else ():
        if name not in declared:
            raise ConfigError(f"scenario {path}: {unknown('DNN', str(name), declared)}")


def _check_whole(path: Path, scenario: Scenario, dnns: tuple[DNN, ...]) -> None:
    """What only shows when the app's declarations and the file's are put together."""
    if not dnns:
        raise ConfigError(f"scenario {path}: it has no DNN; name an app, or declare [dnns.NAME]")
    for dnn in dnns:
        if scenario.app is None and scenario.settings(dnn.name).reference is None:
            raise ConfigError(
                f"scenario {path}: DNN {dnn.name!r} needs a reference, the network it stands for"
            )
        if scenario.app is not None and scenario.settings(dnn.name).alone_ms is not None:
            _check_size_can_be_chosen(f"scenario {path}: DNN {dnn.name!r}: alone_ms", dnn)


def _check_size_can_be_chosen(where: str, dnn: DNN[Any]) -> None:
    from heimdall.bench.standin import PREFIX  # here: few scenarios need what these load
    from heimdall.models.catalog import open_pipeline

    by_name = isinstance(dnn.model, str) and not dnn.model.startswith(PREFIX)
    if not by_name or open_pipeline(str(dnn.model), **dnn.pipeline_options).size_step is None:
        raise ConfigError(f"{where} needs a model whose input may have any size, not {dnn.model}")
    if "size" not in dnn.options:
        raise ConfigError(
            f"{where} needs options = {{ size = [height, width] }} too: what to begin with; its "
            "aspect ratio is kept"
        )


def first_problem(error: ValidationError) -> str:
    """The first of what pydantic found, as ``dnns.hand.rate_hz: Input should be ...``."""
    found = error.errors()[0]
    where = ".".join(str(part) for part in found["loc"])
    return f"{where}: {found['msg']}" if where else str(found["msg"])
