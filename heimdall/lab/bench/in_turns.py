"""Ways of running a network compared fairly: in turns, so that a disturbance hits all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from heimdall.engine.network import LoadedNetwork, State

TURN_S = 0.06  # inferences in a row: the first finds the caches of another engine
TURN_RUNS = 3  # at least

Range = tuple[int, int]
TimedRun = Callable[[], float]  # runs once, returns the seconds that it took


class Runs:
    """A network of one of our engines, to be run in ranges of ops."""

    def __init__(self, network: LoadedNetwork, inputs: Mapping[str, np.ndarray]) -> None:
        self.network, self.inputs = network, inputs
        self.state: State = network.new_state()

    def __call__(self, ranges: Sequence[Range]) -> float:
        """Seconds of one inference, without copies of inputs and outputs."""
        network, state = self.network, self.state
        network.write(state, self.inputs)
        elapsed_s = 0.0
        for start, end in ranges:
            run = network.run_fallback if network.ops[start].fallback else network.run
            began_s = time.perf_counter()
            run(state, start, end)
            elapsed_s += time.perf_counter() - began_s
        return elapsed_s


def turn(run_once: TimedRun, turn_s: float = TURN_S) -> float:
    """The fastest of a few inferences in a row, in seconds."""
    end_s = time.perf_counter() + turn_s
    times_s = [run_once() for _ in range(TURN_RUNS)]
    while time.perf_counter() < end_s:
        times_s.append(run_once())
    return min(times_s)


def drawn(ways: Mapping[str, TimedRun], seconds: float, least: int) -> dict[str, list[float]]:
    """The times of single runs, ``least`` at least, of all ways in turn.

    A difference of a percent is lost in what the machine's speed varies by from one second to the
    next. In a drawn order, for what ran before leaves its caches.
    """
    times_s: dict[str, list[float]] = {way: [] for way in ways}
    draw = random.Random(0)
    wait_for_quiet()
    end_s, runs = time.perf_counter() + seconds, 0
    while time.perf_counter() < end_s or runs < least:
        for way in draw.sample(list(ways), len(ways)):
            times_s[way].append(ways[way]())
        runs += 1
    return times_s


def rounds(ways: Mapping[str, TimedRun], seconds: float, least: int = 3) -> dict[str, list[float]]:
    """The fastest of each turn, ``least`` turns at least. A turn begins when the threads of the
    others have stopped spinning."""
    times_s: dict[str, list[float]] = {way: [] for way in ways}
    end_s, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end_s or count < least:
        for way, run_once in ways.items():
            wait_for_quiet()
            times_s[way].append(turn(run_once))
        count += 1
    return times_s


def spread(times_s: Sequence[float]) -> float:
    """How far the middle half of the times is apart, as a part of their median."""
    if len(times_s) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(times_s, n=4, method="inclusive")
    return (high - low) / middle


def timed(run: Callable[[], object]) -> TimedRun:
    """``run``, with how long it took."""

    def once() -> float:
        began_s = time.perf_counter()
        run()
        return time.perf_counter() - began_s

    return once


def wait_for_quiet(step_s: float = 0.005, most_s: float = 0.5) -> None:
    """Sleep until no thread of this process computes. onnxruntime's spin on for up to 40 ms after
    an inference, and a core that they hold is missing to the next engine."""
    end_s = time.perf_counter() + most_s
    busy_s = step_s
    while busy_s > step_s / 10 and time.perf_counter() < end_s:
        before_s = time.process_time()
        time.sleep(step_s)
        busy_s = time.process_time() - before_s
