"""Heads learn what the whole network says of unlabelled pictures (self-distillation).

The network runs over the pictures once; what it makes at each place, and in the end, is kept. Each
head learns from that by itself: scores by cross-entropy with the network's own, everything else by
its distance, measured by how far values lie apart. On a grid with scores, what stands beside a
score counts by it: the box of a cell in which there is nothing is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heimdall.lab.exits.distilled import Branch, Distilled, Layer, Wanted
from heimdall.lab.exits.heads import load_torch

if TYPE_CHECKING:
    import torch

BATCH = 32
RATE, DECAY = 3e-3, 1e-4  # of AdamW; the rate goes down to nothing along a cosine
_POSITIVE = 9  # a cell that is sure counts so many times more in a score
_LEAST_SCORE = 0.05  # from which what stands beside a score counts
_SEEN = 256  # samples that the spread of values is taken from


def teach(
    head: Distilled,
    features: np.ndarray,
    targets: Mapping[str, np.ndarray],
    *,
    epochs: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> Distilled:
    """``head`` with weights, for ``features`` (n, c, h, w) and the network's outputs of the same
    samples, ``targets`` (n, ...). The same seed on one thread gives the same head."""
    torch = load_torch()
    random = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # the first weights
    student = _Student(head, features, targets)
    optimiser = torch.optim.AdamW(student.parameters(), RATE, weight_decay=DECAY)
    steps = epochs * -(-len(features) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for epoch in range(epochs):
        for chosen in torch.randperm(len(features), generator=random).split(BATCH):
            rows = chosen.numpy()
            loss = student.loss(features[rows], {n: each[rows] for n, each in targets.items()})
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
        progress(epoch + 1, epochs)
    return student.learned()


class _Student:
    """A head while it learns. Features and targets are brought to a spread of about 1, which the
    first and last layers take over in the end."""

    def __init__(
        self, head: Distilled, features: np.ndarray, targets: Mapping[str, np.ndarray]
    ) -> None:
        self._head = head
        self._scale = 1 / max(float(features[:_SEEN].astype(np.float32).std()), 1e-6)
        self._spread = {each.name: _spread(each, targets) for each, _ in head.ends if not each.end}
        channels, side = features.shape[1], features.shape[2:]
        self._trunks, widths = {}, {}
        for kind, trunk in head.trunks.items():
            self._trunks[kind] = _module(trunk.layers, channels)
            widths[kind] = self._trunks[kind](load_torch().zeros(1, channels, *side)).shape[1]
        self._ends = {
            each.name: _module(branch.layers, widths[each.trunk]) for each, branch in head.ends
        }

    def parameters(self) -> list[torch.nn.Parameter]:
        modules = [*self._trunks.values(), *self._ends.values()]
        return [each for module in modules for each in module.parameters()]

    def loss(self, features: np.ndarray, targets: Mapping[str, np.ndarray]) -> torch.Tensor:
        torch = load_torch()
        given = torch.from_numpy(features).float() * self._scale
        begun = {kind: trunk(given) for kind, trunk in self._trunks.items()}
        total = torch.zeros(())
        for output, _ in self._head.ends:
            made = self._ends[output.name](begun[output.trunk])
            truth = torch.from_numpy(_channels_first(output, targets[output.name])).float()
            made = made.reshape(truth.shape)
            if output.end == "Sigmoid":
                total = total + _score_loss(made, truth)
            elif output.end == "Softmax":
                axis = 1 if output.is_map else output.axis
                total = total - (truth * made.log_softmax(axis)).sum(axis).mean()
            else:
                mean, spread = (torch.from_numpy(each) for each in self._spread[output.name])
                counts = torch.from_numpy(_counts(output, self._head, targets))
                total = total + _distance(made, (truth - mean) / spread, counts)
        return total

    def learned(self) -> Distilled:
        trunks = {
            kind: Branch(self._head.trunks[kind].layers, _scaled(_arrays(trunk), self._scale))
            for kind, trunk in self._trunks.items()
        }
        ends = []
        for output, branch in self._head.ends:
            weight, bias = _arrays(self._ends[output.name])
            if not output.end:
                mean, spread = (each.reshape(-1) for each in self._spread[output.name])
                across = (1, -1, 1, 1) if output.is_map else (-1, 1)
                weight, bias = weight * spread.reshape(across), bias * spread + mean
            ends.append((output, Branch(branch.layers, (weight, bias))))
        return Distilled(trunks, tuple(ends))


def _module(layers: Sequence[Layer], channels: int) -> torch.nn.Sequential:
    """The layers in PyTorch, behind so many channels (or values)."""
    nn = load_torch().nn
    made: list[Any] = []
    for kind, *sizes in layers:
        if kind == "conv":
            made.append(nn.Conv2d(channels, sizes[0], 3, sizes[1], 1))
        elif kind == "up":
            made.append(nn.ConvTranspose2d(channels, sizes[0], sizes[1:], sizes[1:]))
        elif kind == "full":
            made.append(nn.Linear(channels, sizes[0]))
        elif kind == "pool":
            made.append(nn.AvgPool2d(sizes))
            continue
        else:
            made.append(nn.ReLU() if kind == "relu" else nn.Flatten())
            continue
        channels = sizes[0]
    return nn.Sequential(*made)


def _score_loss(made: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
    """Cross-entropy. What is sure counts more, and the whole by how much of it there is: in a heat
    map few cells are."""
    function = load_torch().nn.functional.binary_cross_entropy_with_logits
    each = function(made, truth, reduction="none") * (1 + _POSITIVE * truth)
    return each.sum() / (truth.sum() + 0.01 * truth.numel())


def _distance(made: torch.Tensor, truth: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    each = load_torch().nn.functional.smooth_l1_loss(made, truth, reduction="none") * counts
    return each.sum() / (counts.expand(truth.shape).sum() + 1)


def _spread(output: Wanted, targets: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of an output's channels (1, k, 1, 1), or values (1, ...)."""
    values = _channels_first(output, targets[output.name][:_SEEN]).astype(np.float32)
    axes = (0, 2, 3) if output.is_map else (0,)
    mean, spread = (function(values, axis=axes, keepdims=True) for function in (np.mean, np.std))
    return mean, np.maximum(spread, 1e-3)


def _counts(output: Wanted, head: Distilled, targets: Mapping[str, np.ndarray]) -> np.ndarray:
    """How much each cell of an output counts, (n, 1, h, w), or 1."""
    scores = [
        _channels_first(other, targets[other.name]).max(axis=1, keepdims=True)
        for other, _ in head.ends
        if output.is_map and other.end == "Sigmoid" and other.is_map and other.sides == output.sides
    ]
    if not scores:
        return np.ones(1, np.float32)
    best = np.maximum.reduce(scores).astype(np.float32)
    counts: np.ndarray = np.where(best > _LEAST_SCORE, best, 0)
    return counts


def _channels_first(output: Wanted, array: np.ndarray) -> np.ndarray:
    return array.transpose(0, 3, 1, 2) if output.channels_last else array


def _arrays(module: torch.nn.Sequential) -> tuple[np.ndarray, ...]:
    return tuple(each.detach().numpy().copy() for each in module.parameters())


def _scaled(arrays: tuple[np.ndarray, ...], scale: float) -> tuple[np.ndarray, ...]:
    return (arrays[0] * np.float32(scale), *arrays[1:])
