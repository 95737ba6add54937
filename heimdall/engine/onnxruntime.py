"""The CPU's engine: whole networks by onnxruntime, and ranges of its own optimised graph."""

from __future__ import annotations

import platform
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.analyzer.costs import node_bytes, node_flops
from heimdall.analyzer.graph import Graph
from heimdall.engine.base import Engine, LoadProgress, Network, Op, State
from heimdall.engine.checks import check_forced, check_inputs, check_range, is_forced
from heimdall.engine.submodels import PROVIDERS, Splitter, in_order, session_options
from heimdall.errors import ConfigError, ModelError

# Sub-models kept for one network, by the size of their weights: enough for a network of
# 100 MB op by op, and a bound for the elastic mode, which may cut anywhere.
CACHED_BYTES = 256 << 20


class OnnxRuntimeEngine(Engine):
    """Networks on ``threads`` CPU cores (the paper uses one core for each DNN).

    ``processor`` is the role it plays: ``"cpu"``, or ``"gpu"`` where there is no OpenCL.
    """

    name = "onnxruntime"

    def __init__(self, threads: int = 1, processor: str = "cpu") -> None:
        if threads < 1:
            raise ConfigError(f"onnxruntime needs at least one thread, not {threads}")
        self.threads = threads
        self.processor = processor

    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> OnnxRuntimeNetwork:
        """Ops are the nodes of onnxruntime's fully optimised graph; with ``force_fallback``
        those of the graph itself, so that no forced node disappears in a fusion."""
        check_forced(graph, force_fallback)
        try:
            return OnnxRuntimeNetwork(graph, self.threads, force_fallback)
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(f"onnxruntime cannot load {graph.name}: {error}") from error

    def describe(self) -> Mapping[str, str]:
        return {
            "device": _cpu_name(),
            "driver": f"onnxruntime {ort.__version__}",
            "version": "1",
            "mode": f"{self.threads} thread{'s' if self.threads > 1 else ''}",
        }


class OnnxRuntimeState(State):
    """The tensors that later ops still need, and which op is next (-1: no input yet)."""

    def __init__(self) -> None:
        self.position = -1
        self.values: dict[str, ort.OrtValue] = {}


class OnnxRuntimeNetwork(Network):
    """One session for the whole network; further ones, made when first asked for, a range."""

    def __init__(self, graph: Graph, threads: int, forced: Collection[str]) -> None:
        self.graph = graph
        self._threads = threads
        self._model = graph.model if forced else _optimised(graph)
        # What is cut out of the plain graph is optimised by itself.
        levels = ort.GraphOptimizationLevel
        self._level = levels.ORT_ENABLE_ALL if forced else levels.ORT_DISABLE_ALL
        self.ops = _plain_ops(graph, forced) if forced else _fused_ops(graph, self._model)
        self._splitter = Splitter(self._model)
        self._sessions: OrderedDict[tuple[int, int], tuple[ort.InferenceSession, int]]
        self._sessions = OrderedDict()
        self._lock = threading.Lock()
        self._whole = self._open(self._model.SerializeToString())

    def new_state(self) -> OnnxRuntimeState:
        return OnnxRuntimeState()

    def write(self, state: State, inputs: Mapping[str, np.ndarray]) -> None:
        assert isinstance(state, OnnxRuntimeState)
        check_inputs(self.graph, inputs)
        # Copied: an OrtValue only points to the caller's array.
        state.values = {
            name: ort.OrtValue.ortvalue_from_numpy(np.array(array, order="C"))
            for name, array in inputs.items()
        }
        state.position = 0

    def run(self, state: State, start: int, end: int) -> int:
        return self._run(state, start, end, fallback=False)

    def run_fallback(self, state: State, start: int, end: int) -> int:
        return self._run(state, start, end, fallback=True)

    def read(self, state: State) -> dict[str, np.ndarray]:
        assert isinstance(state, OnnxRuntimeState)
        check_range(self.ops, state.position, len(self.ops), len(self.ops))
        return {tensor.name: state.values[tensor.name].numpy() for tensor in self.outputs}

    def close(self) -> None:
        with self._lock:
            self._sessions.clear()

    def _run(self, state: State, start: int, end: int, *, fallback: bool) -> int:
        assert isinstance(state, OnnxRuntimeState)
        check_range(self.ops, state.position, start, end, fallback=fallback)
        if start == end:
            return 0
        session = self._session(start, end)
        wanted = [value.name for value in session.get_outputs()]
        feeds = {value.name: state.values[value.name] for value in session.get_inputs()}
        began_ns = time.perf_counter_ns()
        made = session.run_with_ort_values(wanted, feeds)
        elapsed_ns = time.perf_counter_ns() - began_ns
        kept = {k: v for k, v in state.values.items() if self._splitter.needed(k, end)}
        state.values = kept | dict(zip(wanted, made, strict=True))
        state.position = end
        return elapsed_ns

    def _session(self, start: int, end: int) -> ort.InferenceSession:
        if (start, end) == (0, len(self.ops)):
            return self._whole
        with self._lock:
            if (start, end) not in self._sessions:
                raw = self._splitter.cut(start, end).SerializeToString()
                self._sessions[start, end] = (self._open(raw), len(raw))
                self._forget_oldest()
            self._sessions.move_to_end((start, end))
            return self._sessions[start, end][0]

    def _forget_oldest(self) -> None:
        held = sum(size for _, size in self._sessions.values())
        while held > CACHED_BYTES and len(self._sessions) > 1:
            _, (_, size) = self._sessions.popitem(last=False)
            held -= size

    def _open(self, raw: bytes) -> ort.InferenceSession:
        options = session_options(self._threads, self._level)
        return ort.InferenceSession(raw, options, PROVIDERS)


def _optimised(graph: Graph) -> onnx.ModelProto:
    """onnxruntime's own graph at its highest level: fused nodes, blocked layouts."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "optimised.onnx"
        level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        ort.InferenceSession(graph.serialized, session_options(1, level, str(target)), PROVIDERS)
        return in_order(onnx.load(target))


def _plain_ops(graph: Graph, forced: Collection[str]) -> tuple[Op, ...]:
    return tuple(
        Op(
            name=node.name,
            kind=node.op_type,
            nodes=(node.name,),
            fallback=is_forced(node, forced),
            flops=node_flops(graph, node),
            bytes=node_bytes(graph, node),
        )
        for node in graph.nodes
    )


def _fused_ops(graph: Graph, model: onnx.ModelProto) -> tuple[Op, ...]:
    """One op for each optimised node; each of the graph's nodes belongs to at most one."""
    results = [_result(graph, proto) for proto in model.graph.node]
    boundaries = set(results)
    nodes = {node.name: node for node in graph.nodes}
    claimed: set[str] = set()
    ops = []
    for proto, result in zip(model.graph.node, results, strict=True):
        covered = tuple(n for n in _covered(graph, result, boundaries) if n not in claimed)
        claimed.update(covered)
        ops.append(
            Op(
                name=proto.name or proto.output[0],
                kind=proto.op_type,
                nodes=covered,
                flops=sum(node_flops(graph, nodes[name]) for name in covered),
                bytes=sum(node_bytes(graph, nodes[name]) for name in covered),
            )
        )
    return tuple(ops)


def _result(graph: Graph, proto: onnx.NodeProto) -> str:
    """The tensor of the graph that an optimised node computes, or "" (it moves data).

    Nodes of the blocked layout write new tensors; their names say what they replace.
    """
    for name in (*proto.output, proto.name.removesuffix("_nchwc")):
        if name in graph.producers and "Reorder" not in proto.op_type:
            return name
    return ""


def _covered(graph: Graph, result: str, boundaries: Collection[str]) -> tuple[str, ...]:
    """The nodes that lead to ``result`` from the results of other ops, in the graph's order."""
    found: set[str] = set()
    pending = [result]
    while pending:
        node = graph.producers.get(pending.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            pending += [name for name in node.inputs if name not in boundaries]
    return tuple(node.name for node in graph.nodes if node.name in found)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named: Sequence[str] = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return named[0] if named else platform.processor() or platform.machine()
