"""``python -m tests.coordinator.properties``: events in any order, legal and not, to a coordinator
of every bundled policy and of ones that choose at random; each finding with what led to it.

``--events 1000000`` tries more, ``--policies max-min,fcfs`` some.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.coordinator import machine

AT_ONCE = 40  # examples


def main() -> int:
    """The number of findings, at most 1, as the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.coordinator.properties", description=__doc__
    )
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--policies", help="names, with commas between them; default: all")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # what policies that choose at random do wrong
    names = options.policies.split(",") if options.policies else list(machine.POLICIES)
    began, findings = time.monotonic(), 0
    for name in names:
        findings += not _tries(name, -(-options.events // len(names)))
    seconds = time.monotonic() - began
    print(f"{machine.told} events in {seconds:.0f} s, {findings} of {len(names)} policies failed")
    return int(findings > 0)


def _tries(name: str, events: int) -> bool:
    """Whether nothing was found in so many events under one policy."""
    before, began = machine.told, time.monotonic()
    tried = type("Machine", (machine.Machine,), {"policies": (name,)})
    right = True
    while right and machine.told < before + events:
        try:
            run_state_machine_as_test(
                tried,
                settings=settings(
                    max_examples=AT_ONCE,
                    stateful_step_count=40,
                    deadline=None,
                    database=None,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except Exception:
            traceback.print_exc()
            right = False
    seconds = time.monotonic() - began
    print(f"  {machine.told - before:8} events  {seconds:4.0f} s  {name}", flush=True)
    return right


if __name__ == "__main__":
    sys.exit(main())
