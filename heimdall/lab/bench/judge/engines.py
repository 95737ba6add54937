"""Our engine against onnxruntime's, and what cutting a network costs."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping
from typing import Any

from heimdall.analyzer.partition import partition
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.engine import open_engine
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.engine.providers import available_providers
from heimdall.errors import DeviceError, HeimdallError
from heimdall.graph.graph import Graph
from heimdall.graph.samples import sample_inputs
from heimdall.inspection import load_networks
from heimdall.lab.bench import in_turns
from heimdall.lab.bench.in_turns import Range, Runs
from heimdall.lab.bench.judge.networks import bundled
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import softgpu
from heimdall.system.priority import cores_awake
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU

PIECES = 8  # that a network is cut into to see what a chunk costs
_LEAST = 3


def compare_engines(
    device: str | None, seconds: float, progress: Progress = no_progress
) -> dict[str, Any]:
    """Milliseconds of each bundled network in one call, and of onnxruntime's CPU provider and GPU
    providers; ratios of theirs over ours, and geometric means.

    A software GPU and onnxruntime compute on the same cores, as many as apps give the GPU; beside a
    real one onnxruntime has all. Medians of turns; ``spread`` is what the middle half of them is
    apart, as a part of the median.
    """
    software = softgpu.together()
    with cores_awake(), open_processors(device, software) as processors:
        gpu = processors.gpu
        cores = len(software.gpu_cores) if processors.software else _all_cores()
        rivals, missing = _rivals(gpu, cores)
        graphs = _graphs()
        found: dict[str, Any] = {}
        for index, (name, graph) in enumerate(graphs):
            progress("engine against onnxruntime", index, len(graphs))
            found[name] = _guarded(_compare, graph, gpu, rivals, seconds / len(graphs))
        progress("engine against onnxruntime", len(graphs), len(graphs))
    if not any("ms" in each for each in found.values()):
        raise DeviceError(f"no network could be measured: {_reasons(found)}")
    means = {}
    for rival in rivals:
        ratios = [each[f"{rival}_ratio"] for each in found.values() if f"{rival}_ratio" in each]
        if ratios:
            means[rival] = round(statistics.geometric_mean(ratios), 3)
    return {"cores": cores, "geometric_mean": means, "networks": found, **missing}


def cost_of_cutting(
    device: str | None, seconds: float, progress: Progress = no_progress
) -> dict[str, Any]:
    """Each bundled network in ``PIECES`` chunks relative to the whole in one call, and what each
    more chunk adds, on the cores that apps use. Medians of single runs in turns."""
    with cores_awake(), open_processors(device, softgpu.plan()) as processors:
        graphs = _graphs()
        found: dict[str, Any] = {}
        for index, (name, graph) in enumerate(graphs):
            progress("cost of chunks", index, len(graphs))
            found[name] = _guarded(_cut, graph, processors.gpu, seconds / len(graphs))
        progress("cost of chunks", len(graphs), len(graphs))
    measured = [each for each in found.values() if "ratio" in each]
    if not measured:
        raise DeviceError(f"no network could be measured: {_reasons(found)}")
    return {
        "pieces": PIECES,
        "ratio": round(statistics.geometric_mean(each["ratio"] for each in measured), 4),
        "ns_a_chunk": round(statistics.median(each["ns_a_chunk"] for each in measured)),
        "networks": found,
    }


def _reasons(found: Mapping[str, Mapping[str, Any]]) -> str:
    return "; ".join(f"{name}: {each['not_measured']}" for name, each in found.items())


def _guarded(measure: Any, *arguments: Any) -> dict[str, Any]:
    """What came of it, or why nothing did: the other networks are measured all the same."""
    try:
        found: dict[str, Any] = measure(*arguments)
    except HeimdallError as error:
        return {"not_measured": str(error)}
    return found


def _graphs() -> list[tuple[str, Graph]]:
    return [(graph.name, graph) for model in bundled() for graph in load_networks(model)]


def _all_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _rivals(ours: Engine, cores: int) -> tuple[dict[str, Engine], dict[str, str]]:
    """(onnxruntime on the CPU and on every GPU that it finds, why others are left out)."""
    rivals: dict[str, Engine] = {"onnxruntime": OnnxRuntimeEngine(threads=cores, processor=CPU)}
    missing = {}
    for name in available_providers():
        if name in ours.describe()["device"]:
            continue  # it is what is compared
        try:
            rivals[name] = open_engine("provider", provider=name)
        except HeimdallError as error:
            missing[f"{name}_not_measured"] = str(error)
    return rivals, missing


def _compare(
    graph: Graph, gpu: Engine, rivals: Mapping[str, Engine], seconds: float
) -> dict[str, Any]:
    inputs = sample_inputs(graph)
    entry: dict[str, Any] = {}
    networks: dict[str, LoadedNetwork] = {"": gpu.load(graph)}
    try:
        for rival, engine in rivals.items():
            try:
                networks[rival] = engine.load(graph)
            except HeimdallError as error:
                entry[f"{rival}_not_measured"] = str(error)
        ways = {name: _in_one_call(Runs(each, inputs)) for name, each in networks.items()}
        _warm_up(ways)
        times_s = in_turns.rounds(ways, seconds, _LEAST)
    finally:
        for network in networks.values():
            network.close()
    own_s = times_s.pop("")
    ours_s = statistics.median(own_s)
    entry = {"ms": round(1e3 * ours_s, 3), "spread": round(in_turns.spread(own_s), 3), **entry}
    for rival, each in times_s.items():
        middle_s = statistics.median(each)
        entry[f"{rival}_ms"] = round(1e3 * middle_s, 3)
        entry[f"{rival}_spread"] = round(in_turns.spread(each), 3)
        entry[f"{rival}_ratio"] = round(middle_s / ours_s, 3)
    return entry


def _warm_up(ways: Mapping[str, in_turns.TimedRun]) -> None:
    """A provider opens a session for each range of ops when it first runs it."""
    for run_once in ways.values():
        run_once()


def _in_one_call(runs: Runs) -> in_turns.TimedRun:
    ranges = _ranges(runs.network, "whole")
    return lambda: runs(ranges)


def _cut(graph: Graph, gpu: Engine, seconds: float) -> dict[str, Any]:
    network = gpu.load(graph)
    try:
        whole = _ranges(network, "whole")
        pieces = _ranges(network, "fixed", -(-len(network.ops) // PIECES))
        runs = Runs(network, sample_inputs(graph))
        ways = {"whole": lambda: runs(whole), "cut": lambda: runs(pieces)}
        _warm_up(ways)
        times_s = in_turns.drawn(ways, seconds, _LEAST)
    finally:
        network.close()
    whole_s, cut_s = statistics.median(times_s["whole"]), statistics.median(times_s["cut"])
    more = max(1, len(pieces) - len(whole))
    return {
        "chunks": len(pieces),
        "ratio": round(cut_s / whole_s, 4),
        "ns_a_chunk": round(1e9 * (cut_s - whole_s) / more),
    }


def _ranges(network: LoadedNetwork, strategy: str, ops: int = 1) -> list[Range]:
    marks = tuple(op.fallback for op in network.ops)
    plan = StagePlan((0,) * len(marks), marks, 0, 0)
    return [(c.start, c.end) for c in partition(plan, 1, strategy, ops_per_chunk=ops)]
