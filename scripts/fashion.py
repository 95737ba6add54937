"""Trains a small residual network on Fashion-MNIST: fashion.py DATA [--to FILE] [--epochs E]

DATA is the folder of the Debian package dataset-fashion-mnist. What is written is an ONNX file of
about 0.2 MB, its batch norms folded and its weights in float16, to which `heimdall exits` adds
exits. With `--start FILE --size 112` the network of such a file goes on learning from enlarged
pictures: the same weights are 16 times the work, as measurements of schedulers need it. PyTorch is
needed (the extra "learn"); one thread, one seed and one version of it give the same file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.nn import functional

from heimdall.graph.graph import Graph, load_graph
from heimdall.lab.exits.data import Pictures, open_dataset
from heimdall.lab.exits.storing import narrow
from heimdall.system.paths import replace_file

SIZE = 28
STEM = 16  # channels
BLOCKS = ((32, 2), (32, 1), (48, 2), (48, 1))  # channels and stride of each residual block
BATCH = 128
RATE, MOMENTUM, DECAY = 0.1, 0.9, 5e-4
SHIFT = 2  # pixels that a picture is moved by at most


class Normed(nn.Module):
    """A convolution and its batch norm."""

    def __init__(self, given: int, made: int, side: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(given, made, side, stride, side // 2, bias=False)
        self.norm = nn.BatchNorm2d(made)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))

    def restore(self, weights: np.ndarray, bias: np.ndarray) -> None:
        """Become the one convolution that ``folded`` gave: the norm adds the bias alone."""
        state = {"conv.weight": weights, "norm.bias": bias, "norm.weight": np.ones_like(bias)}
        state |= {"norm.running_mean": np.zeros_like(bias)}
        state |= {"norm.running_var": np.full_like(bias, 1 - self.norm.eps)}
        found = {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
        self.load_state_dict(found | {"norm.num_batches_tracked": torch.tensor(0)})

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias of the one convolution that both are."""
        norm = self.norm
        scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weights = self.conv.weight * scale[:, None, None, None]
        bias = norm.bias - norm.running_mean * scale
        return weights.detach().numpy(), bias.detach().numpy()


class Block(nn.Module):
    """Two convolutions beside a shortcut (He et al. 2016), ended by a ReLU."""

    def __init__(self, given: int, made: int, stride: int) -> None:
        super().__init__()
        self.first = Normed(given, made, 3, stride)
        self.second = Normed(made, made, 3)
        changes = stride > 1 or given != made
        self.shortcut = Normed(given, made, 1, stride) if changes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beside = x if self.shortcut is None else self.shortcut(x)
        return functional.relu(self.second(functional.relu(self.first(x))) + beside)


class Backbone(nn.Module):
    """(n, 1, 28, 28) in 0..1 to (n, classes)."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.stem = Normed(1, STEM, 3)
        given, blocks = STEM, []
        for made, stride in BLOCKS:
            blocks.append(Block(given, made, stride))
            given = made
        self.blocks = nn.ModuleList(blocks)
        self.last = nn.Linear(given, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.last(x.mean(dim=(2, 3)))


def restored(graph: Graph, classes: int) -> Backbone:
    """The network of a file that ``to_onnx`` made."""
    network = Backbone(classes)
    layers = {"stem": network.stem}
    for number, block in enumerate(network.blocks, 1):
        layers |= {f"block{number}/first": block.first, f"block{number}/second": block.second}
        if block.shortcut is not None:
            layers[f"block{number}/beside"] = block.shortcut
    for name, layer in layers.items():
        layer.restore(*(graph.constants[f"{name}/{part}"] for part in ("weight", "bias")))
    network.last.weight.data = torch.from_numpy(graph.constants["last/weight"].copy())
    network.last.bias.data = torch.from_numpy(graph.constants["last/bias"].copy())
    return network


def tensors(pictures: Pictures) -> tuple[torch.Tensor, torch.Tensor]:
    """All pictures as (n, 1, 28, 28) in 0..1, and their labels."""
    grey = np.stack([pictures.read(index)[..., 0] for index in range(len(pictures))])
    return torch.from_numpy(grey).float()[:, None] / 255, torch.from_numpy(pictures.labels)


def train(
    network: Backbone,
    images: torch.Tensor,
    labels: torch.Tensor,
    epochs: int,
    *,
    size: int = SIZE,
    begun: bool = False,
) -> None:
    """Stochastic gradient descent on mirrored and shifted pictures, enlarged to ``size``.
    ``begun``: from weights that are good already, with batch norms as they are."""
    rate = RATE / 20 if begun else RATE
    optimiser = torch.optim.SGD(
        network.parameters(), rate, MOMENTUM, weight_decay=DECAY, nesterov=True
    )
    steps = epochs * -(-len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    for epoch in range(1, epochs + 1):
        network.train(not begun)
        began, total = time.monotonic(), 0.0
        for chosen in torch.randperm(len(images)).split(BATCH):
            scores = network(enlarged(varied(images[chosen]), size))
            loss = functional.cross_entropy(scores, labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach()) * len(chosen)
        took = time.monotonic() - began
        say = f"epoch {epoch}/{epochs}: loss {total / len(images):.3f}, {took:.0f} s"
        print(say, file=sys.stderr, flush=True)


def varied(batch: torch.Tensor) -> torch.Tensor:
    """Half of the pictures mirrored, all of them shifted alike by a few pixels."""
    mirrored = torch.rand(len(batch)) < 0.5
    batch = torch.where(mirrored[:, None, None, None], batch.flip(3), batch)
    down, across = torch.randint(0, 2 * SHIFT + 1, (2,)).tolist()
    wide = functional.pad(batch, (SHIFT,) * 4)
    return wide[:, :, down : down + SIZE, across : across + SIZE]


def enlarged(batch: torch.Tensor, size: int) -> torch.Tensor:
    """As OpenCV enlarges pictures."""
    if size == SIZE:
        return batch
    return functional.interpolate(batch, (size, size), mode="bilinear", align_corners=False)


@torch.no_grad()
def accuracy(
    network: Backbone, images: torch.Tensor, labels: torch.Tensor, size: int = SIZE
) -> float:
    """Share of pictures that get their label."""
    network.eval()
    pairs = _batches(images, labels)
    right = [(network(enlarged(x, size)).argmax(1) == y).sum() for x, y in pairs]
    return int(sum(right)) / len(labels)


def _batches(*tensors: torch.Tensor) -> zip:
    return zip(*(each.split(500) for each in tensors), strict=True)


# --- the ONNX file ---


class Writer:
    """Nodes and weights, one layer after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def conv(self, layer: Normed, name: str, given: str, *, relu: bool = False) -> str:
        """Returns the name of what it makes."""
        kernel, stride = layer.conv.kernel_size[0], layer.conv.stride[0]
        names = [f"{name}/{part}" for part in ("weight", "bias")]
        for each, array in zip(names, layer.folded(), strict=True):
            self.weights.append(numpy_helper.from_array(array, each))
        self.add(
            "Conv",
            [given, *names],
            name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
        )
        return self.add("Relu", [name], f"{name}/relu") if relu else name

    def add(self, kind: str, given: list[str], made: str, **attributes: Any) -> str:
        """A node that makes one tensor, and has its name."""
        self.nodes.append(helper.make_node(kind, given, [made], made, **attributes))
        return made


def to_onnx(network: Backbone, classes: tuple[str, ...], size: int = SIZE) -> onnx.ModelProto:
    """The network in float16 storage, with its classes in the metadata."""
    writer = Writer()
    x = writer.conv(network.stem, "stem", "image", relu=True)
    for number, block in enumerate(network.blocks, 1):
        name = f"block{number}"
        beside = x if block.shortcut is None else writer.conv(block.shortcut, f"{name}/beside", x)
        x = writer.conv(block.first, f"{name}/first", x, relu=True)
        x = writer.conv(block.second, f"{name}/second", x)
        x = writer.add("Relu", [writer.add("Add", [x, beside], f"{name}/sum")], name)
    x = writer.add("Flatten", [writer.add("GlobalAveragePool", [x], "pool")], "features")
    for part, tensor in (("weight", network.last.weight), ("bias", network.last.bias)):
        writer.weights.append(numpy_helper.from_array(tensor.detach().numpy(), f"last/{part}"))
    writer.add("Gemm", [x, "last/weight", "last/bias"], "scores", transB=1)
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, size, size])
    made = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", len(classes)])
    graph = helper.make_graph(writer.nodes, "fashion", [given], [made], writer.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, {"classes": json.dumps(classes)})
    narrow(model)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--to", type=Path, default=Path("out") / "fashion_28.onnx")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="go on with the weights of this file")
    parser.add_argument("--size", type=int, default=SIZE, help="of pictures, enlarged")
    parser.add_argument("--pictures", type=int, help="learn from so many (default: all)")
    arguments = parser.parse_args()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)
    dataset = open_dataset(arguments.data, arguments.seed)
    begun, size, classes = arguments.start is not None, arguments.size, len(dataset.classes)
    network = restored(load_graph(arguments.start), classes) if begun else Backbone(classes)
    images, labels = (each[: arguments.pictures] for each in tensors(dataset.train))
    train(network, images, labels, arguments.epochs, size=size, begun=begun)
    found = accuracy(network, *tensors(dataset.test), size)
    content = to_onnx(network, dataset.classes, size).SerializeToString(deterministic=True)
    replace_file(arguments.to, content)
    count = sum(each.numel() for each in network.parameters())
    print(
        f"{arguments.to}: {count} parameters, {len(content) / 1000:.0f} kB, accuracy {found:.4f}, "
        f"sha256 {hashlib.sha256(content).hexdigest()}"
    )


if __name__ == "__main__":
    main()
