"""``heimdall check``: is the GPU engine right, chunk by chunk, and how fast beside onnxruntime?"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heimdall.analyzer.partition import partition
from heimdall.analyzer.precision import load_for
from heimdall.analyzer.profiler import Progress, measure_ops, no_progress
from heimdall.engine.base import Engine
from heimdall.engine.network import LoadedNetwork, State
from heimdall.engine.onnxruntime import OnnxRuntimeEngine
from heimdall.errors import DeviceError, HeimdallError
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.samples import sample_inputs
from heimdall.vocabulary.enums import Precision
from heimdall.vocabulary.plans import StagePlan
from heimdall.vocabulary.processors import CPU

log = logging.getLogger(__name__)

GAP_NS = 28_000_000  # 30 fps less about 5 ms of rendering: the gap where none was profiled
RUNS = 7
WARM_UPS = 2

Range = tuple[int, int]


def check_models(
    paths: Iterable[str | Path],
    engine: Engine,
    cores: int = 1,
    *,
    gap_ns: int = GAP_NS,
    shapes: Mapping[str, Any] | None = None,
    precision: str = Precision.FP32,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Run each model on ``engine``, whole, in chunks of ``gap_ns`` and op by op, against
    onnxruntime on ``cores`` cores, on the same input.

    One entry a model, in order: ``model, ops, fallback_ops, max_abs_error, max_rel_error,
    gpu_ms, chunked_ms, onnxruntime_ms, chunks, longest_enqueue_ms, weights_mb, activations_mb,
    cores, precision, error``. Errors are the largest over all outputs and all three ways of
    cutting; max_rel_error is max|a - b| / max|b| of an output. Times are medians of interleaved
    runs without input and output copies. ``longest_enqueue_ms`` is what the GPU does at most
    without a chance to do something else, ``activations_mb`` the peak of one job; both are null
    where the engine cannot tell. A model that cannot be checked has nulls, and the reason as
    ``error``; the others go on.

    ``shapes`` gives input shapes by file name, as for ``load_graph``; the bundled models with
    free dimensions are known. ``precision`` is that of ``engine``, as of a DNN ("auto": what each
    model gets there, which its entry tells); onnxruntime computes in float32. Raises DeviceError
    where the engine lacks it.
    """
    if precision != Precision.AUTO:
        engine = engine.in_precision(Precision(precision))

    def load(graph: Graph) -> tuple[Engine, LoadedNetwork]:
        return load_for(engine, graph, precision)

    known = {**bundled_shapes(), **(shapes or {})}
    reference = OnnxRuntimeEngine(threads=cores, processor=CPU)
    todo = [Path(path) for path in paths]
    results = []
    for index, path in enumerate(todo):
        progress(f"checking {path.name}", index, len(todo))
        results.append(_guarded(path, known.get(path.name), load, reference, gap_ns))
    progress("checked", len(todo), len(todo))
    return results


def bundled_shapes() -> dict[str, Any]:
    """Input shapes by file name, as the catalogue's pipelines run the bundled networks."""
    from heimdall.models.catalog import CATALOG, open_pipeline

    networks = [network for name in CATALOG for network in open_pipeline(name).networks]
    return {Path(network.file).name: network.shapes for network in networks if network.shapes}


def _guarded(
    path: Path,
    shapes: Any,
    load: Callable[[Graph], tuple[Engine, LoadedNetwork]],
    reference: OnnxRuntimeEngine,
    gap_ns: int,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"model": str(path), "ops": None, "fallback_ops": []}
    entry |= dict.fromkeys(("max_abs_error", "max_rel_error", "gpu_ms", "chunked_ms"))
    entry |= dict.fromkeys(("onnxruntime_ms", "chunks", "longest_enqueue_ms", "weights_mb"))
    entry |= {"activations_mb": None, "cores": reference.threads, "precision": None, "error": None}
    try:
        graph = load_graph(path, shapes)
        engine, network = load(graph)
        entry["precision"] = engine.describe().get("precision", str(Precision.FP32))
        entry |= _check(graph, network, reference, gap_ns)
    except HeimdallError as error:
        entry["error"] = str(error)
    except Exception as error:  # a driver's own types; the other models are still checked
        log.debug("checking %s failed", path, exc_info=True)
        entry["error"] = f"{type(error).__name__}: {error}"
    return entry


def _check(
    graph: Graph, network: LoadedNetwork, reference: OnnxRuntimeEngine, gap_ns: int
) -> dict[str, Any]:
    alone = reference.load(graph)
    try:
        inputs = sample_inputs(graph)
        marks = tuple(op.fallback for op in network.ops)
        measured = measure_ops(network)
        plan = StagePlan(measured.op_ns, marks, 0, measured.chunk_cost_ns)
        whole = _ranges(plan, gap_ns, "whole")
        chunked = _ranges(plan, gap_ns, "runs")
        lone = [(op, op + 1) for op in range(len(marks))]
        state, other = network.new_state(), alone.new_state()
        _run(alone, other, inputs, [(0, len(alone.ops))])
        expected = alone.read(other)
        found = []
        for ranges in (whole, chunked, lone):
            _run(network, state, inputs, ranges)
            found.append(_errors(network.read(state), expected))
        gpu_ns, chunked_ns, reference_ns = _interleaved(
            lambda: _run(network, state, inputs, whole),
            lambda: _run(network, state, inputs, chunked),
            lambda: _run(alone, other, inputs, [(0, len(alone.ops))]),
        )
        longest_ns = _longest_enqueue_ns(network, state, inputs, whole)
        memory = network.memory
    finally:
        network.close()
        alone.close()
    return {
        "ops": len(marks),
        "fallback_ops": [op.name for op in network.ops if op.fallback],
        "max_abs_error": max(absolute for absolute, _ in found),
        "max_rel_error": max(relative for _, relative in found),
        "gpu_ms": gpu_ns / 1e6,
        "chunked_ms": chunked_ns / 1e6,
        "onnxruntime_ms": reference_ns / 1e6,
        "chunks": sum(not marks[start] for start, _ in chunked),
        "longest_enqueue_ms": None if longest_ns is None else longest_ns / 1e6,
        "weights_mb": memory.weights_bytes / 1e6 if memory else None,
        "activations_mb": memory.activation_bytes / 1e6 if memory else None,
    }


def _longest_enqueue_ns(
    network: LoadedNetwork, state: State, inputs: Mapping[str, np.ndarray], ranges: Sequence[Range]
) -> int | None:
    """The least of a few runs: other work on the machine only ever lengthens it."""
    found = []
    for _ in range(WARM_UPS + 1):
        _run(network, state, inputs, ranges)
        if (longest_ns := network.longest_enqueue_ns(state)) is not None:
            found.append(longest_ns)
    return min(found, default=None)


def _ranges(plan: StagePlan, gap_ns: int, strategy: str) -> list[Range]:
    return [(chunk.start, chunk.end) for chunk in partition(plan, gap_ns, strategy)]


def _run(
    network: LoadedNetwork, state: State, inputs: Mapping[str, np.ndarray], ranges: Sequence[Range]
) -> int:
    """One inference in these ranges; the elapsed ns of all of them."""
    network.write(state, inputs)
    elapsed_ns = 0
    for start, end in ranges:
        run = network.run_fallback if network.ops[start].fallback else network.run
        began_ns = time.perf_counter_ns()
        reported_ns = run(state, start, end)
        elapsed_ns += max(reported_ns, time.perf_counter_ns() - began_ns)
    return elapsed_ns


def _interleaved(*ways: Callable[[], int]) -> list[float]:
    """The median ns of each way, run in turn so that a disturbance hits all alike."""
    times: list[list[int]] = [[] for _ in ways]
    for run in range(WARM_UPS + RUNS):
        for way, kept in zip(ways, times, strict=True):
            elapsed_ns = way()
            if run >= WARM_UPS:
                kept.append(elapsed_ns)
    return [statistics.median(kept) for kept in times]


def _errors(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray]
) -> tuple[float, float]:
    """The largest absolute and relative error over all outputs.

    Places where both are NaN or the same infinity agree; a lone one is an error.
    """
    largest = (0.0, 0.0)
    for name, wanted in expected.items():
        b = np.asarray(wanted, np.float64)
        a = np.asarray(found[name], np.float64)
        if a.shape != b.shape:
            raise DeviceError(f"output {name!r} has shape {a.shape} instead of {b.shape}")
        agree = (a == b) | (np.isnan(a) & np.isnan(b))
        differences = np.abs(np.subtract(a, b, out=np.zeros_like(b), where=~agree))
        if not np.isfinite(differences).all():
            raise DeviceError(f"output {name!r} is not finite where onnxruntime's is")
        absolute = float(differences.max(initial=0.0))
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
        relative = absolute / max(scale, float(np.finfo(np.float32).tiny))
        largest = (max(largest[0], absolute), max(largest[1], relative))
    return largest
