"""Scenarios: TOML files in apps/ that say what runs, for comparisons: an app's networks at its
frame rate, streams of requests for models, or both beside each other.

One that names an app overrides it, and never repeats what the app declares; without an app its
networks are simulated only, and it declares them itself ([dnns.NAME]). Models that are asked for
have tables of their own:

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
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from heimdall.app import DNN, App, load_app, validate
from heimdall.app.options import MAX_FPS, MAX_SIDE, check_number, check_scheduler, check_size
from heimdall.errors import ConfigError, unknown
from heimdall.lab.bench.problems import first_problem
from heimdall.lab.bench.renderer import FILE, Renderer
from heimdall.lab.bench.settings import (
    LONGEST_S,
    MOST_REQUESTS,
    Away,
    DnnSettings,
    ModelSettings,
    Table,
    Throttle,
)
from heimdall.lab.bench.systems import parse_system
from heimdall.lab.scenarios import FOLDERS
from heimdall.schedulers import name_of
from heimdall.vocabulary.processors import GPU

_OF_FRAMES = ("fps", "size", "scheduler", "seed", "throttle", "without")
_OF_REQUESTS = (
    *("device", "system", "requests", "seconds", "frames", "lone", "processors", "load", "away"),
    *("drain", "actor", "drop_late"),
)


_NS_PER_S = 1e9
_WHAT_DRAWS = "name an app, or declare [dnns.NAME]"
_WHAT_ASKS = "declare [models.NAME]"


class Scenario(Table):
    """A workload: an app's networks (``draws``), requests for ``models``, or both.

    ``dnns`` holds what the file says, ``declared`` all DNNs as they will run.
    """

    name: str = Field(description="As the file is called.")
    title: str = Field(description="One line for people; the file's name by default.")
    app: str | None = Field(
        default=None,
        description="The app that runs: a bundled name, or a file beside this one. Without one, "
        "DNNs are declared in `dnns` and can only be simulated.",
    )
    fps: float = Field(  # 0: it draws nothing
        default=0.0,
        gt=0,
        le=MAX_FPS,
        description="Frames a second; the app's by default. Required with `dnns` and no app.",
    )
    size: tuple[int, int] = Field(
        default=(0, 0), description="Width and height drawn; the app's by default, as `fps` is."
    )
    scheduler: str = Field(default="max-total", description="The policy; the app's by default.")
    seed: int = Field(default=0, description="Of the times of the DNNs' events.")
    throttle: Throttle | None = Field(default=None, description="Simulated: a GPU that gets hot.")
    dnns: Mapping[str, DnnSettings] = Field(
        default_factory=dict, description="What is other than the app declares, by DNN."
    )
    without: tuple[str, ...] = Field(default=(), description="DNNs of the app that do not run.")
    device: str | None = Field(
        default=None, description="What requests are simulated on, unless `--device` says."
    )
    system: str = Field(
        default="response-ratio", description="What serves requests, unless `--system` says."
    )
    requests: int | None = Field(
        default=None,
        ge=1,
        le=MOST_REQUESTS,
        description="It ends after so many of all open streams together, those that come `after` "
        "them left out.",
    )
    seconds: float | None = Field(
        default=None,
        allow_inf_nan=False,
        gt=0,
        le=LONGEST_S,
        description="No more requests come after so many.",
    )
    frames: int | None = Field(
        default=None,
        ge=1,
        le=MOST_REQUESTS,
        description="It ends when each closed loop has gone round so many times.",
    )
    lone: Literal["mean", "p99"] = Field(
        default="mean",
        description="What multiples of the time that a model takes alone are of: its mean or its "
        "99th percentile.",
    )
    processors: tuple[str, ...] = Field(
        default=(GPU,),
        description="What requests run on, as `--processors` takes them; simulated, all that the "
        "device has unless it is given.",
    )
    load: float | None = Field(
        default=None,
        allow_inf_nan=False,
        gt=0,
        le=100,
        description="Live: open streams are so much faster or slower that what they ask for, one "
        "after the other, takes this share of the time.",
    )
    away: tuple[Away, ...] = Field(
        default=(), description="Simulated: processors that are lost for a while."
    )
    drain: bool = Field(
        default=True,
        description="What is under way is finished; `false`: it ends with `seconds`, whatever "
        "waits then.",
    )
    drop_late: bool = Field(
        default=False,
        description="A request that has not begun at its deadline is dropped, whatever the system, "
        "with what would have come `after` it.",
    )
    actor: str | None = Field(
        default=None,
        description="Of a system that learns, what it has learnt: a bundled name, or a file "
        "beside this one.",
    )
    models: Mapping[str, ModelSettings] = Field(
        default_factory=dict, description="What is asked for, by model."
    )

    @property
    def draws(self) -> bool:
        """True if the scenario has networks that run beside frames."""
        return self.app is not None or bool(self.dnns)

    @model_validator(mode="after")
    def _keys_fit_what_it_has(self) -> Scenario:
        if not self.draws and not self.models:
            raise ValueError(f"it has no DNN and no model: {_WHAT_DRAWS}, or {_WHAT_ASKS}")
        for key in sorted(self.model_fields_set):
            if key in _OF_FRAMES and not self.draws:
                raise ValueError(f"{key}: is of what draws: {_WHAT_DRAWS}")
            if key in _OF_REQUESTS and not self.models:
                raise ValueError(f"{key}: is of requests: {_WHAT_ASKS}")
        return self

    @model_validator(mode="after")
    def _frames_can_be_drawn(self) -> Scenario:
        for key in ("fps", "size") if self.draws else ():
            if key not in self.model_fields_set:
                raise ValueError(f"{key}: is missing")
        if self.draws and not all(1 <= side <= MAX_SIDE for side in self.size):
            raise ValueError(f"size must be two sides of 1 to {MAX_SIDE} pixels")
        return self

    @model_validator(mode="after")
    def _requests_begin_and_end(self) -> Scenario:
        if not self.models:
            return self
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

    @model_validator(mode="after")
    def _frames_have_ends(self) -> Scenario:
        for name, settings in self.models.items():
            if settings.deadline is None or settings.after is None:
                continue
            if self.models[self.before(name)[1]].deadline is None:
                raise ValueError(f"models.{name}.deadline: {settings.after} has no such deadline")
            if not self.drop_late:
                raise ValueError(f"models.{name}.deadline: needs drop_late = true: it may be over")
        return self

    def drawing(self, fps: float | None, size: tuple[int, int] | None) -> Scenario:
        """This scenario at another rate or size of its frames; where nothing is drawn, beside
        frames of the camera. Raises ConfigError for values out of range."""
        check_number("fps", fps, above=0, most=MAX_FPS)
        if size is not None:
            check_size(size)
        changes: dict[str, Any] = {} if fps is None else {"fps": fps}
        changes |= {} if size is None else {"size": size}
        if changes and not self.draws:
            changes = {"fps": Renderer.fps, "size": Renderer.size, **changes, "app": FILE}
        return self.model_copy(update=changes)

    def settings(self, dnn: str) -> DnnSettings:
        """What this scenario says of ``dnn``."""
        return self.dnns.get(dnn, DnnSettings())

    def without_fallback(self) -> Scenario:
        """This scenario, with no op forced to the CPU."""
        none = {"force_fallback": ()}
        dnns = {name: settings.model_copy(update=none) for name, settings in self.dnns.items()}
        return self.model_copy(update={"dnns": dnns})

    def with_sizes(self, sizes: Mapping[str, tuple[int, int]]) -> Scenario:
        """This scenario, with an input of (height, width) for each of these DNNs."""
        dnns = {**self.dnns}
        for dnn in self.declared():
            if dnn.name in sizes:
                options = {"options": {**dnn.options, "size": list(sizes[dnn.name])}}
                dnns[dnn.name] = self.settings(dnn.name).model_copy(update=options)
        return self.model_copy(update={"dnns": dnns})

    def check_draws(self) -> None:
        """Raise ConfigError unless it has networks that run beside frames."""
        if not self.draws:
            raise ConfigError(f"scenario {self.name!r} draws nothing: {_WHAT_DRAWS}")

    def check_asks(self) -> None:
        """Raise ConfigError unless it has models that are asked for."""
        if not self.models:
            raise ConfigError(f"scenario {self.name!r} has no requests: {_WHAT_ASKS}")

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

    def ending_after(self, seconds: float) -> Scenario:
        """This scenario, where no more requests come after so many seconds."""
        ends = {"requests": None, "frames": None, "seconds": seconds}
        return self.model_copy(update=ends)

    def faster(self, times: float) -> Scenario:
        """This scenario, with all open streams so many times as fast."""
        models = {}
        for name, settings in self.models.items():
            event = settings.event
            if event is not None and event.rate_hz is not None:
                sooner = event.model_copy(update={"rate_hz": event.rate_hz * times})
                settings = settings.model_copy(update={"event": sooner})
            models[name] = settings
        return self.model_copy(update={"models": models})

    def slo_ns(self, model: str, lone_ns: float) -> int | None:
        """The SLO of a model that takes so long alone; None where there is none. Of one whose
        deadline is its period's end, the period, which its requests have at most."""
        settings = self.models[model]
        if settings.deadline is None:
            return settings.slo_ns(lone_ns)
        event = self.models[self.before(model)[-1]].event
        assert event is not None
        assert event.rate_hz is not None
        return round(_NS_PER_S / event.rate_hz)

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
        numbers = [self.models[each].numbers for each in chain]
        means = [sum(each) / len(each) for each in numbers]
        return event.rate_hz * math.prod(means)

    def reference(self, model: str) -> str:
        """The network of a device's profile that a model stands for."""
        return self.models[model].reference or model


def load_scenario(name_or_path: str) -> Scenario:
    """The scenario of a bundled name, or of a ``.toml`` file.

    Raises ConfigError for an unknown name (listing the valid ones), a file that cannot be read,
    and every impossible value, naming it.
    """
    path = _find(name_or_path)
    table = _read(path)
    says_scheduler = "scheduler" in table
    if isinstance(table.get("app"), str):
        table = _of_app(path, table)
    try:
        scenario = Scenario.model_validate({"title": path.stem, **table, "name": path.stem})
        scenario = _with_files_beside(path, scenario)
        parse_system(scenario.system)
        dnns = scenario.declared()
    except ValidationError as error:
        raise ConfigError(f"scenario {path}: {first_problem(error, Scenario)}") from error
    except ConfigError as error:
        raise ConfigError(f"scenario {path}: {error}") from error
    if says_scheduler:  # an app's own may be an object, which has no name to be found by
        check_scheduler(scenario.scheduler, f"scenario {path}")
    _check_whole(path, scenario, dnns)
    return scenario


def scenario_names(draws: bool | None = None) -> list[str]:
    """The bundled scenarios: those that draw, those that do not, or all."""
    return sorted(path.stem for path in _bundled().values() if draws in (None, _draws(path)))


def _bundled() -> dict[str, Path]:
    """The scenarios of all folders by name; the laboratory's own come first."""
    files = [path for folder in FOLDERS.values() for path in sorted(folder.glob("*.toml"))]
    return {path.stem: path for path in reversed(files)}


def _draws(path: Path) -> bool:
    return not _read(path).keys().isdisjoint(("app", "dnns"))


def _read(path: Path) -> dict[str, Any]:
    """What a file holds, unchecked."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"scenario {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"scenario {path} is not valid TOML: {error}") from error


def _of_app(path: Path, table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a scenario that names an app, with the app's values where it is silent."""
    name = table["app"]
    if ".py" in name and not Path(name).is_absolute():  # a file is looked for beside the scenario
        name = str(path.parent / name)
    app = load_app(name)
    validate(app)
    names, without = [dnn.name for dnn in app.dnns], table.get("without")
    _check_names(path, without, names)
    kept = [name for name in names if not (isinstance(without, list) and name in without)]
    _check_names(path, table.get("dnns"), kept)
    silent = {"fps": app.fps, "size": app.size, "scheduler": name_of(app.scheduler)}
    return {**silent, **table, "app": name}


def _with_files_beside(path: Path, scenario: Scenario) -> Scenario:
    """The scenario with files of its models, and its actor, that lie beside its own found."""
    models = {}
    for name, settings in scenario.models.items():
        beside = path.parent / (settings.model or "")
        if os.path.isfile(beside):  # which takes any text for a name
            settings = settings.model_copy(update={"model": str(beside)})
        models[name] = settings
    actor = path.parent / (scenario.actor or "")
    found = {"actor": str(actor)} if os.path.isfile(actor) else {}
    return scenario.model_copy(update={"models": models, **found})


def _find(name_or_path: str) -> Path:
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if not os.path.isfile(path):
            raise ConfigError(f"scenario file {path} does not exist")
        return path
    bundled = _bundled()
    if name_or_path not in bundled:
        raise ConfigError(
            unknown("scenario", name_or_path, bundled) + ", or give a file: path/to/scenario.toml"
        )
    return bundled[name_or_path]


def _check_names(path: Path, dnns: object, declared: list[str]) -> None:
    for name in dnns if isinstance(dnns, Mapping | list) else ():
        if name not in declared:
            raise ConfigError(f"scenario {path}: {unknown('DNN', str(name), declared)}")


def _check_whole(path: Path, scenario: Scenario, dnns: tuple[DNN, ...]) -> None:
    """What only shows when the app's declarations and the file's are put together."""
    if both := {dnn.name for dnn in dnns} & set(scenario.models):
        raise ConfigError(f"scenario {path}: models.{min(both)}: a DNN has that name")
    if scenario.draws and not dnns:
        raise ConfigError(f"scenario {path}: it has no DNN; {_WHAT_DRAWS}")
    for dnn in dnns:
        if scenario.app is None and scenario.settings(dnn.name).reference is None:
            raise ConfigError(
                f"scenario {path}: DNN {dnn.name!r} needs a reference, the network it stands for"
            )
        if scenario.app is not None and scenario.settings(dnn.name).alone_ms is not None:
            _check_size_can_be_chosen(f"scenario {path}: DNN {dnn.name!r}: alone_ms", dnn)


def _check_size_can_be_chosen(where: str, dnn: DNN[Any]) -> None:
    from heimdall.lab.bench.standin import PREFIX  # here: few scenarios need what these load
    from heimdall.models.catalog import open_pipeline

    by_name = isinstance(dnn.model, str) and not dnn.model.startswith(PREFIX)
    if not by_name or open_pipeline(str(dnn.model), **dnn.pipeline_options).size_step is None:
        raise ConfigError(f"{where} needs a model whose input may have any size, not {dnn.model}")
    if "size" not in dnn.options:
        raise ConfigError(
            f"{where} needs options = {{ size = [height, width] }} too: what to begin with; its "
            "aspect ratio is kept"
        )
