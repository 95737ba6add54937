"""The agents of MADDPG as networks, and their rewards' scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heimdall.lab.policies.top import Task
from heimdall.lab.simulator.learning.nets import OnnxGraph, mlp, pytorch

HIDDEN, CRITIC = 24, (96, 48)


class Critic:
    """What a state and the actions of all agents are worth to one: two networks, of which the lower
    answer is believed (TD3, Fujimoto et al. 2018). They see the launch intervals, and of every two
    blocks how near their numbers are: which number a combined block has means nothing, so that they
    need not learn that."""

    def __init__(self, task: Task) -> None:
        torch, total = pytorch(), sum(task.blocks)
        self._total = total
        self._one, self._other = torch.triu_indices(total, total, 1)
        inputs = task.state_size + len(task.models) + len(self._one)
        self.parts = torch.nn.ModuleList(mlp(inputs, *CRITIC, 1) for _ in range(2))

    def __call__(self, states: Any, actions: Any) -> Any:
        """(rows, 2): by both networks."""
        torch, numbers = pytorch(), actions[:, -self._total :]
        apart = (numbers[:, self._one] - numbers[:, self._other]) * self._total
        seen = torch.cat([states, actions[:, : -self._total], torch.exp(-apart * apart)], 1)
        return torch.cat([part(seen) for part in self.parts], 1)


class Agents:
    """The launcher, agent 0, and a scheduler for each model; each sees the whole state."""

    def __init__(self, task: Task) -> None:
        torch = pytorch()
        self.sizes = [len(task.models), *task.blocks]
        self.actors = torch.nn.ModuleList(
            mlp(task.state_size, HIDDEN, HIDDEN, size) for size in self.sizes
        )
        self.critics = [Critic(task) for _ in self.sizes]
        self.parts = torch.nn.ModuleList([self.actors, *(each.parts for each in self.critics)])

    def act(self, state: Any) -> Any:
        """What all agents answer, side by side."""
        torch = pytorch()
        return torch.sigmoid(torch.cat([actor(state) for actor in self.actors], -1))

    def begin_with(self, numbers: Sequence[float]) -> None:
        """Answer these numbers, whatever the state, before anything is learnt."""
        torch, first = pytorch(), 0
        with torch.no_grad():
            for actor, size in zip(self.actors, self.sizes, strict=True):
                actor[-1].weight.clamp_(-0.02, 0.02)
                actor[-1].bias.copy_(torch.logit(torch.tensor(numbers[first : first + size])))
                first += size

    def onnx(self, state_size: int, metadata: dict[str, str]) -> bytes:
        """All actors as one file: state to numbers."""
        graph = OnnxGraph()
        answers = [graph.mlp(actor, "state") for actor in self.actors]
        graph.node("Sigmoid", graph.node("Concat", *answers, axis=1), output="numbers")
        return graph.model({"state": [1, state_size]}, {"numbers": [1, sum(self.sizes)]}, metadata)


class ZScores:
    """Values beside the mean and standard deviation of those so far."""

    def __init__(self, size: int) -> None:
        self.count, self.mean, self.squares = 0, np.zeros(size), np.zeros(size)

    def add(self, values: np.ndarray) -> None:
        """One more value of each."""
        self.count += 1
        before = values - self.mean
        self.mean = self.mean + before / self.count
        self.squares = self.squares + before * (values - self.mean)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """How many standard deviations each is above the mean."""
        spread = np.sqrt(self.squares / max(self.count - 1, 1))
        return np.asarray((values - self.mean) / np.maximum(spread, 1e-6))
