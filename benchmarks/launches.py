"""What it gives to run many launches as one: every bundled network both ways.

    python -m benchmarks.launches                     # on one core and on all
    python -m benchmarks.launches --cores 2 --only selfie --rounds 40

A launch costs a driver 3 to 8 us, and where several cores share the work, those that are done first
go to sleep and are woken by the next one. Both ways take turns, run by run; medians, and their
ratio. One process for each number of cores.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from dataclasses import replace

from benchmarks.cores import add_options, worker
from heimdall import inspection
from heimdall.analyzer.profiler import gpu_passes
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.models.catalog import CATALOG
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", nargs="+", default=list(CATALOG), help="models of the catalogue")
    options = parser.parse_args()
    if options.worker:
        _measure(options.worker, options.only, options.rounds)
        return
    for cores in options.cores:
        subprocess.run(worker("benchmarks.launches", cores), check=True)


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
                network = launching.load(graph)
                ways = [gpu_passes(network), gpu_passes(engine.load(graph))]
                times: list[list[int]] = [[], []]
                for _ in range(rounds):
                    for way, taken in zip(ways, times, strict=True):
                        way()  # finds the caches as the other way left them
                        taken.append(way())
                alone, together = (statistics.median(taken) / 1e6 for taken in times)
                count = sum(network.new_state().work.counts)
                print(
                    f"| {graph.name} | {count} | {alone:.2f} | {together:.2f} "
                    f"| {alone / together:.2f} |",
                    flush=True,
                )
        print()


if __name__ == "__main__":
    main()
