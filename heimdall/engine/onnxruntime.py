"""The CPU's engine: whole networks by onnxruntime, and ranges of its own optimised graph."""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from heimdall.engine.base import Engine, LoadProgress
from heimdall.engine.checks import check_forced, check_inputs, check_range, check_read, node_ops
from heimdall.engine.exits import exits_of
from heimdall.engine.network import LoadedNetwork, Op, State
from heimdall.engine.segments import SegmentedNetwork
from heimdall.engine.submodels import DONE_BEFORE, PROVIDERS, Splitter, in_order, session_options
from heimdall.errors import ConfigError, ModelError
from heimdall.graph.exits import Edges, arrange
from heimdall.graph.graph import Graph, Node
from heimdall.system.cpu import cpu_name
from heimdall.vocabulary.processors import CPU, GPU

# Sub-models kept for one network, by the size of their weights: enough for a network of
# 100 MB op by op, and a bound for the elastic mode, which may cut anywhere.
CACHED_BYTES = 256 << 20

OpenSession = Callable[[bytes], ort.InferenceSession]  # from a serialised model


class OnnxRuntimeEngine(Engine):
    """Networks on ``threads`` CPU cores (the paper uses one core for each DNN).

    ``processor`` is the role it plays: CPU, or GPU where there is no OpenCL. What a
    CPU runs is never cut, so its networks keep the graph's own ops, and load twice as fast.
    """

    name = "onnxruntime"
    computes = True
    cuts_where_asked = True

    def __init__(self, threads: int = 1, processor: str = GPU) -> None:
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
        """Ops are the nodes of onnxruntime's fully optimised graph; on the CPU, or with
        ``force_fallback``, those of the graph itself, so that no forced node disappears in a
        fusion."""
        check_forced(graph, force_fallback)
        levels = ort.GraphOptimizationLevel
        whole = bool(graph.bare.functions)  # one op, whatever an optimiser makes of it
        plain = bool(force_fallback) or whole or self.processor == CPU
        try:
            model = graph.model if plain else _optimised(graph)
            made = {name for node in model.graph.node for name in node.output}
            if not made.issuperset(tensor.name for tensor in graph.outputs):
                plain, model = True, graph.model  # an output was folded: no range would write it
            # What is cut out of the plain graph is optimised by itself.
            if not plain and not _arranged(graph, model):
                plain, model = True, graph.model  # a fusion joined what exits part
            level = levels.ORT_ENABLE_ALL if plain else levels.ORT_DISABLE_ALL
            options = session_options(self.threads, level)

            def open_session(raw: bytes) -> ort.InferenceSession:
                return ort.InferenceSession(
                    raw, options, PROVIDERS, disabled_optimizers=DONE_BEFORE
                )

            return OnnxRuntimeNetwork(
                graph,
                model,
                node_ops(graph, force_fallback) if plain else _fused_ops(graph, model),
                whole=open_session(model.SerializeToString()),
                open_range=open_session,
            )
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(f"onnxruntime cannot load {graph.name}: {error}") from error

    def load_segments(self, graph: Graph, cuts: Sequence[Collection[str]]) -> SegmentedNetwork:
        return SegmentedNetwork(graph, cuts, self.threads)

    def runs(self, network: LoadedNetwork) -> bool:
        return isinstance(network, (OnnxRuntimeNetwork, SegmentedNetwork))

    def describe(self) -> Mapping[str, str]:
        return {
            "device": cpu_name(),
            "driver": f"onnxruntime {ort.__version__}",
            "version": "1",
            "mode": f"{self.threads} thread{'s' if self.threads > 1 else ''}",
        }


class OnnxRuntimeState(State):
    """The tensors that later ops still need, and which ops have run."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, ort.OrtValue] = {}


class OnnxRuntimeNetwork(LoadedNetwork[OnnxRuntimeState]):
    """One session for the whole network; further ones, made when first asked for, a range.

    ``sizes``: how many nodes of ``model`` each op stands for (default: one). ``memory``: where
    tensors stay between ranges. ``open_fallback`` makes the sessions of fallback ops.
    """

    def __init__(
        self,
        graph: Graph,
        model: onnx.ModelProto,
        ops: tuple[Op, ...],
        *,
        whole: ort.InferenceSession,
        open_range: OpenSession,
        open_fallback: OpenSession | None = None,
        memory: str = "cpu",
        sizes: Sequence[int] | None = None,
    ) -> None:
        self.graph, self.ops = graph, ops
        self._whole, self._memory = whole, memory
        self._open = {False: open_range, True: open_fallback or open_range}
        self._splitter = Splitter(model)
        self._first_node = [0, *itertools.accumulate(sizes or [1] * len(ops))]
        parts = itertools.pairwise(self._first_node)
        nodes = [model.graph.node[start:end] for start, end in parts]
        self.exits = exits_of(graph.exits, [_edges(each) for each in nodes])
        self._sessions: OrderedDict[tuple[int, int], tuple[ort.InferenceSession, int]]
        self._sessions = OrderedDict()
        self._lock = threading.Lock()

    def new_state(self) -> OnnxRuntimeState:
        return OnnxRuntimeState()

    def write(self, state: OnnxRuntimeState, inputs: Mapping[str, np.ndarray]) -> None:
        check_inputs(self.graph, inputs)
        # Copied: an OrtValue in the host's memory only points to the caller's array.
        state.values = {
            name: ort.OrtValue.ortvalue_from_numpy(np.array(array, order="C"), self._memory, 0)
            for name, array in inputs.items()
        }
        state.progress.begin()

    def run(self, state: OnnxRuntimeState, start: int, end: int) -> int:
        return self._run(state, start, end, fallback=False)

    def run_fallback(self, state: OnnxRuntimeState, start: int, end: int) -> int:
        return self._run(state, start, end, fallback=True)

    def read(self, state: OnnxRuntimeState, leave: Collection[str] = ()) -> dict[str, np.ndarray]:
        names = check_read(self, state, leave)
        found = {name: state.values[name].numpy() for name in names}
        for tensor in map(self.graph.tensors.__getitem__, names):
            if not tensor.fits(found[tensor.name].shape):
                raise ModelError(
                    f"onnxruntime makes {tensor.name!r} of {self.graph.name} of shape "
                    f"{found[tensor.name].shape}, where {tensor.shape} was inferred"
                )
        return found

    def close(self) -> None:
        with self._lock:
            self._sessions.clear()

    def _run(self, state: OnnxRuntimeState, start: int, end: int, *, fallback: bool) -> int:
        check_range(self, state, start, end, fallback=fallback)
        if start == end:
            return 0
        session = self._session(start, end, fallback)
        memory = "cpu" if fallback else self._memory
        began_ns = time.perf_counter_ns()
        try:
            made = _run_bound(session, state.values, memory, from_host=memory != self._memory)
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(f"onnxruntime cannot run {self.graph.name}: {error}") from error
        elapsed_ns = time.perf_counter_ns() - began_ns
        last = self._first_node[end]
        kept = {k: v for k, v in state.values.items() if self._splitter.needed(k, last)}
        state.values = kept | made
        state.progress.add(start, end)
        return elapsed_ns

    def _session(self, start: int, end: int, fallback: bool) -> ort.InferenceSession:
        if (start, end) == (0, len(self.ops)) and not fallback:
            return self._whole
        with self._lock:
            if (start, end) not in self._sessions:
                first, last = self._first_node[start], self._first_node[end]
                raw = self._splitter.cut(first, last).SerializeToString()
                self._sessions[start, end] = (self._open[fallback](raw), len(raw))
                self._forget_oldest()
            self._sessions.move_to_end((start, end))
            return self._sessions[start, end][0]

    def _forget_oldest(self) -> None:
        held = sum(size for _, size in self._sessions.values())
        while held > CACHED_BYTES and len(self._sessions) > 1:
            _, (_, size) = self._sessions.popitem(last=False)
            held -= size


def _run_bound(
    session: ort.InferenceSession,
    values: Mapping[str, ort.OrtValue],
    memory: str,
    *,
    from_host: bool,
) -> dict[str, ort.OrtValue]:
    """The session's outputs by name, in ``memory``; ``from_host``: copy inputs there first."""
    binding = session.io_binding()
    for each in session.get_inputs():
        value = values[each.name]
        if from_host:
            value = ort.OrtValue.ortvalue_from_numpy(value.numpy())
        binding.bind_ortvalue_input(each.name, value)
    wanted = [each.name for each in session.get_outputs()]
    for name in wanted:
        binding.bind_output(name, memory)
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return dict(zip(wanted, binding.get_outputs(), strict=True))


def _optimised(graph: Graph) -> onnx.ModelProto:
    """onnxruntime's own graph at its highest level: fused nodes, blocked layouts."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "optimised.onnx"
        level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        ort.InferenceSession(graph.serialized, session_options(1, level, str(target)), PROVIDERS)
        return in_order(onnx.load(target))


def _arranged(graph: Graph, model: onnx.ModelProto) -> bool:
    """Put the nodes of an optimised model into the order of its exits; False if that cannot be."""
    if not graph.exits:
        return True
    nodes = list(model.graph.node)
    try:
        edges = [(node.input, node.output) for node in nodes]
        arranged = arrange(edges, graph.exits)
    except ValueError:
        return False
    del model.graph.node[:]
    model.graph.node.extend(nodes[op] for op in arranged.order)
    return True


def _edges(nodes: Sequence[onnx.NodeProto]) -> Edges:
    """What some nodes read and make together."""
    return [n for node in nodes for n in node.input], [n for node in nodes for n in node.output]


def _fused_ops(graph: Graph, model: onnx.ModelProto) -> tuple[Op, ...]:
    """One op for each optimised node; each of the graph's nodes belongs to at most one."""
    results = [_result(graph, proto) for proto in model.graph.node]
    boundaries = set(results)
    claimed: set[str] = set()
    ops = []
    for proto, result in zip(model.graph.node, results, strict=True):
        covered = [n for n in _covered(graph, result, boundaries) if n.name not in claimed]
        claimed.update(node.name for node in covered)
        ops.append(Op.of(graph, covered, proto.name or proto.output[0], proto.op_type))
    return tuple(ops)


def _result(graph: Graph, proto: onnx.NodeProto) -> str:
    """The tensor of the graph that an optimised node computes, or "" (it moves data).

    Nodes of the blocked layout write new tensors; their names say what they replace.
    """
    for name in (*proto.output, proto.name.removesuffix("_nchwc")):
        if name in graph.producers and "Reorder" not in proto.op_type:
            return name
    return ""


def _covered(graph: Graph, result: str, boundaries: Collection[str]) -> list[Node]:
    """The nodes that lead to ``result`` from the results of other ops, in the graph's order."""
    found: set[str] = set()
    pending = [result]
    while pending:
        node = graph.producers.get(pending.pop())
        if node is not None and node.name not in found:
            found.add(node.name)
            pending += [name for name in node.inputs if name not in boundaries]
    return [node for node in graph.nodes if node.name in found]
