"""What every system decides in every scenario, in a few characters a second.

``python tests/traces/decisions.py`` writes ``simulated.json`` anew: only in a commit that changes
decisions on purpose, and says so. With names of scenarios it prints theirs instead.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heimdall.coordinator.replay import record
from heimdall.lab.bench.scenario import load_scenario, scenario_names
from heimdall.lab.bench.systems import parse_system, queue_names, system_names
from heimdall.lab.simulator.simulate import open_machine, simulated_run
from heimdall.runtime.telemetry.trace import Tracer

FILE = Path(__file__).with_name("simulated.json")
SECONDS = 8  # after the warm-up of 5
SEEDS = (0, 1, 2, 3)
DEVICES = ("lg-v50", "pixel-3-xl")
LIVE_ALONE = ("driver-priority",)  # what a driver does with priorities is not simulated
# What this process took and how it started, not the simulated one.
OF_THE_PROCESS = ("cpu_core_s", "memory_mb", "start")
# From what is digested, or of what no recorded system does.
DERIVED = (
    *("late_rate", "achieved_hz", "required_hz", "miss_rate", "utility", "longest_interval_ms"),
    *("age_ms", "begun_anew", "picture_age_ms", "processors", "requests", "throughput_hz"),
    *("chosen", "frames_busy_ms", "frames_useful_ms"),
)


def decisions(scenario: str, device: str, system: str, seed: int) -> dict[str, Any]:
    """``seconds``: a digest of each second's events, actions and work on the GPU, which
    continues that of the second before, so that the first that differs tells when; ``figures``: a
    digest of what was counted."""
    described = load_scenario(scenario)
    machine, dnns = open_machine(described, device)
    tracer = Tracer(0)
    asked = parse_system(system)
    run = simulated_run(dnns, machine, asked, fps=described.fps, seed=seed, tracer=tracer)
    run.run(SECONDS)
    lines = [(step[0], json.dumps(record(*step))) for step in tracer.steps]
    lines += [(start, f"{lane} {name} {end}") for lane, name, start, end, _ in tracer.spans]
    run.figures.chunk_ns = dict.fromkeys(run.figures.chunk_ns, 0)  # recorded without
    figures = run.figures.summary(machine.render_ns, run.gap_utilization(), run.now_ns)
    timeless = _without(figures, (*OF_THE_PROCESS, *DERIVED))
    timeless["gpu"] = _without(figures["gpu"], DERIVED)
    timeless["dnns"] = {name: _without(each, DERIVED) for name, each in figures["dnns"].items()}
    return {"seconds": _by_second(lines), "figures": _digest(json.dumps(timeless, sort_keys=True))}


def _without(figures: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in figures.items() if name not in names}


def _by_second(lines: list[tuple[int, str]]) -> str:
    found, digest = [], hashlib.sha256()
    second = 0
    for now_ns, line in sorted(lines, key=lambda each: each[0]):
        while now_ns >= (second + 1) * 1_000_000_000:
            found.append(digest.hexdigest()[:4])
            second += 1
        digest.update(line.encode())
    return " ".join([*found, digest.hexdigest()[:16]])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def all_decisions(scenario: str) -> dict[str, Any]:
    """``decisions`` by device, system and seed."""
    return {
        f"{device} {system} {seed}": decisions(scenario, device, system, seed)
        for device in DEVICES
        for system in system_names()
        if system not in (*queue_names(), *LIVE_ALONE)
        for seed in SEEDS
    }


if __name__ == "__main__":
    found = {name: all_decisions(name) for name in sys.argv[1:] or scenario_names(draws=True)}
    if sys.argv[1:]:
        print(json.dumps(found))
    else:
        FILE.write_text(json.dumps(found, indent=0))
