"""Pantheon's applications under its systems (MobiSys '24, section 5), as tables for
``benchmarks.schedulers``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.simulated import Simulated, cell, missed, table
from heimdall.runtime.telemetry.statistics import interval

SCENARIOS = ("pantheon-traffic", "pantheon-robot", "pantheon-uav")
SYSTEMS = (
    "edf-exits",
    "edf-exits-noswitch",
    "edf-exits-noswitch-nopreempt",
    "edf-exits-noexits",
    "edf-exits-noexits-nopreempt",
    "rt-mdl",
    "rms",
    "dms",
)
RT_MDL = ("rt-mdl", "rt-mdl-analysis", "rt-mdl-oracle")  # and each with Pantheon's exits
SECONDS = 20.0  # of requests, a run
RATES_HZ = (10, 15, 20, 25)  # as Fig. 15


def accurate(run: Mapping[str, Any]) -> float:
    """Percent of the whole networks' accuracy, missed deadlines counted as none."""
    return float(100 * run["accuracy"])


def misses(simulated: Simulated) -> str:
    """Deadlines missed and accuracy kept, by application."""
    return applications(simulated, SYSTEMS)


def rt_mdl(simulated: Simulated) -> str:
    """The same of RT-mDL, by networks and predictors."""
    with_exits = (each.replace("rt-mdl", "rt-mdl-exits") for each in RT_MDL)
    return applications(simulated, (*RT_MDL, *with_exits))


def applications(simulated: Simulated, systems: Iterable[str]) -> str:
    """Deadlines missed and accuracy kept, by system and application."""
    rows = []
    for system in systems:
        row = [f"`{system}`"]
        for scenario in SCENARIOS:
            runs = simulated.runs(scenario, system, seconds=SECONDS)
            row += [
                cell(interval([figure(run) for run in runs]), 2) for figure in (missed, accurate)
            ]
        rows.append(row)
    columns = [f"{name}: {what}" for name in SCENARIOS for what in ("missed, %", "accuracy, %")]
    return table(["", *columns], rows)


def dynamics(simulated: Simulated) -> str:
    """Deadlines missed where more is left to chance than in the scenarios."""
    dynamics: Mapping[str, Mapping[str, float]] = {
        "as in the scenarios": {},
        "released apart": {"apart": 1},
        "noise of 10%": {"noise": 0.1},
        "noise of 20%": {"noise": 0.2},
        "estimates 10% wrong": {"estimates": 0.1},
    }
    rows = []
    for system in ("edf-exits", "edf-exits-noswitch", "edf-exits-noswitch-nopreempt", "rt-mdl"):
        for scenario in SCENARIOS:
            row = [f"`{system}`, {scenario}"]
            for variations in dynamics.values():
                asked = {"seconds": SECONDS, "variations": variations}
                runs = simulated.runs(scenario, system, **asked)
                row.append(cell(interval([missed(run) for run in runs]), 2))
            rows.append(row)
    return table(["missed, %", *dynamics], rows)


def poisson(simulated: Simulated) -> str:
    """Deadlines missed where what is not a detector comes at random."""
    rows = []
    for system in ("edf-exits", "rt-mdl", "rms"):
        for scenario in SCENARIOS:
            row = [f"`{system}`, {scenario}"]
            for rate_hz in RATES_HZ:
                random = {"variations": {"poisson_hz": rate_hz}}
                runs = simulated.runs(scenario, system, seconds=SECONDS, **random)
                row.append(cell(interval([missed(run) for run in runs]), 2))
            rows.append(row)
    return table(["missed, %", *(f"{each} a second" for each in RATES_HZ)], rows)


def best_effort(simulated: Simulated) -> str:
    """Deadlines missed beside more best effort, and what that gets."""
    rows = []
    for rate_hz in (15, 20, 25):
        asked = {"seconds": SECONDS, "variations": {"best_effort_hz": rate_hz}}
        row = [str(rate_hz)]
        for scenario in SCENARIOS:
            runs = simulated.runs(scenario, "edf-exits", **asked)
            row.append(cell(interval([missed(run) for run in runs]), 2))
        waits_s = [
            run["requests"]["AlexNet"]["latency_ms"]["p50"] / 1000
            for run in simulated.runs("pantheon-robot", "edf-exits", **asked)
        ]
        rows.append([*row, cell(interval(waits_s))])
    columns = [f"{scenario}: missed, %" for scenario in SCENARIOS]
    return table(["best effort a second", *columns, "its p50 on the robot, s"], rows)


PARTS = {
    "pantheon_misses": misses,
    "pantheon_rt_mdl": rt_mdl,
    "pantheon_dynamics": dynamics,
    "pantheon_poisson": poisson,
    "pantheon_best_effort": best_effort,
}
