"""A scenario as an App that can run: its app, with the overrides and the event process."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, repeat
from typing import Any

from heimdall.app import DNN, App
from heimdall.capture import Frame
from heimdall.errors import ConfigError
from heimdall.lab.bench.scenario import Scenario
from heimdall.lab.bench.settings import EventProcess
from heimdall.lab.bench.standin import PREFIX, Silent, open_standin
from heimdall.models.catalog import open_pipeline
from heimdall.schedulers import Scheduler, name_of


def as_app(scenario: Scenario) -> type[App]:
    """The scenario's app class, changed as the scenario says.

    Event processes replace the app's demo events: an event asks for a DNN with the options of the
    app's last request. Results of a network that only stands in for the app's do not reach the
    app, for it could not read them; a DNN that the scenario leaves out never has any. Raises
    ConfigError for a scenario without an app.
    """
    if scenario.throttle is not None:
        raise ConfigError(
            f"scenario {scenario.name!r} slows the GPU down (throttle), which is only simulated "
            "(heimdall simulate): leave that out to run it"
        )
    base = scenario.app_class()
    declared = scenario.declared()
    own = {dnn.name: dnn.model for dnn in base.dnns}
    strangers = frozenset(  # a pipeline is the app's: scenarios name models
        dnn.name for dnn in declared if isinstance(dnn.model, str) and dnn.model != own[dnn.name]
    )
    processes = {
        dnn.name: event for dnn in declared if (event := scenario.settings(dnn.name).event)
    }

    class Workload(base):  # type: ignore[misc, valid-type]
        title = scenario.title
        fps = scenario.fps
        size = scenario.size
        scheduler = _scheduler(scenario, base)
        dnns = tuple(_silent(dnn) if dnn.name in strangers else dnn for dnn in declared)

        @property
        def name(self) -> str:
            return scenario.name

        def request(self, dnn: str, **options: Any) -> None:
            if dnn in scenario.without:
                return
            self.__dict__.setdefault("last_options", {})[dnn] = options
            super().request(dnn, **options)

        def on_result(self, dnn: str, result: Any, frame: Frame) -> None:
            if dnn not in strangers:
                super().on_result(dnn, result, frame)

        def adjust(self, dnn: str, **wishes: Any) -> None:
            if dnn not in scenario.without:
                super().adjust(dnn, **wishes)

        def _check_declared(self, dnn: str) -> None:
            if dnn not in scenario.without:
                super()._check_declared(dnn)

        def demo_events(self) -> Iterator[float]:
            if not processes:
                yield from super().demo_events()
                return
            for wait_s, dnn in events(processes, scenario.seed):
                yield wait_s
                self.request(dnn, **self.__dict__.get("last_options", {}).get(dnn, {}))

    return Workload


def _scheduler(scenario: Scenario, app: type[App]) -> str | type[Scheduler] | Scheduler:
    """The app's own, where the scenario names no other: it may be an object."""
    same = scenario.scheduler == name_of(app.scheduler)
    return app.scheduler if same else scenario.scheduler


def events(processes: dict[str, EventProcess], seed: int) -> Iterator[tuple[float, str]]:
    """(seconds since the one before, DNN) of all processes in the order of time; endless."""
    streams = [
        zip(accumulate(process.waits_s(seed + index)), repeat(name))
        for index, (name, process) in enumerate(processes.items())
    ]
    now_s = 0.0
    for due_s, name in heapq.merge(*streams):
        yield due_s - now_s, name
        now_s = due_s


def _silent(dnn: DNN) -> DNN:
    """The DNN with its stand-in network opened."""
    assert isinstance(dnn.model, str)
    if dnn.model.startswith(PREFIX):
        worker = open_standin(dnn.model)
    else:
        worker = open_pipeline(dnn.model, **dnn.options)
    return replace(dnn, model=Silent(worker), options={})
