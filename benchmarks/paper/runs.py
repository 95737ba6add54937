"""The runs behind the page: scenarios of the paper, changed as its figures ask for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from heimdall.lab.bench.scenario import Scenario, load_scenario
from heimdall.lab.bench.settings import EventProcess

LG, PIXEL = "lg-v50", "pixel-3-xl"
LIVE = {"shopping": "shopping-phone"}  # the scenario whose load stands for a phone's here
# As the paper compares (section 9.1), its own mode and the default here, and an ablation.
ABLATION = "max-total-static-runs"
SYSTEMS = ("multithread", "fixed-5", "max-total-static", "max-total", ABLATION)
# What else one could do without a coordinator.
STRONG = (
    "bounded-5",
    "priorities",
    "edf",
    "render-first",
    "multithread-onnxruntime",
    "multithread-onnxruntime-all",
    "drop-while-busy",
)
LONGER = 4  # times a live run takes whose longest latencies count
OTHERS = ("multithread", "max-total")  # that run live on other scenarios, too: an hour is short
TRACED = ("max-total-static", "max-total")
NEVER = EventProcess(process="periodic", rate_hz=1e-6)
HARDLY_DRAWN = {"fps": 1.0, "size": (64, 64)}


@dataclass(frozen=True)
class Run:
    """One system on one scenario.

    ``only`` these DNNs are asked for (None: all); ``free``: all of them back to back. Where
    nothing is ``drawn``, a live run still draws one tiny frame a second. ``longer``: so many
    times as long as other live runs. ``traced``: what only a trace tells is wanted, too.
    """

    name: str
    scenario: str
    system: str
    only: tuple[str, ...] | None = None
    free: bool = False
    drawn: bool = True
    device: str = LG
    live: bool = True
    longer: int = 1
    traced: bool = False


@cache
def all_runs() -> tuple[Run, ...]:
    """Every run that a figure of the paper shows, in the paper's order."""
    four = ("detect", "segment", "hand", "style")
    return (
        Run("alone", "shopping", "multithread", only=("style",), free=True, drawn=False),
        Run("together", "shopping", "multithread", free=True, drawn=False),
        Run("nothing but drawn", "emoji", "multithread", only=()),
        *(
            Run(
                f"{count} drawn",
                "shopping",
                "multithread",
                only=four[:count],
                free=True,
                live=count in (1, len(four)),
            )
            for count in range(1, len(four) + 1)
        ),
        *_criminal(),
        Run("face alone", "emoji", "multithread", only=("face",), drawn=False),
        *(
            Run(
                f"shopping {system}",
                "shopping",
                system,
                longer=LONGER,
                traced=system in TRACED,
                live=system != ABLATION,
            )
            for system in (*SYSTEMS, *STRONG)
        ),
        *(
            Run(f"three {system}", "shopping", system, only=four[:3], traced=True)
            for system in ("max-min-nooffload", "max-total-nooffload", "max-min")
        ),
        *(
            Run(f"{scenario} {system}", scenario, system, live=system in OTHERS)
            for scenario in ("workspace", "emoji")
            for system in ("multithread", "fixed-5", "max-total-static", "max-total")
        ),
    )


def _criminal() -> Iterator[Run]:
    """On the other phone; nothing here stands for its networks."""
    for name in ("faces", "recognise"):
        yield Run(
            f"{name} alone", "criminal", "multithread", (name,), True, False, PIXEL, live=False
        )
    for name, drawn in (("criminal together", False), ("criminal drawn", True)):
        yield Run(name, "criminal", "multithread", None, True, drawn, PIXEL, live=False)


@cache
def scenario_of(run: Run, live: bool = False) -> Scenario:
    """What ``run`` runs: on the simulator, or on this machine."""
    name = LIVE.get(run.scenario, run.scenario) if live else run.scenario
    return variant(run, load_scenario(name))


def variant(run: Run, scenario: Scenario) -> Scenario:
    """``scenario`` as ``run`` wants it. DNNs that it leaves out are there, and never asked for."""
    dnns = {}
    for dnn in scenario.declared():
        changes: dict[str, Any] = {}
        if run.only is not None and dnn.name not in run.only:
            changes = {"event": NEVER, "on_event": None}
        elif run.free:
            changes = {"event": None, "on_event": False, "max_rate_hz": math.inf}
        dnns[dnn.name] = scenario.settings(dnn.name).model_copy(update=changes)
    return scenario.model_copy(update={"dnns": dnns})


def as_toml(scenario: Scenario) -> str:
    """The file that ``load_scenario`` reads it from again, under the file's name."""
    table = scenario.model_dump(exclude={"name"}, exclude_none=True, exclude_unset=True)
    return "\n".join(f"{key} = {value}" for key, value in _flat(table)) + "\n"


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys, and values as TOML has them."""
    for name, value in table.items():
        key = f"{prefix}{json.dumps(name)}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{key}.")
        else:
            yield key, "inf" if value == math.inf else json.dumps(value)
