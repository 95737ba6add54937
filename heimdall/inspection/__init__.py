"""Looking at a model on this machine without an app: behind profile, partition and check."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from heimdall.analyzer.partition import Chunk
from heimdall.analyzer.precision import engine_for
from heimdall.analyzer.profile import NetworkProfile
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.analyzer.store import load_or_measure
from heimdall.engine.checks import check_forced_names
from heimdall.errors import ConfigError, unknown
from heimdall.graph.graph import Graph, load_graph
from heimdall.graph.onnx_file import Inputs
from heimdall.models.catalog import CATALOG
from heimdall.runtime.execution.processors import Processors, open_processors
from heimdall.system import paths, softgpu
from heimdall.vocabulary.enums import Precision

Shapes = Inputs


def load_networks(model: str, shapes: Shapes | None = None) -> list[Graph]:
    """The networks of a catalogue name (several for a DNN of stages), or of an ONNX file: a path,
    or the name of a bundled one.

    ``shapes`` fixes input shapes. Raises ConfigError for an unknown name, ModelError for a bad
    file.
    """
    if model in CATALOG:
        pipeline = CATALOG[model].make()
        return [
            load_graph(each.path, {**each.shapes, **(shapes or {})}) for each in pipeline.networks
        ]
    path = paths.bundled(model, "models")
    if not os.path.exists(path) and not model.endswith(".onnx"):
        raise ConfigError(
            unknown("model", model, CATALOG.labels()) + "; or give the path of an .onnx file"
        )
    return [load_graph(path, shapes or None)]


def profile_model(
    graphs: Sequence[Graph],
    processors: Processors,
    *,
    force_fallback: Collection[str] = (),
    remeasure: bool = False,
    precision: str = Precision.FP32,
    progress: Progress = no_progress,
) -> list[NetworkProfile]:
    """One profile a network, measured where there is no valid one yet. ``precision`` as of a DNN;
    raises DeviceError where the GPU lacks it."""
    check_forced_names(graphs, force_fallback)
    return [
        load_or_measure(
            graph,
            engine_for(processors.gpu, graph, precision, force_fallback),
            processors.cpu,
            mode=processors.profile_key,
            force_fallback=force_fallback,
            remeasure=remeasure,
            progress=progress,
        )
        for graph in graphs
    ]


def tune(
    graphs: Sequence[Graph],
    processors: Processors,
    progress: Progress = no_progress,
    precision: str = Precision.FP32,
) -> list[dict[str, Any]]:
    """Let the GPU's engine choose kernels by measurement; one summary a network.

    ``before_ms`` and ``after_ms`` are sums over the layers looked at, each alone;
    ``wrong_kernels`` gave wrong results, or did not run, and were not considered.
    """
    summaries = []
    for graph in graphs:
        engine = engine_for(processors.gpu, graph, precision)
        found = engine.tune(graph, partial(progress, f"tuning {graph.name}")).values()
        summaries.append(
            {
                "network": graph.name,
                "layers": len(found),
                "changed": sum(each.after_ns < each.before_ns for each in found),
                "before_ms": sum(each.before_ns for each in found) / 1e6,
                "after_ms": sum(each.after_ns for each in found) / 1e6,
                "wrong_kernels": sum(each.wrong for each in found),
            }
        )
    return summaries


def describe_profile(profile: NetworkProfile) -> dict[str, Any]:
    """A profile as ``--json`` prints it, times in ms."""
    return {
        "network": profile.model,
        "device": profile.key.device,
        "driver": profile.key.driver,
        "mode": profile.key.mode,
        "gpu_ms": profile.whole_ns / 1e6,
        "cpu_ms": profile.cpu_ns / 1e6,
        "chunk_cost_ms": profile.chunk_cost_ns / 1e6,
        "ops": [
            {
                "index": index,
                "name": op.name,
                "kind": op.kind,
                "ms": op.ns / 1e6,
                "fallback": op.fallback,
                "flops": op.flops,
                "bytes": op.bytes,
            }
            for index, op in enumerate(profile.ops)
        ],
    }


def describe_passes(
    graphs: Sequence[Graph], processors: Processors, *, force_fallback: Collection[str] = ()
) -> list[dict[str, Any]]:
    """What the GPU's engine makes of networks, as ``--json`` prints it: the ops after each pass of
    its compiler that changed something.

    Raises ConfigError where the engine has no passes.
    """
    check_forced_names(graphs, force_fallback)
    listed = [
        {
            "network": graph.name,
            "pass": name,
            "ops": [
                {
                    "kind": op.kind,
                    "output": op.output,
                    "shape": list(op.shape),
                    "nodes": list(dict.fromkeys(op.nodes)),
                }
                for op in ops
            ],
        }
        for graph in graphs
        for name, ops in processors.gpu.passes(graph, force_fallback=force_fallback)
    ]
    if not listed:
        raise ConfigError(f"the engine {processors.gpu.name} has no passes to show")
    return listed


def describe_chunks(profile: NetworkProfile, chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    """Chunks as ``--json`` prints them; ``end`` is the op after the last, ``state_kb`` what is kept
    of those before where the network stops ahead of it (null: an older profile does not tell)."""
    states = profile.states
    return [
        {
            "network": profile.model,
            "start": chunk.start,
            "end": chunk.end,
            "ms": chunk.ns / 1e6,
            "fallback": chunk.fallback,
            "fallback_ops": chunk.fallback_ops,
            "state_kb": states[chunk.start].bytes / 1000 if states else None,
        }
        for chunk in chunks
    ]


def draw(
    profile: NetworkProfile,
    chunks: Sequence[Chunk],
    gap_ms: float,
    margin_ms: float,
    png: Path,
    *,
    alone: bool,
) -> Path:
    """Draw the chunks into ``png``; for one of several networks, its name is added to the file's.

    Raises ConfigError when the picture cannot be written.
    """
    from heimdall.analyzer.plot import plot_partition

    path = png if alone else png.with_name(f"{png.stem}-{profile.model}{png.suffix}")
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write the picture {path}: {error}") from error
    plot_partition(profile, chunks, gap_ms, path, margin_ms=margin_ms)
    return path


def check(
    models: Sequence[str],
    every: bool,
    device: str | None,
    cores: int | None,
    progress: Progress = no_progress,
    precision: str = Precision.FP32,
    shapes: Shapes | None = None,
) -> list[dict[str, Any]]:
    """Check models against onnxruntime, with GPU and CPU side on the same cores, in turn.
    ``shapes`` fixes input shapes of every network.

    Raises DeviceError where the GPU lacks a ``precision`` that is asked for.
    """
    from heimdall.inspection.checking import bundled_shapes, check_models

    names = [*models, *(CATALOG if every else ())]
    files = [path for name in names for path in _files(name)]
    software = softgpu.together(cores)
    with open_processors(device, software) as processors:
        gpu, cores = processors.gpu, len(software.gpu_cores)
        own = bundled_shapes()
        chosen = {each.name: {**own.get(each.name, {}), **(shapes or {})} for each in files}
        return check_models(
            files, gpu, cores, shapes=chosen, precision=precision, progress=progress
        )


def _files(model: str) -> list[Path]:
    """What to check for a name; a path that is no file is reported in the list, not here."""
    if model in CATALOG:
        return [network.path for network in CATALOG[model].make().networks]
    return [paths.bundled(model, "models")]
