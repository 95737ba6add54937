"""Which precision a network gets: what its DNN asks for, or what proves faster and right here."""

from __future__ import annotations

import hashlib
import logging
import math
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from heimdall.engine.base import Engine, LoadProgress
from heimdall.engine.network import LoadedNetwork, State
from heimdall.graph.graph import Graph
from heimdall.graph.samples import sample_inputs
from heimdall.graph.simplified import version
from heimdall.system import findings, paths
from heimdall.vocabulary.enums import Precision

log = logging.getLogger(__name__)

LARGEST_ERROR = 1e-2  # of an output in fp16, against the largest value of the same in fp32
CLEARLY = 0.95  # of the time in fp32: less is not worth other results
ROUNDS = 5


@dataclass(frozen=True)
class Comparison:
    """A network in fp16 beside itself in fp32."""

    error: float  # the largest of its outputs, of their largest value
    time: float  # of the GPU, divided by that in fp32

    @property
    def precision(self) -> Precision:
        better = self.error <= LARGEST_ERROR and self.time <= CLEARLY
        return Precision.FP16 if better else Precision.FP32


def engine_for(
    gpu: Engine, graph: Graph, precision: Precision | str, force_fallback: Collection[str] = ()
) -> Engine:
    """``gpu`` with the precision that ``graph`` gets there. "auto" compares both at the first
    time and remembers; where there is but one, that is it.

    Raises DeviceError when the device lacks a precision that is asked for.
    """
    if precision != Precision.AUTO:
        return gpu.in_precision(Precision(precision))
    if Precision.FP16 not in gpu.precisions:
        return gpu.in_precision(Precision.FP32)
    return gpu.in_precision(_remembered(gpu, graph, force_fallback).precision)


def is_known(
    gpu: Engine, graph: Graph, precision: Precision | str, force_fallback: Collection[str] = ()
) -> bool:
    """True if ``engine_for`` answers without running anything."""
    if precision != Precision.AUTO or Precision.FP16 not in gpu.precisions:
        return True
    return _read(_path(gpu, graph, force_fallback)) is not None


def load_for(
    gpu: Engine,
    graph: Graph,
    precision: Precision | str,
    force_fallback: Collection[str] = (),
    on_progress: LoadProgress | None = None,
) -> tuple[Engine, LoadedNetwork]:
    """``engine_for``, and the network loaded there: where both precisions had to be compared, it
    is the one that was loaded for that. Raises as both do."""
    if is_known(gpu, graph, precision, force_fallback):
        engine = engine_for(gpu, graph, precision, force_fallback)
        return engine, engine.load(graph, force_fallback=force_fallback, on_progress=on_progress)
    found, loaded = _compared(gpu, graph, force_fallback, on_progress)
    _remember(gpu, graph, force_fallback, found)
    chosen = loaded.pop(found.precision)
    _close(loaded)
    return chosen


def compare(gpu: Engine, graph: Graph, force_fallback: Collection[str] = ()) -> Comparison:
    """Run ``graph`` in both precisions, in turns, on the inputs that profiles use."""
    found, loaded = _compared(gpu, graph, force_fallback)
    _close(loaded)
    return found


_Loaded = dict[Precision, tuple[Engine, LoadedNetwork]]


def _compared(
    gpu: Engine,
    graph: Graph,
    force_fallback: Collection[str],
    on_progress: LoadProgress | None = None,
) -> tuple[Comparison, _Loaded]:
    """See ``compare``; and what was loaded for it, which the caller closes."""
    inputs, loaded = sample_inputs(graph), _Loaded()
    try:
        for each in (Precision.FP32, Precision.FP16):
            engine = gpu.in_precision(each)
            network = engine.load(graph, force_fallback=force_fallback, on_progress=on_progress)
            loaded[each] = engine, network
        runs = [(network, network.new_state()) for _, network in loaded.values()]
        wanted, found = (network.infer(state, inputs) for network, state in runs)
        times = [[_infer_ns(*run, inputs) for run in runs] for _ in range(ROUNDS)]
    except BaseException:
        _close(loaded)
        raise
    full, half = (min(each) for each in zip(*times, strict=True))
    error = max(_error(found[name], wanted[name]) for name in wanted)
    return Comparison(error, half / full), loaded


def _close(loaded: _Loaded) -> None:
    for _, network in loaded.values():
        network.close()


def _infer_ns(network: LoadedNetwork, state: State, inputs: Mapping[str, np.ndarray]) -> int:
    began = time.perf_counter_ns()
    network.infer(state, inputs)
    return time.perf_counter_ns() - began


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest error, as a share of the largest value; infinite where a value is none (fp16 ends
    at 65504)."""
    if not np.isfinite(found).all():
        return math.inf
    scale = max(float(np.abs(wanted).max(initial=0.0)), 1e-6)
    return float(np.abs(found - wanted).max(initial=0.0)) / scale


def _path(gpu: Engine, graph: Graph, force_fallback: Collection[str]) -> Path:
    known = gpu.describe()
    parts = [
        graph.sha256,
        version(),
        *sorted(force_fallback),
        *(known[each] for each in sorted(known)),
    ]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return paths.cache_dir() / "precision" / f"{digest}.json"


def _read(path: Path) -> Comparison | None:
    return findings.read(path, _parsed, "comparing again")


def _parsed(content: Mapping[str, object]) -> Comparison:
    error, share = content["error"], content["time"]
    if not isinstance(error, float) or not isinstance(share, float):
        raise ValueError(f"{error!r} and {share!r} are no comparison")
    return Comparison(error, share)


def _remembered(gpu: Engine, graph: Graph, force_fallback: Collection[str]) -> Comparison:
    remembered = _read(_path(gpu, graph, force_fallback))
    if remembered is not None:
        return remembered
    found = compare(gpu, graph, force_fallback)
    _remember(gpu, graph, force_fallback, found)
    return found


def _remember(
    gpu: Engine, graph: Graph, force_fallback: Collection[str], found: Comparison
) -> None:
    log.info("%s in fp16: error %.1e, time %.2f", graph.name, found.error, found.time)
    findings.write(_path(gpu, graph, force_fallback), asdict(found), "it is found again")
