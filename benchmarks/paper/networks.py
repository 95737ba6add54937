"""The networks themselves: those of a phone's profile, and those that stand for them here.

``python -m benchmarks.paper.networks SCENARIO`` measures a scenario's on this machine, in a
process of its own, and prints one JSON object.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

import numpy as np

from heimdall.analyzer.partition import partition
from heimdall.app import create
from heimdall.app.options import RunOptions
from heimdall.capture import open_source
from heimdall.engine.network import LoadedNetwork, State
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.graph.costs import node_flops
from heimdall.graph.graph import Graph
from heimdall.graph.samples import sample_inputs
from heimdall.lab.bench.apart import FailedSystemError
from heimdall.lab.bench.loads import fit
from heimdall.lab.bench.scenario import load_scenario
from heimdall.lab.bench.workload import as_app
from heimdall.lab.simulator.device import Device
from heimdall.runtime.execution.deployment import Deployment
from heimdall.runtime.opening.setup import start
from heimdall.system import paths
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import GPU

# Of several that have a DNN for the same network of the paper, the first counts.
SCENARIOS = ("shopping-phone", "workspace", "emoji", "surroundings")
GAP_NS = 30_600_000  # 30 fps less 2.7 ms of rendering (section 5.2)
SHORT_NS = 5_000_000  # Fig. 7
LONG_MS = 33  # networks longer than this count there
SIZES = (1, 2, 5, 10, 20)  # ops between two waits (Figs. 11 and 12)
WAYS = (*map(str, SIZES), "chunks")  # so many ops, or the static partition
ROUNDS = 7

Ranges = Sequence[tuple[int, int]]


def of_phone(device: Device) -> dict[str, Any]:
    """Every network of a profile, by the paper's name."""
    found = {}
    for name, network in device.networks.items():
        stage = device.stage(name, GAP_NS)
        whole = len(_cut(stage, None))
        cost_ms = device.gpu.chunk_cost_ms
        found[name] = {
            "model": name,
            **_of_plan([stage]),
            "gflop": network.gflop,
            "longer": {
                way: 1 + cost_ms * (len(pieces) - whole) / network.ms
                for way, pieces in zip(WAYS, _ways(stage), strict=True)
            },
        }
    return found


def measured(scenario: str) -> dict[str, Any]:
    """The scenario's networks on this machine, by the names of those that they stand for.

    Raises FailedSystemError when that fails; its process has said why.
    """
    command = [sys.executable, "-m", "benchmarks.paper.networks", scenario]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if process.returncode:
        raise FailedSystemError(f"measuring ended with status {process.returncode}")
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def short_ops(networks: Mapping[str, Any]) -> float | None:
    """Fig. 7: the part of the ops that take 5 ms or less, on average over longer networks."""
    shares = [each["short_ops"] for each in networks.values() if each["ms"] > LONG_MS]
    return statistics.fmean(shares) if shares else None


def spread(networks: Mapping[str, Any], ops: str) -> dict[str, float] | None:
    """Fig. 12: how much longer the longer networks take when cut so; least, mean and most."""
    more = [each["longer"][ops] - 1 for each in networks.values() if each["ms"] > LONG_MS]
    if not more:
        return None
    return {"mean": statistics.fmean(more), "min": min(more), "max": max(more)}


def _of_plan(stages: Sequence[StagePlan]) -> dict[str, Any]:
    marks = [mark for stage in stages for mark in stage.fallback]
    op_ns = [ns for stage in stages for ns in stage.op_ns]
    return {
        "ops": len(op_ns),
        "fallback_ops": sum(marks),
        "ms": sum(op_ns) / 1e6,
        "gpu_ms": sum(ns for ns, mark in zip(op_ns, marks, strict=True) if not mark) / 1e6,
        "cpu_ms": sum(stage.cpu_ns for stage in stages) / 1e6,
        "short_ops": sum(ns <= SHORT_NS for ns in op_ns) / len(op_ns),
        "chunks": sum(
            not all(stage.fallback[begin:end]) for stage in stages for begin, end in stage.chunks
        ),
    }


def _ways(stage: StagePlan) -> list[Ranges]:
    """The pieces of each of WAYS: what is run between two waits."""
    return [*(_cut(stage, size) for size in SIZES), _pieces(stage)]


def _pieces(stage: StagePlan) -> Ranges:
    """The static partition's chunks, and within each the stretches on the GPU and on the CPU."""
    found = []
    for begin, end in stage.chunks:
        for _, run in groupby(range(begin, end), stage.fallback.__getitem__):
            ops = list(run)
            found.append((ops[0], ops[-1] + 1))
    return found


def _cut(stage: StagePlan, size: int | None) -> Ranges:
    """Ranges of at most ``size`` ops; None: only fallback ops end one."""
    strategy, ops = ("whole", 1) if size is None else ("fixed", size)
    found = partition(stage, GAP_NS, strategy, ops_per_chunk=ops)
    return [(chunk.start, chunk.end) for chunk in found]


# --- on this machine ---------------------------------------------------------------------------


def _measure(name: str) -> dict[str, Any]:
    options = RunOptions(headless=True)
    scenario, _ = fit(load_scenario(name), options)
    app = create(as_app(scenario))
    models = {dnn.name: str(dnn.model) for dnn in scenario.declared()}
    found, graphs = {}, {}
    with start(app, options) as setup:
        for dnn, deployment in setup.deployments.items():
            reference = scenario.settings(dnn).reference
            if reference is not None:
                print(f"{name}: {dnn} ...", file=sys.stderr, flush=True)
                found[reference] = {"model": models[dnn], **_network(deployment)}
                graphs[reference] = deployment.graphs[0]
    for reference, graph in graphs.items():
        found[reference]["on_cpu"] = _beside_camera(graph)
    return found


def _network(deployment: Deployment) -> dict[str, Any]:
    stages = deployment.plan.stages
    flops = sum(node_flops(graph, node) for graph in deployment.graphs for node in graph.nodes)
    ways = [*WAYS, "whole"]
    ms = dict.fromkeys(ways, 0.0)
    for index, stage in enumerate(stages):
        where = deployment.unit_network(index, GPU).take()
        cuts = [*_ways(stage), _cut(stage, None)]
        for way, best_ms in zip(ways, _best_ms(where.network, where.state, cuts), strict=True):
            ms[way] += best_ms
        where.free()
    longer = {way: ms[way] / ms["whole"] for way in WAYS}
    return {**_of_plan(stages), "gflop": flops / 1e9, "longer": longer}


def _best_ms(network: LoadedNetwork, state: State, cuts: Sequence[Ranges]) -> list[float]:
    """The least time of each way to cut it. They take turns: a disturbance hits all alike."""
    inputs = sample_inputs(network.graph, 0)
    times: list[list[float]] = [[] for _ in cuts]
    for _ in range(ROUNDS):
        for cut, kept in zip(cuts, times, strict=True):
            network.write(state, inputs)
            began_s = time.perf_counter()
            for begin, end in cut:
                run = network.run_fallback if network.ops[begin].fallback else network.run
                run(state, begin, end)
            kept.append(1e3 * (time.perf_counter() - began_s))
    return [min(kept) for kept in times]


def _beside_camera(graph: Graph) -> dict[str, Any]:
    """Fig. 9: the network on one CPU core, alone and while a clip is decoded on that core."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    network = OnnxRuntimeEngine(threads=1).load(graph)
    state = network.new_state()
    inputs = sample_inputs(graph, 0)

    def infer() -> None:
        network.write(state, inputs)
        network.run(state, 0, len(network.ops))

    alone = _mean_and_std(infer)
    with closing(open_source(str(paths.ASSETS / "media" / "desk.mp4"))) as source:
        source.wait_first(10.0)
        return {"alone": alone, "with_camera": _mean_and_std(infer)}


def _mean_and_std(call: Callable[[], None]) -> dict[str, float]:
    call()  # the first is slower
    times = []
    for _ in range(3 * ROUNDS):
        began_s = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - began_s))
    return {"mean": float(np.mean(times)), "std": float(np.std(times))}


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1])))
