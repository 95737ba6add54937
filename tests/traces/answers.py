"""The same as ``decisions`` where each range of ops chooses its processor anew: every scenario of
requests under every system that can run it, and the apps' scenarios under those policies.

``python tests/traces/answers.py --write`` writes ``requests.json`` anew, which takes minutes: only
in a commit that changes decisions on purpose, and says so. Without, it prints what is asked for:
``--seeds 3 --seconds 4`` is more than is kept, ``--quick`` what tests look at.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heimdall.coordinator.replay import record
from heimdall.errors import HeimdallError
from heimdall.lab.bench.scenario import load_scenario, scenario_names
from heimdall.lab.bench.systems import parse_system, queue_names
from heimdall.lab.simulator.simulate import open_machine, prepare_any, simulated_run
from heimdall.runtime.telemetry.trace import Tracer

FILE = Path(__file__).with_name("requests.json")
SECONDS = 1.0
DEVICE = "lg-v50"
APPS = ("response-ratio", "rt-a", "lst", "heft", "round-robin", "edf-exits", "rms")
QUICK = (  # one of each kind of system
    *("response-ratio", "rt-a", "prema", "lst", "heft", "fixed", "edf-exits", "rms", "rt-mdl"),
    *("top", "static-plan", "max-total"),
)


def answers(scenario: str, system: str, seed: int, seconds: float) -> str:
    """A digest of all events and actions until the last answer; "" where it cannot be run."""
    steps = hashlib.sha256()

    def observe(*step) -> None:
        steps.update(json.dumps(record(*step)).encode())

    experiment: Any
    try:
        experiment = prepare_any(scenario, None, system, seconds=seconds)
        run = experiment.begin_with(experiment.policy, seed, [observe])
        run.run(None if experiment.scenario.drain else round(seconds * 1e9))
    except HeimdallError:
        return ""
    return steps.hexdigest()[:16]


def app_answers(scenario: str, system: str, seed: int, seconds: float) -> str:
    """The same of an app's scenario, with frames."""
    described, tracer = load_scenario(scenario), Tracer(0)
    machine, dnns = open_machine(described, DEVICE)
    asked = parse_system(system)
    run = simulated_run(dnns, machine, asked, fps=described.fps, seed=seed, tracer=tracer)
    run.run(seconds)
    steps = "".join(json.dumps(record(*step)) for step in tracer.steps)
    return hashlib.sha256(steps.encode()).hexdigest()[:16]


def all_answers(
    scenario: str, seeds: Sequence[int] = (0,), seconds: float = SECONDS, *, quick: bool = False
) -> dict:
    """By system, a digest for each seed."""
    apps = scenario in scenario_names(draws=True)
    systems = APPS if apps else QUICK if quick else (*queue_names(), "max-min", "max-total")
    digest = app_answers if apps else answers
    return {
        system: " ".join(digest(scenario, system, seed, seconds) for seed in seeds)
        for system in systems
    }


def names() -> list[str]:
    """All scenarios."""
    return [*scenario_names(draws=True), *scenario_names(draws=False)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    found = {
        name: all_answers(name, range(args.seeds), args.seconds, quick=args.quick)
        for name in args.scenarios or names()
    }
    if args.write:
        FILE.write_text(json.dumps(found, indent=0) + "\n")
    else:
        print(json.dumps(found, indent=0))
