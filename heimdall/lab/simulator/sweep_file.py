"""What to sweep: a TOML file with a scenario, systems, and what is varied.

scenario = "shopping"
device = "lg-v50"
systems = ["multithread", "max-total"]
seeds = 16
seconds = 60

[[vary]]                                  # all combinations; several tables: each by itself
turn_ms = { from = 10, to = 50, step = 10 }
gpu_noise = [0.01, 0.1]
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heimdall.app.options import MAX_FPS, check_number, check_size, parse_size
from heimdall.errors import ArgumentError, ConfigError, unknown
from heimdall.lab.bench.problems import first_problem, problem
from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.bench.settings import DnnSettings
from heimdall.lab.bench.systems import parse_systems
from heimdall.lab.simulator.devices import HERE
from heimdall.lab.simulator.seeds import check_seeds
from heimdall.lab.simulator.simulate import LONGEST_S, Experiment, prepare
from heimdall.lab.simulator.tables import parse_toml
from heimdall.lab.simulator.variations import VARIATIONS, check_variation

MOST_RUNS = 100_000
_RANGE = ("from", "to", "step")
_DNNS = "dnns."
Axes = Mapping[str, Sequence[Any]]


class SweepFile(BaseModel):
    """The file, before its axes are read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str | None = Field(default=None, description="One line for people.")
    scenario: str = Field(description="A bundled scenario, or a file beside this one.")
    device: str = Field(default="lg-v50", description="What it is simulated on.")
    systems: tuple[str, ...] = Field(
        default=("max-total",), description="Every point is run under each."
    )
    seeds: int = Field(default=16, description="How often, each with other chances.")
    seconds: float = Field(default=60.0, description="Virtual time of one run.")
    vary: tuple[dict[str, Any], ...] = Field(
        description="One table: every combination of its axes. Several `[[vary]]`: one after the "
        "other."
    )


@dataclass(frozen=True)
class Point:
    """One combination under one system."""

    system: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Sweep:
    """A file that was read. ``grids``: of each the values of its axes; all of it can be run, as
    far as the file tells."""

    title: str
    folder: Path
    scenario: str
    device: str
    systems: tuple[str, ...]
    seeds: int
    seconds: float
    grids: tuple[Axes, ...]

    def points(self) -> Iterator[Point]:
        """Every combination under every system."""
        for grid in self.grids:
            for values in itertools.product(*grid.values()):
                for system in self.systems:
                    yield Point(system, dict(zip(grid, values, strict=True)))

    def experiment(self, point: Point) -> Experiment:
        """What a point runs. Raises ConfigError where that makes no sense."""
        values = dict(point.values)
        scenario = load_scenario(self._found(values.pop("scenario", self.scenario)))
        own: dict[str, Any] = {}
        for name in [name for name in values if name in _OF_A_RUN]:
            own[name] = _OF_A_RUN[name](values.pop(name))
        for name in [name for name in values if name.startswith(_DNNS)]:
            scenario = _with_setting(scenario, name, values.pop(name))
        if "luminance" in values:
            values["luminance"] = self._found(values["luminance"])
        device = self._found(values.pop("device", self.device))
        _check_device(device)
        options = {"seconds": self.seconds, "variations": values, **own}
        experiment = prepare(scenario, device, point.system, **options)
        experiment.begin(0)
        return experiment

    def _found(self, name: str) -> str:
        """A file is looked for beside the sweep's own first."""
        beside = self.folder / name
        return str(beside) if beside.suffix and os.path.isfile(beside) else name


def load_sweep(path: Path) -> Sweep:
    """The sweep in a file. Raises ConfigError that says what is wrong with it: keys and names that
    are not known, axes without values, values that are impossible, too many runs."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"sweep {path} cannot be read: {error}") from error
    try:
        return _sweep(path, parse_toml(text))
    except ConfigError as error:
        raise ConfigError(f"sweep {path}: {error}") from error


def _sweep(path: Path, table: Mapping[str, Any]) -> Sweep:
    if isinstance(table.get("vary"), Mapping):
        table = {**table, "vary": [table["vary"]]}
    try:
        content = SweepFile.model_validate(table)
    except ValidationError as error:
        raise ConfigError(first_problem(error, SweepFile)) from error
    systems = tuple(system.typed for system in parse_systems(",".join(content.systems)))
    check_seeds(content.seeds)
    check_number("seconds", content.seconds, above=0, most=LONGEST_S)
    sweep = Sweep(
        content.title or path.stem,
        path.parent,
        content.scenario,
        content.device,
        systems,
        content.seeds,
        content.seconds,
        tuple(dict(_axes(grid)) for grid in content.vary),
    )
    _check(sweep)
    return sweep


def _check(sweep: Sweep) -> None:
    if not any(sweep.grids):
        raise ConfigError("vary: there is nothing to vary; name at least one axis")
    points = sum(math.prod(map(len, grid.values())) for grid in sweep.grids)
    runs = points * len(sweep.systems) * sweep.seeds
    if runs > MOST_RUNS:
        raise ConfigError(
            f"{runs} runs are too many, at most {MOST_RUNS}: there are {points} combinations, "
            f"{len(sweep.systems)} systems and {sweep.seeds} seeds; take longer steps, fewer "
            "seeds, or a [[vary]] table for each axis, which then vary one at a time"
        )
    for grid in sweep.grids:
        for name, values in grid.items():
            for value in values:
                _check_value(sweep, name, value)


# --- axes ---------------------------------------------------------------------------------------


def _axes(table: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, list[Any]]]:
    """(name, values) of every axis; ``dnns.style.beta`` may be written as tables."""
    for key, said in table.items():
        name = inside + key
        if isinstance(said, Mapping) and not said.keys() & set(_RANGE):
            yield from _axes(said, f"{name}.")
            continue
        _check_name(name)
        yield name, _axis(name, said)


def _axis(name: str, said: Any) -> list[Any]:
    if isinstance(said, Mapping):
        values = _steps(name, said)
    else:
        values = said if isinstance(said, list) else [said]
    if not values:
        raise ConfigError(f"vary: {name} has no values")
    for index, value in enumerate(values):
        if value in values[:index]:
            raise ConfigError(f"vary: {name} has {value} twice")
    return values


def _steps(name: str, said: Mapping[str, Any]) -> list[float]:
    """``from`` to ``to``, both included, in steps."""
    if set(said) != set(_RANGE):
        raise ConfigError(f"vary: {name}: a range has from, to and step, not {', '.join(said)}")
    for key in _RANGE:
        _limited(f"vary: {name}.{key}", said[key])
    first, last, step = (said[key] for key in _RANGE)
    if step <= 0 or last < first:
        raise ConfigError(f"vary: {name}: from {first:g} to {last:g} by {step:g} leads nowhere")
    count = math.floor((last - first) / step + 1e-9) + 1
    if count > MOST_RUNS:
        raise ConfigError(f"vary: {name} has {count} values, which are too many: take longer steps")
    values = [round(first + index * step, 9) for index in range(count)]
    whole = all(isinstance(said[key], int) for key in _RANGE)
    return [int(value) for value in values] if whole else values


def _limited(name: str, value: Any, **limits: float) -> None:
    """Raise ConfigError unless it is a number in that range."""
    try:
        if value is None:
            raise ArgumentError("must be a number", value=value)
        check_number("", value, **limits)
    except ArgumentError as error:
        raise ConfigError(f"{name}={error.value}: {error.problem}") from error


def _as_size(value: Any) -> tuple[int, int]:
    """``"1280x720"`` or ``[1280, 720]``."""
    size = parse_size(value) if isinstance(value, str) else value
    check_size(size)
    return (size[0], size[1])


def _as_it_is(value: Any) -> Any:
    return value


_OF_A_RUN = {"fps": _as_it_is, "size": _as_size, "render_ms": _as_it_is}
_NAMES = (*VARIATIONS, *_OF_A_RUN, "scenario", "device")


def _check_name(name: str) -> None:
    if name in _NAMES:
        return
    _, _, setting = name.removeprefix(_DNNS).partition(".")
    if not name.startswith(_DNNS) or not setting:
        raise ConfigError(unknown("axis", name, [*_NAMES, "dnns.NAME.KEY"]))
    if setting not in DnnSettings.model_fields:
        kind = f"key of axis {name.removesuffix(setting)}KEY"
        raise ConfigError(unknown(kind, setting, DnnSettings.model_fields))


def _check_value(sweep: Sweep, name: str, value: Any) -> None:
    """What can be said of a value before a machine is opened."""
    if name in VARIATIONS:
        found = sweep._found(value) if name == "luminance" and isinstance(value, str) else value
        check_variation(name, found)
    elif name == "size":
        try:
            _as_size(value)
        except ConfigError as error:
            raise ConfigError(f"size={value}: {getattr(error, 'problem', error)}") from error
    elif name == "fps":
        _limited(name, value, above=0, most=MAX_FPS)
    elif name == "render_ms":
        _limited(name, value, least=0)
    elif name in ("scenario", "device") and not isinstance(value, str):
        raise ConfigError(f"{name}={value}: must be a name or a file")


def _check_device(device: str) -> None:
    if device == HERE:
        raise ConfigError(
            "device here is measured anew each time, so that points would not be comparable: "
            "measure it into a file (heimdall measure --output FILE) and name that"
        )


def _with_setting(scenario: Scenario, axis: str, value: Any) -> Scenario:
    """The scenario with another setting of a DNN."""
    name, _, setting = axis.removeprefix(_DNNS).partition(".")
    names = [dnn.name for dnn in scenario.declared()]
    if name not in names:
        raise ConfigError(f"{axis}: {unknown('DNN', name, names)}")
    before = scenario.settings(name).model_dump(exclude_none=True)
    try:
        settings = DnnSettings.model_validate({**before, setting: value})
        changed = scenario.model_copy(update={"dnns": {**scenario.dnns, name: settings}})
        changed.declared()
    except ValidationError as error:
        raise ConfigError(f"{axis}={value}: {problem(error, DnnSettings)[1]}") from error
    except ConfigError as error:
        raise ConfigError(f"{axis}={value}: {error}") from error
    return changed
