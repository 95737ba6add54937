"""What it gives to run many launches as one: every bundled network both ways.

    python -m benchmarks.launches                     # on one core and on all
    python -m benchmarks.launches --cores 2 --only selfie --rounds 40

A launch costs a driver 3 to 8 us, and where several cores share the work, those that are done first
go to sleep and are woken by the next one. Both ways take turns, run by run; medians, and their
ratio. One process for each number of cores.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from heimdall.bench import inspection
from heimdall.engine.base import Network
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.graph.samples import sample_inputs
from heimdall.models.catalog import CATALOG
from heimdall.runtime.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--cores", type=int, nargs="+", default=sorted({1, available or 1}))
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", nargs="+", default=list(CATALOG), help="models of the catalogue")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _measure(options.worker, options.only, options.rounds)
        return
    for cores in options.cores:  # OpenCL on a CPU fixes its threads when it starts
        command = [sys.executable, "-m", "benchmarks.launches", *sys.argv[1:]]
        subprocess.run([*command, "--worker", str(cores)], check=True)


def _measure(cores: int, models: list[str], rounds: int) -> None:
    with cores_awake(), open_processors(None, softgpu.together(cores)) as processors:
        engine = processors.gpu
        if not isinstance(engine, OpenCLEngine) or not engine.abilities.walk:
            raise SystemExit("no OpenCL device on which launches are put together")
        launching = OpenCLEngine(abilities=replace(engine.abilities, walk=False))
        print(f"## {cores} core(s)\n")
        print("| network | launches | each by itself ms | together ms | ratio |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for model in models:
            for graph in inspection.load_networks(model):
                networks = [launching.load(graph), engine.load(graph)]
                states = [network.new_state() for network in networks]
                ways = [_once(network) for network in networks]
                times: list[list[float]] = [[], []]
                for _ in range(rounds):
                    for way, taken in zip(ways, times, strict=True):
                        way()  # finds the caches as the other way left them
                        taken.append(way())
                alone, together = (1e3 * statistics.median(taken) for taken in times)
                count = sum(states[0].work.counts)
                print(
                    f"| {graph.name} | {count} | {alone:.2f} | {together:.2f} "
                    f"| {alone / together:.2f} |",
                    flush=True,
                )
        print()


def _once(network: Network) -> Callable[[], float]:
    """Seconds of one inference without copies."""
    state, inputs, ranges, start = network.new_state(), sample_inputs(network.graph), [], 0
    for fallback, ops in groupby(network.ops, lambda op: op.fallback):
        end = start + sum(1 for _ in ops)
        ranges.append((fallback, start, end))
        start = end

    def run() -> float:
        network.write(state, inputs)
        began_s = time.perf_counter()
        for fallback, start, end in ranges:
            (network.run_fallback if fallback else network.run)(state, start, end)
        return time.perf_counter() - began_s

    return run


if __name__ == "__main__":
    main()
