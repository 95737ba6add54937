"""A classifier on the frozen beginning of another network: transfer.py MODEL TENSOR DATA

MODEL is cut behind TENSOR, and a new end is trained on the labelled pictures of DATA, as the heads
of early exits are (`heimdall exits`, which may give it exits then). It needs PyTorch (the extra
"learn"); one thread and one seed give the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from heimdall.graph.graph import Graph, graph_from_model, load_graph
from heimdall.lab.exits import features, heads, making
from heimdall.lab.exits.data import Dataset, open_dataset
from heimdall.lab.exits.exit_points import ExitPoint
from heimdall.lab.exits.storing import narrow
from heimdall.lab.exits.written import CLASSES
from heimdall.models.image_input import ImageInput
from heimdall.system.paths import replace_file


def beginning(graph: Graph, tensor: str, size: int) -> Graph:
    """What of a network makes ``tensor``, for pictures of that size."""
    model, needed, nodes = graph.model, {tensor}, list[onnx.NodeProto]()
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            nodes.append(onnx.NodeProto.FromString(node.SerializeToString()))
    weights = [item for item in model.graph.initializer if item.name in needed]
    given = helper.make_tensor_value_info(
        graph.inputs[0].name, TensorProto.FLOAT, [1, 3, size, size]
    )
    made = helper.make_tensor_value_info(tensor, TensorProto.FLOAT, ["n", "c", "h", "w"])
    cut = helper.make_graph(nodes[::-1], graph.name, [given], [made], weights)
    cut_model = helper.make_model(cut, ir_version=8)
    del cut_model.opset_import[:]
    cut_model.opset_import.extend(model.opset_import)
    return graph_from_model(cut_model, graph.name)


def with_end(graph: Graph, head: heads.Head, dataset: Dataset) -> onnx.ModelProto:
    """The classifier: the network, and the head as its end."""
    model = graph.model
    nodes, weights = heads.nodes(head, graph.outputs[0], "scores", softmax=False)
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(weights)
    shape = [1, len(dataset.classes)]
    model.graph.ClearField("output")
    model.graph.output.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, shape))
    del model.graph.value_info[:]
    helper.set_model_props(model, {CLASSES: json.dumps(dataset.classes)})
    narrow(model)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("tensor")
    parser.add_argument("data", type=Path)
    parser.add_argument("--to", type=Path, default=Path("out") / "transfer.onnx")
    parser.add_argument("--size", type=int, default=128, help="of the square input")
    parser.add_argument("--mean", type=float, nargs=3, default=(0.485, 0.456, 0.406))
    parser.add_argument("--std", type=float, nargs=3, default=(0.229, 0.224, 0.225))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pictures", type=int, help="learn from so many (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    dataset = open_dataset(arguments.data, arguments.seed).fewer(arguments.pictures, arguments.seed)
    graph = beginning(load_graph(arguments.model), arguments.tensor, arguments.size)
    given = ImageInput(mean=arguments.mean, std=arguments.std, fit="stretch")
    recipe = making.Recipe(arguments.epochs, arguments.seed, 1, given)
    place = ExitPoint(arguments.tensor, len(graph.nodes))
    (head,) = making.train_heads(graph, dataset, [place], recipe, _tell)
    model = with_end(graph, head, dataset)
    found = features.accuracies(model, given, dataset.test, lambda done, total: None)
    content = model.SerializeToString(deterministic=True)
    replace_file(arguments.to, content)
    print(
        f"{arguments.to}: {len(content) / 1e6:.1f} MB, accuracy {found['scores']:.4f}, "
        f"sha256 {hashlib.sha256(content).hexdigest()}"
    )


def _tell(what: str, done: int, total: int) -> None:
    if done == total:
        print(f"{what}: done", file=sys.stderr)


if __name__ == "__main__":
    main()
