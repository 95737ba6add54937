"""The networks of Table 1 of Pantheon's paper (MobiSys '24), built from their papers' tables.

    python -m benchmarks.architectures            # ops, work, and what each takes on this machine
    python -m benchmarks.architectures --save DIR

Weights are zeros: what a network costs is real, what it says is nothing. Batch normalisation is
folded into convolutions, as every runtime does. GoogLeNet and AlexNet are those of the onnx package
(``light:inception_v1``, ``light:bvlc_alexnet``).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from heimdall.lab.bench.standin import PREFIX, standin_path

CLASSES = 10  # of the small classifiers that the paper's sizes in MB tell of


class Builder:
    """An ONNX graph, layer by layer, that knows the channels of its tensors."""

    def __init__(self, size: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.channels = {"image": 3}
        self.outputs: list[str] = []
        self._size = size

    def add(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        self.channels[name] = channels
        return name

    def conv(
        self, x: str, channels: int, kernel: int, stride: int = 1, groups: int = 1, act: str = ""
    ) -> str:
        weights = np.zeros((channels, self.channels[x] // groups, kernel, kernel), np.float32)
        inputs = [x, self._constant(weights), self._constant(np.zeros(channels, np.float32))]
        pad = kernel // 2
        y = self.add(
            "Conv", inputs, channels, kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[pad] * 4, group=groups,
        )  # fmt: skip
        if act == "Clip":
            limits = [self._constant(np.array(each, np.float32)) for each in (0, 6)]
            return self.add("Clip", [y, *limits], channels)
        return self.add(act, [y], channels) if act else y

    def pool(self, x: str, kernel: int, stride: int, pad: int = 0) -> str:
        return self.add(
            "MaxPool", [x], self.channels[x], kernel_shape=[kernel] * 2, strides=[stride] * 2,
            pads=[pad] * 4,
        )  # fmt: skip

    def classifier(self, x: str) -> None:
        """The end of a network: the mean over all places, and one layer."""
        channels = self.channels[x]
        y = self.add("Flatten", [self.add("GlobalAveragePool", [x], channels)], channels)
        weights = self._constant(np.zeros((channels, CLASSES), np.float32))
        bias = self._constant(np.zeros(CLASSES, np.float32))
        self.outputs.append(self.add("Gemm", [y, weights, bias], CLASSES))

    def model(self) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3] + [self._size] * 2)
        outputs = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in self.outputs
        ]
        graph = helper.make_graph(self.nodes, "network", [image], outputs, self.constants)
        found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        return onnx.shape_inference.infer_shapes(found)

    def _constant(self, values: np.ndarray) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name


def resnet(blocks: tuple[int, ...], *, bottleneck: bool = False, size: int = 224) -> Builder:
    """Table 1 of He et al. 2016."""
    net = Builder(size)
    x = net.pool(net.conv("image", 64, 7, 2, act="Relu"), 3, 2, 1)
    for stage, count in enumerate(blocks):
        for index in range(count):
            width, stride = 64 << stage, 2 if stage and not index else 1
            out = 4 * width if bottleneck else width
            if bottleneck:
                y = net.conv(x, width, 1, act="Relu")
                y = net.conv(net.conv(y, width, 3, stride, act="Relu"), out, 1)
            else:
                y = net.conv(net.conv(x, width, 3, stride, act="Relu"), out, 3)
            same = stride == 1 and net.channels[x] == out
            short = x if same else net.conv(x, out, 1, stride)
            x = net.add("Relu", [net.add("Add", [y, short], out)], out)
    net.classifier(x)
    return net


def vgg(convolutions: tuple[int, ...] = (2, 2, 3, 3, 3), size: int = 224) -> Builder:
    """Configuration D of Simonyan and Zisserman 2014, with a small classifier: the paper's 246.7 MB
    for all networks of the robot leave no room for a large one."""
    net, x = Builder(size), "image"
    for stage, count in enumerate(convolutions):
        for _ in range(count):
            x = net.conv(x, min(64 << stage, 512), 3, act="Relu")
        x = net.pool(x, 2, 2)
    net.classifier(x)
    return net


_MOBILE = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
           (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip


def _mobile_backbone(net: Builder) -> tuple[str, str]:
    """Table 2 of Sandler et al. 2018: its last tensor, and the one that SSDLite reads at stride 16
    (the expansion of the first block at stride 32)."""
    x, at_16 = net.conv("image", 32, 3, 2, act="Clip"), ""
    for expansion, channels, count, first_stride in _MOBILE:
        for index in range(count):
            stride, y, before = first_stride if not index else 1, x, net.channels[x]
            if expansion > 1:
                y = net.conv(x, expansion * before, 1, act="Clip")
            if channels == 160 and not index:
                at_16 = y
            y = net.conv(y, net.channels[y], 3, stride, net.channels[y], act="Clip")
            y = net.conv(y, channels, 1)
            same = stride == 1 and before == channels
            x = net.add("Add", [x, y], channels) if same else y
    return net.conv(x, 1280, 1, act="Clip"), at_16


def mobilenet_v2(size: int = 224) -> Builder:
    """Table 2 of Sandler et al. 2018."""
    net = Builder(size)
    net.classifier(_mobile_backbone(net)[0])
    return net


def ssdlite(size: int = 320, classes: int = 5, anchors: int = 6) -> Builder:
    """SSDLite on MobileNetV2 (Sandler et al. 2018, section 6.2): depthwise separable extra layers
    and heads, for five types of objects (section 5.4 of Pantheon's paper)."""
    net = Builder(size)
    x, at_16 = _mobile_backbone(net)
    maps = [at_16, x]
    for channels in (512, 256, 256, 128):
        x = net.conv(x, channels // 2, 1, act="Clip")
        x = net.conv(x, channels // 2, 3, 2, channels // 2, act="Clip")
        x = net.conv(x, channels, 1, act="Clip")
        maps.append(x)
    for each in maps:
        for outputs in (anchors * (classes + 1), anchors * 4):
            y = net.conv(each, net.channels[each], 3, 1, net.channels[each], act="Clip")
            net.outputs.append(net.conv(y, outputs, 1))
    return net


ARCHITECTURES: dict[str, Callable[[], Builder]] = {
    "SSDLite": ssdlite,
    "MobileNetV2": mobilenet_v2,
    "ResNet18": lambda: resnet((2, 2, 2, 2)),
    "ResNet34": lambda: resnet((3, 4, 6, 3)),
    "ResNet50": lambda: resnet((3, 4, 6, 3), bottleneck=True),
    "VGG16": vgg,
}
PACKAGED = {"GoogLeNet": "inception_v1", "AlexNet": "bvlc_alexnet"}
NAMES = (*ARCHITECTURES, *PACKAGED)


def model_path(name: str, folder: Path) -> Path:
    """The file of a network of NAMES, made in ``folder`` unless the onnx package has it."""
    if name in PACKAGED:
        return standin_path(PREFIX + PACKAGED[name])
    path = folder / f"{name}.onnx"
    if not path.is_file():
        onnx.save(ARCHITECTURES[name]().model(), path)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="keep the ONNX files in this folder")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    options = parser.parse_args()
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        for name in options.only:
            print(model_path(name, options.save))
        return
    with tempfile.TemporaryDirectory() as folder:
        _measure(options.only, Path(folder))


def _measure(names: list[str], folder: Path) -> None:
    from heimdall.analyzer.profiler import measure_ops
    from heimdall.graph.graph import load_graph
    from heimdall.runtime.execution.processors import open_processors
    from heimdall.system import softgpu

    with open_processors(None, softgpu.together(1)) as processors:
        print("| network | ops | GFLOPs | MB | ms |\n|---|--:|--:|--:|--:|")
        for name in names:
            graph = load_graph(model_path(name, folder))
            network = processors.gpu.load(graph)
            took = measure_ops(network)
            flops = sum(op.flops for op in network.ops) / 1e9
            mb = sum(each.nbytes for each in graph.constants.values()) / 1e6
            print(f"| {name} | {len(network.ops)} | {flops:.2f} | {mb:.1f} | "
                  f"{took.whole_ns / 1e6:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
