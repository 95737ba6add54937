"""The head of an exit, trained by itself on what a frozen backbone makes (Pantheon, Eq. 7).

Pool, 3x3 convolution, pool, full layer: the end of a usual classifier, and one convolution and one
pool before it, as in section 3.2.2. The first pool leaves few pixels, so a head costs little, and
what it makes of every picture can be kept: the backbone runs over the data once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from heimdall.errors import ConfigError
from heimdall.graph.graph import Tensor
from heimdall.system.extras import line

if TYPE_CHECKING:
    import torch

GRID = 4  # pixels a side, about, that the first pool leaves
WIDTH = 32  # channels of the convolution
BATCH = 256
RATE, DECAY = 1e-2, 1e-4  # of AdamW; the rate goes down to nothing along a cosine

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Head:
    """What one exit has learned: weights of the convolution (w, c, 3, 3) and of the full layer
    (classes, w), with their biases."""

    conv: np.ndarray
    conv_bias: np.ndarray
    full: np.ndarray
    full_bias: np.ndarray

    @property
    def bytes(self) -> int:
        """Bytes of its weights, in float32."""
        return sum(each.nbytes for each in (self.conv, self.conv_bias, self.full, self.full_bias))


def pool(tensor: Tensor, name: str) -> NodeProto:
    """The first node of a head: averages of a tensor (1, c, h, w), about ``GRID`` a side."""
    sides = [max(1, round(side / GRID)) for side in tensor.shape[2:]]
    return helper.make_node(
        "AveragePool", [tensor.name], [name], name, kernel_shape=sides, strides=sides
    )


def nodes(
    head: Head, tensor: Tensor, name: str, *, softmax: bool
) -> tuple[list[NodeProto], list[TensorProto]]:
    """A head behind ``tensor`` as nodes and weights; its output is called ``name``."""
    arrays = {"conv": head.conv, "bias": head.conv_bias, "full": head.full, "add": head.full_bias}
    weights = [numpy_helper.from_array(array, f"{name}/{key}") for key, array in arrays.items()]
    made = [pool(tensor, f"{name}/pool")]

    def add(kind: str, parameters: list[str], **attributes: Any) -> None:
        inputs = [made[-1].output[0], *(f"{name}/{each}" for each in parameters)]
        output = f"{name}/{len(made)}"
        made.append(helper.make_node(kind, inputs, [output], output, **attributes))

    add("Conv", ["conv", "bias"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    add("Relu", [])
    add("GlobalAveragePool", [])
    add("Flatten", [])
    add("Gemm", ["full", "add"], transB=1)
    if softmax:
        add("Softmax", [], axis=1)
    made[-1].output[0] = made[-1].name = name
    return made, weights


def load_torch() -> Any:
    """PyTorch. Raises ConfigError where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise ConfigError(f"training needs PyTorch: {line('learn')}") from error
    return torch


def train(
    features: np.ndarray,
    labels: np.ndarray,
    classes: int,
    *,
    epochs: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> Head:
    """A head for ``features`` (n, c, h, w), which ``pool`` made, by cross-entropy with the
    ``labels`` (n,). The same seed on one thread gives the same head."""
    torch = load_torch()
    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # the first weights
    network = torch.nn.Sequential(
        torch.nn.Conv2d(features.shape[1], WIDTH, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(WIDTH, classes),
    )
    given, wanted = torch.from_numpy(features), torch.from_numpy(labels)
    scale = _scale(features)
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=DECAY)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for epoch in range(epochs):
        for chosen in torch.randperm(len(labels), generator=random).split(BATCH):
            scores = network(given[chosen].float() * scale)
            loss = torch.nn.functional.cross_entropy(scores, wanted[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        progress(epoch + 1, epochs)
    conv, full = network[0], network[-1]
    return Head(
        _numpy(conv.weight) * np.float32(scale),
        _numpy(conv.bias),
        _numpy(full.weight),
        _numpy(full.bias),
    )


def _scale(features: np.ndarray) -> float:
    """What brings features to a spread of about 1; the convolution takes it over."""
    spread = float(features[:4096].astype(np.float32).std())
    return 1 / spread if spread > 0 else 1.0


def _numpy(tensor: torch.Tensor) -> np.ndarray:
    return tensor.detach().numpy().copy()
