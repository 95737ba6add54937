"""Networks that run together against the same one after the other, on this machine.

    python -m benchmarks.together                     # on one core and on all
    python -m benchmarks.together --cores 2 --lanes 2 --seconds 10
    python -m benchmarks.together --only selfie+hand squeezenet

``selfie+hand`` are several jobs, one of each network of those models; of a network by itself
(``squeezenet``) the branches run together. All ways are run in turns, in drawn order: one network
after the other, each waited for, as a scheduler without groups does it; all on one queue; and on
several, each with its share of the cores. A ratio is the time of the first way by that of another,
in the same turn: the median, and between which values half of them lie. Outputs are compared bit
for bit before anything is timed.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from benchmarks.cores import add_options, worker
from benchmarks.engines import graphs
from heimdall.engine import GroupMember
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.network import OpenCLNetwork
from heimdall.graph.branches import independent_branches
from heimdall.graph.samples import sample_inputs
from heimdall.lab.bench.in_turns import drawn
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake

GROUPS = (
    "nanodet+selfie",
    "hand",  # two networks
    "nanodet+multistyle",
    "selfie+hand+movenet",
    "resnet50+inception_v1+squeezenet",  # much like those of TOP's evaluation (Table II)
    "inception_v1",
    "squeezenet",
    "centerface",
)
SEQUENTIAL = "one after the other"
Stages = list[list[GroupMember]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--only", nargs="+", default=list(GROUPS), help="names, joined by +")
    parser.add_argument("--lanes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seconds", type=float, default=6.0, help="of each group, at least")
    options = parser.parse_args()
    if options.worker:
        _measure(options.worker, options)
        return
    for cores in options.cores:
        subprocess.run(worker("benchmarks.together", cores), check=True)


def _measure(cores: int, options: argparse.Namespace) -> None:
    with cores_awake(), open_processors(None, softgpu.together(cores)) as processors:
        engine = processors.gpu
        if not isinstance(engine, OpenCLEngine):
            raise SystemExit("no OpenCL device: nothing to measure")
        print(f"## {cores} core(s): {engine.describe()['device']}\n")
        lanes = [f"{lanes} lanes" for lanes in options.lanes]
        print("| " + " | ".join(["group", f"{SEQUENTIAL} ms", "one queue", *lanes]) + " |")
        print("| --- |" + " ---: |" * (2 + len(lanes)))
        for group in options.only:
            jobs = Jobs(engine, group.split("+"))
            ways: dict[str, Callable[[], float]] = {SEQUENTIAL: jobs.in_sequence}
            ways["one queue"] = partial(jobs.together, 1)
            ways |= {f"{count} lanes": partial(jobs.together, count) for count in options.lanes}
            for name, way in ways.items():
                way()
                jobs.check(name)
            times_s = drawn(ways, options.seconds, 15)
            alone_s = times_s.pop(SEQUENTIAL)
            found = [_ratio(alone_s, each) for each in times_s.values()]
            print(
                f"| {group} | {1e3 * statistics.median(alone_s):.2f} | " + " | ".join(found) + " |"
            )
        print(flush=True)


def _ratio(alone_s: Sequence[float], together_s: Sequence[float]) -> str:
    ratios = [a / b for a, b in zip(alone_s, together_s, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


class Jobs:
    """One job of each network of a group."""

    def __init__(self, engine: OpenCLEngine, names: Sequence[str]) -> None:
        self._engine = engine
        self._networks: list[OpenCLNetwork] = []
        for name in names:
            for _, read in graphs([name]):
                self._networks.append(engine.for_branches.load(read()))
        self._states = [network.new_state() for network in self._networks]
        self._inputs = [sample_inputs(network.graph) for network in self._networks]
        self.in_sequence()
        self._wanted = self._read()

    def _read(self) -> list[dict[str, np.ndarray]]:
        pairs = zip(self._networks, self._states, strict=True)
        return [network.read(state) for network, state in pairs]

    def check(self, way: str) -> None:
        """Whether the outputs are what they were at first, bit for bit."""
        for wanted, found in zip(self._wanted, self._read(), strict=True):
            if not all(np.array_equal(wanted[name], found[name]) for name in wanted):
                raise SystemExit(f"{way}: the outputs differ")

    def in_sequence(self) -> float:
        """Seconds of all networks, each waited for."""
        return self._timed(self._run_all)

    def _run_all(self) -> None:
        for network, state in zip(self._networks, self._states, strict=True):
            network.run(state, 0, len(network.ops))

    def together(self, lanes: int) -> float:
        """Seconds of all, as one launch."""
        self._engine.lanes = lanes
        stages = self._stages()
        return self._timed(lambda: self._engine.run_together(stages))

    def _stages(self) -> Stages:
        """All networks at once; of a single one its branches."""
        jobs = list(zip(self._networks, self._states, strict=True))
        if len(jobs) > 1:
            return [[GroupMember(*job, ((0, len(job[0].ops)),)) for job in jobs]]
        ((network, state),) = jobs
        stages = independent_branches(network.needs)
        return [[GroupMember(network, state, group) for group in stage] for stage in stages]

    def _timed(self, run: Callable[[], object]) -> float:
        for network, state, inputs in zip(self._networks, self._states, self._inputs, strict=True):
            network.write(state, inputs)
        began_s = perf_counter()
        run()
        return perf_counter() - began_s


if __name__ == "__main__":
    main()
