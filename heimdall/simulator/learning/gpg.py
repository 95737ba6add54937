"""GPG: a graph network and policy gradient that cut combined blocks (TOP, section V-C).

Deviations from the paper, with reasons. The reward of a stage is the share of the block's time that
it saves, instead of exp(-latency): a sum of the latter grows with the number of stages, so the more
stages a cut had, the better it would seem. Embeddings look ``ROUNDS`` ops back instead of to the
beginning, which is what a graph of fixed depth, as ONNX has it, can do. What an op takes and fills
is among its features. Networks are smaller than the paper's, and shipped is the best of what
training came by, measured on blocks that it was not trained with.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from heimdall.simulator.learning.nets import OnnxGraph, mlp, pytorch
from heimdall.simulator.together.actors import index_of
from heimdall.simulator.together.features import SIZE, Graph, graph_of
from heimdall.simulator.together.stages import GROUPS, Block, Combined, Ending, Left, cut

ROUNDS = 6
HIDDEN, CRITIC = 32, 64
GAMMA, RATE = 0.95, 0.001
_REPLAYED, _KEPT = 3, 300  # episodes learnt again after each, of so many
_TESTED = 24  # combined blocks that are not trained with


class Gpg:
    """The networks of Eqs. 5 and 6, the policy mu and its critic q."""

    def __init__(self) -> None:
        torch = pytorch()
        self.g1, self.h1 = mlp(SIZE, HIDDEN, SIZE), mlp(SIZE, HIDDEN, SIZE)
        self.g2, self.h2 = mlp(SIZE, HIDDEN, SIZE), mlp(SIZE, HIDDEN, SIZE)
        self.mu = mlp(SIZE, HIDDEN, 1)
        self.q = mlp(SIZE + 1, CRITIC, 32, 1)
        with torch.no_grad():
            self.mu[-1].bias.fill_(3.0)  # it begins with endings of many ops
        policy = [self.g1, self.h1, self.g2, self.h2, self.mu]
        self.parts = torch.nn.ModuleList([*policy, self.q])
        parameters = [each for part in policy for each in part.parameters()]
        self.policy = torch.optim.Adam(parameters, RATE)
        self.critic = torch.optim.Adam(self.q.parameters(), RATE)

    def embed(self, graph: Graph, leaves: np.ndarray) -> Any:
        """z of each row of leaves."""
        torch = pytorch()
        own, parents = torch.from_numpy(graph.features), torch.from_numpy(graph.parents)
        e = own
        for _ in range(ROUNDS):
            e = self.h1(parents @ self.g1(e)) + own
        return self.h2(torch.from_numpy(leaves) @ self.g2(e))

    def where(self, z: Any) -> Any:
        """m of each z, from 0 to 1."""
        return pytorch().sigmoid(self.mu(z))

    def onnx(self, metadata: dict[str, str]) -> bytes:
        """The policy as a file: (features, parents, leaves) to m."""
        graph = OnnxGraph()
        e = "features"
        for _ in range(ROUNDS):
            around = graph.node("MatMul", "parents", graph.mlp(self.g1, e))
            e = graph.node("Add", graph.mlp(self.h1, around), "features")
        around = graph.node("MatMul", "leaves", graph.mlp(self.g2, e))
        graph.node("Sigmoid", graph.mlp(self.mu, graph.mlp(self.h2, around)), output="where")
        shapes: dict[str, Sequence[int | str]] = {
            "features": ["ops", SIZE],
            "parents": ["ops", "ops"],
            "leaves": ["steps", "ops"],
        }
        return graph.model(shapes, {"where": ["steps", 1]}, metadata)


@dataclass
class Episode:
    """A combined block of these ``blocks``, cut. ``leaves``: (steps + 1, ops), the last of nothing
    left; ``where`` and ``rewards``: (steps, 1)."""

    blocks: tuple[int, ...]
    graph: Graph
    leaves: np.ndarray
    where: np.ndarray
    rewards: np.ndarray


class GpgTraining:
    """Learns from combined blocks of up to ``most`` of ``blocks``, drawn at random."""

    def __init__(
        self, blocks: Sequence[Block], most: int, seed: int, steps: int, groups: int = GROUPS
    ) -> None:
        pytorch().manual_seed(seed)
        self.net, self.steps, self.done = Gpg(), steps, 0
        self.curve: list[tuple[int, float]] = []  # step, time beside one op after the other
        self._blocks, self._most, self._groups = list(blocks), most, groups
        self._draw = random.Random(seed)
        self._memory: list[Episode] = []
        other = random.Random(-1 - seed)
        self._tests = [self._combined(self._drawn(other)) for _ in range(_TESTED)]
        self._best = self.score()
        self._best_parts = copy.deepcopy(self.net.parts.state_dict())

    def train(self) -> Iterator[None]:
        """One combined block at a time."""
        while self.done < self.steps:
            spread = max(0.02, 0.15 * (1 - self.done / self.steps))
            self._memory.append(self._play(self._drawn(self._draw), spread))
            del self._memory[:-_KEPT]
            again = min(len(self._memory), _REPLAYED)
            for episode in [self._memory[-1], *self._draw.sample(self._memory, again)]:
                self._learn(episode)
            self.done += 1
            if self.done % 50 == 0 or self.done == self.steps:
                self._keep_best()
            yield
        self.net.parts.load_state_dict(self._best_parts)

    def score(self) -> float:
        """What the tests take, beside one op after the other."""
        found = [cut(each, self._chooser(each))[1] / each.alone_ns for each in self._tests]
        return fmean(found)

    def _keep_best(self) -> None:
        score = self.score()
        self.curve.append((self.done, score))
        if score < self._best:
            self._best, self._best_parts = score, copy.deepcopy(self.net.parts.state_dict())

    def _drawn(self, draw: random.Random) -> tuple[int, ...]:
        count = draw.randint(1, min(self._most, len(self._blocks)))
        return tuple(draw.sample(range(len(self._blocks)), count))

    def _combined(self, blocks: Sequence[int]) -> Combined:
        return Combined([self._blocks[index] for index in blocks], self._groups)

    def _chooser(self, combined: Combined) -> Callable[[Combined, Left, list[Ending]], Ending]:
        graph, torch = graph_of(combined), pytorch()

        def choose(_: Combined, left: Left, endings: list[Ending]) -> Ending:
            with torch.no_grad():
                where = float(self.net.where(self.net.embed(graph, graph.leaves(left)))[0, 0])
            return endings[index_of(where, len(endings))]

        return choose

    def _play(self, blocks: tuple[int, ...], spread: float) -> Episode:
        combined, torch = self._combined(blocks), pytorch()
        graph = graph_of(combined)
        leaves, wheres, rewards = list[np.ndarray](), list[float](), list[float]()

        def choose(_: Combined, left: Left, endings: list[Ending]) -> Ending:
            leaves.append(graph.leaves(left))
            with torch.no_grad():
                where = float(self.net.where(self.net.embed(graph, leaves[-1]))[0, 0])
            if self._draw.random() < 0.1:
                where = self._draw.random()
            where = min(max(where + self._draw.gauss(0, spread), 0.0), 1.0)
            ending = endings[index_of(where, len(endings))]
            wheres.append(where)
            rewards.append((ending.alone_ns - ending.ns) / combined.alone_ns)
            return ending

        cut(combined, choose)
        leaves.append(np.zeros_like(leaves[-1]))
        return Episode(
            blocks,
            graph,
            np.concatenate(leaves),
            np.asarray(wheres, np.float32)[:, None],
            np.asarray(rewards, np.float32)[:, None],
        )

    def _learn(self, episode: Episode) -> None:
        """Eqs. 7 and 8."""
        torch, net = pytorch(), self.net
        z = net.embed(episode.graph, episode.leaves)
        now, after = z[:-1], z[1:].detach()
        with torch.no_grad():
            later = net.q(torch.cat([after, net.where(after)], 1))
            later[-1] = 0.0
            target = torch.from_numpy(episode.rewards) + GAMMA * later
        value = net.q(torch.cat([now.detach(), torch.from_numpy(episode.where)], 1))
        net.critic.zero_grad()
        torch.nn.functional.mse_loss(value, target).backward()
        net.critic.step()
        net.policy.zero_grad()
        (-net.q(torch.cat([now, net.where(now)], 1)).mean()).backward()
        net.policy.step()

    def state(self) -> dict[str, Any]:
        """All that going on needs."""
        torch = pytorch()
        return {
            "done": self.done,
            "curve": self.curve,
            "parts": self.net.parts.state_dict(),
            "policy": self.net.policy.state_dict(),
            "critic": self.net.critic.state_dict(),
            "best": (self._best, self._best_parts),
            "draw": self._draw.getstate(),
            "memory": [
                (each.blocks, *map(torch.from_numpy, (each.leaves, each.where, each.rewards)))
                for each in self._memory
            ],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from there, as if it had never ended."""
        self.done, self.curve = state["done"], state["curve"]
        self.net.parts.load_state_dict(state["parts"])
        self.net.policy.load_state_dict(state["policy"])
        self.net.critic.load_state_dict(state["critic"])
        self._best, self._best_parts = state["best"]
        self._draw.setstate(state["draw"])
        self._memory = [
            Episode(blocks, graph_of(self._combined(blocks)), *(each.numpy() for each in arrays))
            for blocks, *arrays in state["memory"]
        ]
