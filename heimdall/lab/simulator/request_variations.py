"""A scenario of requests with another figure in one place, as ``variations`` has machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from heimdall.app.options import check_number
from heimdall.errors import ArgumentError, ConfigError, unknown
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.settings import EventProcess, ModelSettings
from heimdall.vocabulary.enums import Priority

Vary = Callable[[Scenario, Any], Scenario]


def vary_requests(scenario: Scenario, values: Mapping[str, Any]) -> Scenario:
    """The scenario with other values of what ``REQUEST_VARIATIONS`` lists.

    ``rate``: all open streams so many times as fast; ``slo_multiplier``: that of every model;
    ``poisson_hz``: what is asked for periodically comes at random instead, so many times a second,
    but for what comes most urgently (Pantheon, section 5.3: tasks behind a detection);
    ``apart``: 1 for periodic requests that begin anywhere in their period, as those of cameras that
    are not synchronised; ``best_effort_hz``: how often models of low priority are asked for;
    ``noise``: relative standard deviation of what runs, on every processor; ``estimates``: that of
    what policies are told. The run takes the last two from the values.

    Raises ConfigError for names that are not known, and for values out of range.
    """
    for name, value in values.items():
        if name not in REQUEST_VARIATIONS:
            raise ConfigError(unknown("variation of requests", name, REQUEST_VARIATIONS))
        scenario = REQUEST_VARIATIONS[name](scenario, value)
    return scenario


def _number(name: str, value: Any, **limits: float) -> None:
    try:
        check_number(name, value, **limits)
    except ArgumentError as error:
        raise ConfigError(f"{name}={error.value}: {error.problem}") from error


def _vary_spread(name: str) -> Vary:
    """A standard deviation, which the run takes from the values."""

    def vary(scenario: Scenario, value: Any) -> Scenario:
        _number(name, value, least=0, most=1)
        return scenario

    return vary


def _vary_rate(scenario: Scenario, value: Any) -> Scenario:
    _number("rate", value, above=0, most=1000)
    return scenario.faster(value)


def _vary_slo(scenario: Scenario, value: Any) -> Scenario:
    _number("slo_multiplier", value, above=0, most=1e6)
    slo = {"slo_ms": None, "slo_multiplier": value}
    return _each_model(scenario, lambda each: each.model_copy(update=slo))


def _vary_poisson(scenario: Scenario, value: Any) -> Scenario:
    """The models with the shortest SLO stay as they are: they detect what the others look at."""
    _number("poisson_hz", value, above=0, most=1000)
    slos = [each.slo_ms for each in scenario.models.values() if each.slo_ms is not None]
    event = EventProcess(process="poisson", rate_hz=value)

    def varied(each: ModelSettings) -> ModelSettings:
        periodic = each.event is not None and each.event.process == "periodic"
        detects = each.slo_ms is None or each.slo_ms == min(slos)
        return each.model_copy(update={"event": event}) if periodic and not detects else each

    return _each_model(scenario, varied)


def _vary_apart(scenario: Scenario, value: Any) -> Scenario:
    if value not in (0, 1):
        raise ConfigError(f"apart={value}: give 1, or 0 for the phases that the scenario has")

    def varied(each: ModelSettings) -> ModelSettings:
        if not value or each.event is None or each.event.process != "periodic":
            return each
        return each.model_copy(update={"event": each.event.model_copy(update={"phase": None})})

    return _each_model(scenario, varied)


def _vary_best_effort(scenario: Scenario, value: Any) -> Scenario:
    _number("best_effort_hz", value, above=0, most=1000)

    def varied(each: ModelSettings) -> ModelSettings:
        if each.event is None or each.priority != Priority.LOW:
            return each
        return each.model_copy(update={"event": each.event.model_copy(update={"rate_hz": value})})

    return _each_model(scenario, varied)


def _each_model(scenario: Scenario, varied: Callable[[ModelSettings], ModelSettings]) -> Scenario:
    models = {name: varied(each) for name, each in scenario.models.items()}
    return scenario.model_copy(update={"models": models})


REQUEST_VARIATIONS: Mapping[str, Vary] = {
    "noise": _vary_spread("noise"),
    "estimates": _vary_spread("estimates"),
    "rate": _vary_rate,
    "poisson_hz": _vary_poisson,
    "apart": _vary_apart,
    "best_effort_hz": _vary_best_effort,
    "slo_multiplier": _vary_slo,
}
