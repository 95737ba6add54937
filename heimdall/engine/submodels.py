"""Parts of an ONNX model: a range of its nodes as a model of its own.

onnxruntime cannot run part of a graph, but it runs a part that is cut out. A cut of its own
optimised graph, loaded without further optimisation, keeps all fusions and layouts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import onnx
import onnxruntime as ort

PROVIDERS = ["CPUExecutionProvider"]
# A loaded graph has been through it. In a part of that graph it names tensors as it did there, and
# stops at those it finds.
DONE_BEFORE = ["MatMulAddFusion"]


def session_options(
    threads: int, level: ort.GraphOptimizationLevel, optimised_path: str | None = None
) -> ort.SessionOptions:
    """Options of every session: ``threads`` workers that never spin (spinning starves
    rendering), one op at a time, no messages on the terminal."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors arrive as exceptions
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # From its second run on a session would keep a second block for all its tensors: 35 MB for
    # shopping's five networks, taken when a DNN first moves to the CPU, and no faster. (DirectML
    # refuses anything else.)
    options.enable_mem_pattern = False
    if optimised_path is not None:
        options.optimized_model_filepath = optimised_path
    return options


def in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its nodes in an order that only its structure decides.

    onnxruntime writes the same optimised graph in another order, and with other names for the
    nodes it adds, in each process; a profile of its ops must outlive the process.
    """
    producers = {name: node for node in model.graph.node for name in node.output if name}
    ordered: list[onnx.NodeProto] = []
    seen: set[int] = set()
    pending = [(value.name, False) for value in reversed(model.graph.output)]
    while pending:  # depth first, each node after all that it reads
        name, expanded = pending.pop()
        node = producers.get(name)
        if node is None or id(node) in seen:
            continue
        if expanded:
            seen.add(id(node))
            ordered.append(node)
        else:
            pending.append((name, True))
            pending += [(read, False) for read in reversed(_reads(node))]
    copies = []
    for index, node in enumerate(ordered):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        if node.op_type.startswith("Reorder"):
            copy.name = f"{node.op_type}_{index}"
        copies.append(copy)
    del model.graph.node[:]
    model.graph.node.extend(copies)
    return model


def _reads(node: onnx.NodeProto) -> list[str]:
    """The tensors a node needs, those that its subgraphs (If, Loop) capture included."""
    inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return [*node.input, *(name for graph in inner for each in graph.node for name in _reads(each))]


class Splitter:
    """Cuts ranges of nodes out of one model whose nodes are in topological order."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._nodes: Sequence[onnx.NodeProto] = model.graph.node
        self._constants = {item.name: item for item in model.graph.initializer}
        self._last_use = {
            name: index for index, node in enumerate(self._nodes) for name in node.input
        }
        for value in model.graph.output:
            self._last_use[value.name] = len(self._nodes)

    def cut(self, start: int, end: int) -> onnx.ModelProto:
        """Nodes ``[start, end)``: inputs are what they read from before, outputs what is
        still needed after them."""
        nodes = self._nodes[start:end]
        made = dict.fromkeys(name for node in nodes for name in node.output if name)
        used = dict.fromkeys(name for node in nodes for name in node.input if name)
        graph = onnx.GraphProto(name=f"{self._model.graph.name}[{start}:{end}]")
        graph.node.extend(nodes)
        graph.initializer.extend(self._constants[name] for name in used if name in self._constants)
        for name in used:
            if name not in made and name not in self._constants:
                kind = self._types[name]
                graph.input.append(onnx.helper.make_tensor_value_info(name, kind, None))
        for name in made:
            if self.needed(name, end):
                graph.output.append(onnx.ValueInfoProto(name=name))
        return onnx.ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
            graph=graph,
        )

    def needed(self, name: str, end: int) -> bool:
        """Does a node from ``end`` on, or the caller, read this tensor?"""
        return self._last_use.get(name, -1) >= end

    @cached_property
    def _types(self) -> Mapping[str, int]:
        """Element type of every tensor, asked of onnxruntime: ONNX's own inference does not
        know the ops that its optimiser introduces."""
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        declared = {value.name for value in model.graph.output}
        for node in model.graph.node:
            for name in node.output:
                if name and name not in declared:
                    model.graph.output.append(onnx.ValueInfoProto(name=name))
        options = session_options(1, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
        session = ort.InferenceSession(model.SerializeToString(), options, PROVIDERS)
        values = [*session.get_inputs(), *session.get_outputs()]
        return {
            value.name: onnx.TensorProto.DataType.Value(value.type[7:-1].upper())
            for value in values
        }
