"""GPG: a graph network and policy gradient that cut combined blocks (TOP, section V-C).

Deviations from the paper, with reasons. The paper's policy answers one number from 0 to 1, the
place of an ending in a list: a deterministic gradient drives it to an end of the list, where it has
no slope to come back by, and the best ending is seldom there. Here the policy is asked about each
ending: the embedding of what it would leave (Eqs. 5 and 6) and its figures give a number, and a
softmax of these how likely it is to be taken. It learns in two ways. Blocks of which little enough
may be left are solved by dynamic programming, and it imitates that: endings that are hardly worse
than the best are nearly as likely. In the second half blocks that are too large are cut ``CUTS``
times by chance, and cuts that took less than these did on average become likelier (REINFORCE,
Williams 1992): so no critic is needed. Used is the best of as many cuts, too. What counts is the
time of the whole cut; exp(-latency) of each stage, the paper's reward, is more the more stages
there are. Embeddings look ``ROUNDS`` ops back instead of to the beginning, which is what a graph of
fixed depth, as ONNX has it, can do. Networks are smaller than the paper's, weights averages of the
last ones, and kept is the best of what training came by, measured on blocks drawn for that.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from heimdall.lab.simulator.learning.nets import OnnxGraph, mlp, pytorch
from heimdall.lab.simulator.together.actors import CHOICE
from heimdall.lab.simulator.together.concurrent_stages import (
    GROUPS,
    Block,
    Combined,
    ConcurrentStage,
    Ending,
    Left,
    least_ns,
)
from heimdall.lab.simulator.together.cut_sequences import CUTS, Likely, Ways, best_of
from heimdall.lab.simulator.together.features import FIGURES, SIZE, Graph, graph_of

ROUNDS, HIDDEN = 6, 32
RATE = 0.003
SOLVED = 400  # of how many ways to be left a block may have, to be solved
SHARP = 0.05  # of a mean op: an ending that is so much worse than another is e times less likely
WEIGHT = 0.1  # of what cuts of a block teach that is too large
_SHOWN = 8  # of what is left on the way through a solved block
_LESSONS, _AGAIN = 300, 4  # kept, and learnt again at each step
_FOLLOW = 0.02  # of each step's weights, in the mean that is kept
_TESTED = 24  # combined blocks drawn to choose by

Chosen = tuple[int, ...]  # the numbers of the blocks that are combined
Choices = tuple[np.ndarray, np.ndarray]  # at one state (see ``Graph.choices``)


class Gpg:
    """The networks of Eqs. 5 and 6, and the policy ``mu``."""

    def __init__(self) -> None:
        torch = pytorch()
        self.g1, self.h1 = mlp(SIZE, HIDDEN, SIZE), mlp(SIZE, HIDDEN, SIZE)
        self.g2, self.h2 = mlp(SIZE, HIDDEN, SIZE), mlp(SIZE, HIDDEN, SIZE)
        self.mu = mlp(SIZE + FIGURES, HIDDEN, HIDDEN, 1)
        self.parts = torch.nn.ModuleList([self.g1, self.h1, self.g2, self.h2, self.mu])
        self.optimizer = torch.optim.Adam(self.parts.parameters(), RATE)

    def weigh(self, graph: Graph, leaves: np.ndarray, figures: np.ndarray) -> Any:
        """(endings,): the logarithm of how likely each is, up to a constant."""
        torch = pytorch()
        own, parents = torch.from_numpy(graph.features), torch.from_numpy(graph.parents)
        e = own
        for _ in range(ROUNDS):
            e = self.h1(parents @ self.g1(e)) + own
        z = self.h2(torch.from_numpy(leaves) @ self.g2(e))
        return self.mu(torch.cat([z, torch.from_numpy(figures)], 1))[:, 0]

    def likely(self, graph: Graph, states: Sequence[Choices]) -> list[Any]:
        """Of each state the logarithm of how likely each ending is."""
        leaves, figures = (np.concatenate(each) for each in zip(*states, strict=True))
        parts = self.weigh(graph, leaves, figures).split([len(each) for _, each in states])
        return [pytorch().log_softmax(each, 0) for each in parts]

    def policy(self, graph: Graph) -> Likely:
        """How likely each ending is, as numbers."""

        def likely(left: Left, endings: list[Ending]) -> np.ndarray:
            with pytorch().no_grad():
                (found,) = self.likely(graph, [graph.choices(left, endings)])
            return np.asarray(found.exp().numpy(), np.float64)

        return likely

    def step(self, loss: Any) -> None:
        """Make the loss less."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def onnx(self, metadata: dict[str, str]) -> bytes:
        """The policy as a file: (features, parents, leaves, figures) to how likely each is."""
        graph, e = OnnxGraph(), "features"
        for _ in range(ROUNDS):
            around = graph.node("MatMul", "parents", graph.mlp(self.g1, e))
            e = graph.node("Add", graph.mlp(self.h1, around), "features")
        z = graph.mlp(self.h2, graph.node("MatMul", "leaves", graph.mlp(self.g2, e)))
        weighed = graph.mlp(self.mu, graph.node("Concat", z, "figures", axis=1))
        graph.node("Softmax", weighed, output="likely", axis=0)
        shapes: list[list[int | str]] = [
            ["ops", SIZE], ["ops", "ops"], ["endings", "ops"], ["endings", FIGURES]
        ]  # fmt: skip
        inputs: dict[str, Sequence[int | str]] = dict(zip(CHOICE, shapes, strict=True))
        return graph.model(inputs, {"likely": ["endings", 1]}, metadata)


@dataclass(frozen=True)
class _Lesson:
    """A solved block. ``aims``: of each state, how likely each ending should be."""

    chosen: Chosen
    left: list[Left]
    graph: Graph
    states: list[Choices]
    aims: list[Any]


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
        self._solved: dict[Chosen, dict[Left, float] | None] = {}
        self._lessons: list[_Lesson] = []
        other = random.Random(-1 - seed)
        self._tests = [self._combined(self._drawn(other)) for _ in range(_TESTED)]
        self._mean = copy.deepcopy(self.net)  # of the last weights
        self._best = self.score()
        self._best_parts = copy.deepcopy(self._mean.parts.state_dict())

    def train(self) -> Iterator[None]:
        """One combined block at a time."""
        while self.done < self.steps:
            for group in self.net.optimizer.param_groups:
                group["lr"] = RATE * (1 - 0.9 * self.done / self.steps)
            self._learn(self._drawn(self._draw))
            self._follow()
            self.done += 1
            if self.done % 50 == 0 or self.done == self.steps:
                self._keep_best()
            yield
        self._mean.parts.load_state_dict(self._best_parts)

    @property
    def learnt(self) -> Gpg:
        """The networks to use."""
        return self._mean

    def score(self) -> float:
        """What the tests take, beside one op after the other, by the likeliest endings."""
        return fmean(self.cut(each, 1)[1] / each.alone_ns for each in self._tests)

    def cut(self, combined: Combined, cuts: int = CUTS) -> tuple[list[ConcurrentStage], float]:
        """(Stages of a combined block, what they take in ns), as what is shipped cuts it."""
        return best_of(combined, self._mean.policy(graph_of(combined)), cuts)

    def _keep_best(self) -> None:
        score = self.score()
        self.curve.append((self.done, score))
        if score < self._best:
            self._best, self._best_parts = score, copy.deepcopy(self._mean.parts.state_dict())

    def _follow(self) -> None:
        """Average over the last weights: single ones come and go."""
        torch = pytorch()
        share = max(_FOLLOW, 1 / (self.done + 1))
        pairs = zip(self._mean.parts.parameters(), self.net.parts.parameters(), strict=True)
        with torch.no_grad():
            for mean, last in pairs:
                mean.lerp_(last, share)

    def _drawn(self, draw: random.Random) -> Chosen:
        """Blocks of any networks, or of one, as where many requests are for that."""
        numbers = list(range(len(self._blocks)))
        if draw.random() < 0.5:
            network = self._blocks[draw.choice(numbers)].network
            numbers = [each for each in numbers if self._blocks[each].network is network]
        count = draw.randint(1, min(self._most, len(numbers)))
        return tuple(sorted(draw.sample(numbers, count)))

    def _combined(self, chosen: Chosen) -> Combined:
        return Combined([self._blocks[index] for index in chosen], self._groups)

    # -- learning --------------------------------------------------------------------------

    def _learn(self, chosen: Chosen) -> None:
        """From one block, and again from some that are solved."""
        least = self._least(chosen)
        if least is not None:
            among = [left for left in least if any(left)]
            shown = self._draw.sample(among, min(_SHOWN, len(among)))
            self._lessons.append(self._lesson(chosen, shown))
            del self._lessons[:-_LESSONS]
        elif 2 * self.done >= self.steps:
            self._reinforce(self._combined(chosen))
        for lesson in self._draw.sample(self._lessons, min(_AGAIN, len(self._lessons))):
            likely = self.net.likely(lesson.graph, lesson.states)
            apart = [-(aim * log).sum() for aim, log in zip(lesson.aims, likely, strict=True)]
            self.net.step(pytorch().stack(apart).mean())

    def _least(self, chosen: Chosen) -> dict[Left, float] | None:
        if chosen not in self._solved:
            self._solved[chosen] = least_ns(self._combined(chosen), SOLVED)
        return self._solved[chosen]

    def _lesson(self, chosen: Chosen, shown: list[Left]) -> _Lesson:
        """What dynamic programming says of what is left of a block."""
        torch, combined, least = pytorch(), self._combined(chosen), self._least(chosen)
        assert least is not None
        graph = graph_of(combined)
        states, aims = list[Choices](), []
        for left in shown:
            endings = combined.endings(left)
            states.append(graph.choices(left, endings))
            takes = [ending.ns + least[combined.after(left, ending)] for ending in endings]
            worse = (torch.tensor(takes) - min(takes)) / graph.mean_ns
            aims.append(torch.softmax(-worse / SHARP, 0))
        return _Lesson(chosen, shown, graph, states, aims)

    def _reinforce(self, combined: Combined) -> None:
        """Cut a block some times by chance, and make what took less likelier."""
        graph = graph_of(combined)
        ways = Ways(combined, self.net.policy(graph))
        cuts = [ways.cut(self._draw) for _ in range(CUTS)]
        took = np.asarray([ns for ns, _ in cuts])
        if took.std() < 1e-4 * combined.alone_ns:
            return  # all the same
        better = (took.mean() - took) / took.std()
        states = [graph.choices(left, endings) for left, (endings, _) in ways.met.items()]
        likely = dict(zip(ways.met, self.net.likely(graph, states), strict=True))
        gained = sum(
            float(gain) * likely[left][ending]
            for gain, (_, taken) in zip(better, cuts, strict=True)
            for left, ending in taken
        )
        self.net.step(-WEIGHT / CUTS * gained)

    # -- going on --------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that going on needs."""
        return {
            "done": self.done,
            "curve": self.curve,
            "parts": self.net.parts.state_dict(),
            "mean": self._mean.parts.state_dict(),
            "optimizer": self.net.optimizer.state_dict(),
            "best": (self._best, self._best_parts),
            "draw": self._draw.getstate(),
            "lessons": [(each.chosen, each.left) for each in self._lessons],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from there, as if it had never ended."""
        self.done, self.curve = state["done"], state["curve"]
        self.net.parts.load_state_dict(state["parts"])
        self._mean.parts.load_state_dict(state["mean"])
        self.net.optimizer.load_state_dict(state["optimizer"])
        self._best, self._best_parts = state["best"]
        self._draw.setstate(state["draw"])
        self._lessons = [self._lesson(chosen, shown) for chosen, shown in state["lessons"]]
