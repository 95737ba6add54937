"""Every bundled network, and classics of the onnx package, on Heimdall's engine and on others.

    python -m benchmarks.engines                      # writes docs/laboratory/performance.md
    python -m benchmarks.engines --cores 1 --only nanodet --page ''

One process for each number of cores; all engines compute on the same ones. They take turns, so
that a disturbance hits all alike: a turn is a few inferences in a row, and begins when the threads
of the others have stopped spinning. Idle cores are kept awake for all, as apps do. The best of
``--rounds`` turns counts. Engines that are not installed (openvino, tinygrad) are left out.
Cutting our own network is compared run by run, by the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks import performance_page
from benchmarks.cores import add_options, worker
from benchmarks.peers import PEERS, arena_bytes, installed
from benchmarks.roofline import copy_gbs, gemm_gflops
from heimdall import inspection
from heimdall.analyzer.partition import partition
from heimdall.analyzer.profiler import measure_ops
from heimdall.engine.network import LoadedNetwork
from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.inspection.checking import GAP_NS
from heimdall.lab.bench.in_turns import Runs, drawn, timed, turn, wait_for_quiet
from heimdall.models.catalog import CATALOG
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake
from heimdall.vocabulary.plans import StagePlan

CLASSICS = ("resnet50", "vgg19", "inception_v1", "squeezenet", "densenet121", "shufflenet")
PAIRED_S, PAIRED_RUNS = 4.0, 15  # whole, chunked and op by op in turn; runs at least
PAGE = Path("docs/laboratory/performance.md")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add_options(parser)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument(
        "--only", nargs="+", default=[], help="networks whose names hold one of these"
    )
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--page", default=str(PAGE), help="file to write; '' for none")
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_measure(options.worker, options)))
        return
    reports = [_in_a_process(cores) for cores in options.cores]
    for report in reports:
        performance_page.print_tables(report)
    if options.page:
        print(f"wrote {performance_page.write(Path(options.page), reports)}", file=sys.stderr)


def _in_a_process(cores: int) -> dict[str, Any]:
    command = worker("benchmarks.engines", cores)
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return report


def _measure(cores: int, options: argparse.Namespace) -> dict[str, Any]:
    with cores_awake(), open_processors(None, softgpu.together(cores)) as processors:
        engine = processors.gpu
        if not isinstance(engine, OpenCLEngine):
            raise SystemExit("no OpenCL device: nothing to measure")
        report: dict[str, Any] = {
            "cores": cores,
            "machine": performance_page.machine(),
            "device": dict(engine.describe()),
            "gemm_gflops": 0.0,
            "copy_gbs": 0.0,
            "networks": [],
        }
        for name, read in graphs(options.only):
            print(f"{cores} core(s): {name}", file=sys.stderr, flush=True)
            # again each time, the best counting: a busy minute must not lower the limits
            report["gemm_gflops"] = max(report["gemm_gflops"], gemm_gflops(cores))
            report["copy_gbs"] = max(report["copy_gbs"], copy_gbs(engine))
            report["networks"].append(_network(name, read(), engine, cores, options))
    return report


def graphs(only: Sequence[str]) -> Iterator[tuple[str, Callable[[], Graph]]]:
    """Networks with one of these in their names (all, without any), the classics included: names,
    and functions that read the graphs, for the large ones should not be held at once."""

    def wanted(name: str) -> bool:
        return not only or any(part in name for part in only)

    for model in CATALOG:
        if wanted(model):
            for graph in inspection.load_networks(model):
                yield graph.name, partial(_itself, graph)
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for model in CLASSICS:
        if wanted(model) and (path := light / f"light_{model}.onnx").exists():
            yield model, partial(load_graph, path)


def _itself(graph: Graph) -> Graph:
    return graph


def _network(
    name: str,
    graph: Graph,
    engine: OpenCLEngine,
    cores: int,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """All engines in turn on one network; times in ms."""
    inputs = sample_inputs(graph)
    network = engine.load(graph)
    ours = _Ours(network, inputs)
    ways: dict[str, Callable[[], float]] = {"whole": ours.whole}
    for peer in options.peers:
        if not installed(peer):
            continue
        try:
            run = PEERS[peer](graph, inputs, cores)
            run()
            ways[peer] = timed(run)
        except Exception as error:  # it lacks an operator, say
            print(f"  {peer}: {type(error).__name__}: {str(error)[:100]}", file=sys.stderr)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(options.rounds):
        for way, run_once in ways.items():
            wait_for_quiet()
            best[way] = min(best[way], turn(run_once))
    memory = network.memory
    found = {
        "name": name,
        "bundled": name not in CLASSICS,
        "shape": [list(tensor.shape) for tensor in graph.inputs],
        "ops": len(network.ops),
        "fallback_ops": sum(op.fallback for op in network.ops),
        "gflop": sum(op.flops for op in network.ops) / 1e9,
        "costs": [(op.flops, op.bytes) for op in network.ops],
        "ms": {way: 1e3 * seconds for way, seconds in best.items()},
        "relative": _relative(ours),
        "copies_ms": 1e3 * ours.copies_s,
        "chunks": ours.chunk_count,
        "longest_enqueue_ms": 1e3 * ours.longest_s,
        "activations_mb": memory.activation_bytes / 1e6,
        "arena_mb": arena_bytes(graph, inputs) / 1e6,
    }
    network.close()
    return found


class _Ours(Runs):
    """Heimdall's engine on one network, whole and in the chunks of a 30 fps app at 720p."""

    def __init__(self, network: LoadedNetwork, inputs: Mapping[str, np.ndarray]) -> None:
        super().__init__(network, inputs)
        marks = tuple(op.fallback for op in network.ops)
        measured = measure_ops(network)
        plan = StagePlan(measured.op_ns, marks, 0, measured.chunk_cost_ns)
        self._whole = [(c.start, c.end) for c in partition(plan, GAP_NS, "whole")]
        self._chunks = [(c.start, c.end) for c in partition(plan, GAP_NS, "runs")]
        self.chunk_count = sum(not marks[start] for start, _ in self._chunks)
        self._alone = [(op, op + 1) for op in range(len(marks))]
        self.longest_s = self.copies_s = float("inf")

    def whole(self) -> float:
        """Seconds of one inference without copies; notes the copies and the longest enqueue."""
        began_s = time.perf_counter()
        elapsed_s = self(self._whole)
        self.network.read(self.state)
        self.copies_s = min(self.copies_s, time.perf_counter() - began_s - elapsed_s)
        longest_ns = self.network.longest_enqueue_ns(self.state) or 0
        self.longest_s = min(self.longest_s, longest_ns / 1e9)
        return elapsed_s

    def chunked(self) -> float:
        return self(self._chunks)

    def op_by_op(self) -> float:
        """The sum of what the device says each op took, run alone."""
        self(self._alone)
        return sum(self.network.op_times(self.state) or []) / 1e9


def _relative(ours: _Ours) -> dict[str, float]:
    """What our other ways of running a network take, relative to the whole in one call."""
    ways = {"whole": ours.whole, "chunked": ours.chunked, "op by op": ours.op_by_op}
    times_s = drawn(ways, PAIRED_S, PAIRED_RUNS)
    whole_s = statistics.median(times_s.pop("whole"))
    return {way: statistics.median(each) / whole_s for way, each in times_s.items()}


if __name__ == "__main__":
    main()
