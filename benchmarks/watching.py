"""What it costs that everything is watched: runs with and without, in pairs, in turn.

    python -m benchmarks.watching --pairs 6              # shopping, 15 s a run

*Without* are the places that every frame and decision passes: threads that hang are not looked for,
a policy's faults are not caught, callbacks are not timed. Each run is a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from heimdall.app import load_app
from heimdall.app.options import RunOptions
from heimdall.coordinator.supervised import Supervised
from heimdall.runtime.execution.executor import Executor
from heimdall.runtime.loop.callbacks import Callbacks
from heimdall.runtime.run import run_app
from heimdall.system.cpu import cpu_name

FIGURES: dict[str, Callable[[dict[str, Any]], float]] = {
    "interval p50, ms": lambda run: run["frame_interval_ms"]["p50"],
    "interval p99, ms": lambda run: run["frame_interval_ms"]["p99"],
    "draw interval p99, ms": lambda run: run["draw_interval_ms"]["p99"],
    "late frames": lambda run: run["late_frames"],
    "decision p50, us": lambda run: run["decision_us"]["p50"],
    "decision p99, us": lambda run: run["decision_us"]["p99"],
    "cores": lambda run: run["cpu_core_s"] / run["seconds"],
    "inferences a second": lambda run: run["throughput_hz"],
}


def unwatched() -> None:
    """From now on nothing is watched in this process."""

    def call(self: Callbacks, method: Callable[..., Any], *args: Any, name: str = "") -> Any:
        return method(*args)

    def decide(self: Supervised, answer: Any, acts: Any, view: Any, now_ns: int) -> Any:
        return answer(self.policy, view, now_ns)

    Callbacks.call = call  # type: ignore[method-assign]
    Supervised.decide = decide  # type: ignore[method-assign]
    Supervised.was_slow = lambda *_: None  # type: ignore[method-assign]
    Executor.watch = lambda self: None  # type: ignore[method-assign]
    for name in ("place", "hopeless", "preempts", "observe"):
        setattr(Supervised, name, _straight(name))


def _straight(name: str) -> Callable[..., Any]:
    return lambda self, *of: getattr(self.policy, name)(*of)


def tried(options: argparse.Namespace, watched: bool) -> dict[str, Any]:
    """A run in a process of its own."""
    words = ["--one", "with" if watched else "without", "--app", options.app]
    words += ["--seconds", str(options.seconds)]
    command = [sys.executable, "-m", "benchmarks.watching", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print each figure's medians, and the median of its differences in pairs with their range."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--app", default="shopping")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--one", choices=["with", "without"], help="one run, as JSON")
    options = parser.parse_args()
    if options.one:
        if options.one == "without":
            unwatched()
        run = RunOptions(headless=True, seconds=options.seconds)
        print(json.dumps(run_app(load_app(options.app)(), run)))
        return
    runs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for number in range(options.pairs):
        for watched in (True, False) if number % 2 else (False, True):
            runs[watched].append(tried(options, watched))
    print(f"{options.app} on {cpu_name()}, {options.pairs} pairs of {options.seconds:g} s\n")
    print("| | with | without | difference, median (range) |\n|---|---|---|---|")
    for name, figure in FIGURES.items():
        with_, without = ([figure(each) for each in runs[kind]] for kind in (True, False))
        apart = [a - b for a, b in zip(with_, without, strict=True)]
        middles = f"{statistics.median(with_):.3f} | {statistics.median(without):.3f}"
        said = f"{statistics.median(apart):+.3f} ({min(apart):+.3f} to {max(apart):+.3f})"
        print(f"| {name} | {middles} | {said} |")


if __name__ == "__main__":
    main()
