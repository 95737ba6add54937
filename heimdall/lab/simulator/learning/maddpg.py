"""MADDPG: W + 1 agents that learn when each model's queue is drawn from, and which blocks run
together (TOP, section V-B, Algorithm 1), in the simulator.

The agents are asked from within a run, as the shipped actor is, but at every step. A run is an
episode; the next begins with empty queues and other chances. Deviations from the paper, with
reasons: agents begin with a plan that local search has found (``start``), unless told otherwise;
critics see which blocks are together instead of the numbers that say so, are two for each agent,
and actors learn less often than they (TD3); z-scores are taken when a transition is learnt from,
not when it was made, for what is normal changes as more is seen; actions are explored by noise and
by plans drawn at random, the share of which falls; where a policy has become much worse than the
best, it goes back to that; variances are seen as their logarithms (queues that grow have no scale);
latency is from a task's launch on, since its wait grows with the time that is simulated; networks
are small; and shipped is the best of what training came by, measured in runs of their own.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from heimdall.lab.policies.grouped import Member, Stager, variance
from heimdall.lab.policies.top import Task, Top, plan_of
from heimdall.lab.simulator.learning.agents import Agents, ZScores
from heimdall.lab.simulator.learning.nets import pytorch
from heimdall.lab.simulator.learning.start import searched
from heimdall.lab.simulator.serving import RequestExperiment
from heimdall.lab.simulator.together.device import TogetherDevice
from heimdall.lab.simulator.together.gpu import stage_took
from heimdall.lab.simulator.together.watched import Watched
from heimdall.vocabulary.ranges import as_ranges

GAMMA, RATE, BATCH = 0.95, 0.001, 100  # section VI-B
WEIGHTS = (0.4, 0.4, 0.2)  # a, b, c of Eq. 2
EPISODE_S, TEST_S = 2.0, 2.0
REPLAY = 200  # transitions before anything is learnt
_KEPT = 20_000
_FOLLOW = 0.01  # of the target networks
_FALLEN = 0.8  # of the best score: the agents go back to that
_TRIES = 4  # to come by a plan without superblocks
_MOST = 3.0  # of the exponent of Eq. 2: z-scores of a run's first steps are of nothing
_BATCHES, _DELAY = 2, 2  # learnt from at each step; of these the actors learn from one in so many
_SMOOTH = 0.01  # noise on the targets' actions: what is hardly another action is worth as much
_RANDOM = 0.3  # share of plans drawn at random, in the beginning


class _Learner:
    """An actor that learns from what its answers lead to, while it is asked."""

    hash = "in training"

    def __init__(self, training: MaddpgTraining, watched: Watched) -> None:
        self.task = training.task
        self._training, self._watched = training, watched
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, state: Sequence[float]) -> Sequence[float]:
        seen = np.asarray(state, np.float32)
        if self._before is not None:
            self._training.store(*self._before, self._training.measure(self._watched), seen)
        for _ in range(_TRIES):
            action = self._training.explore(seen)
            if plan_of(self.task, action.tolist()).largest <= self.task.most_blocks:
                break
            nothing = np.full(len(self.task.models) + 2, np.nan)
            self._training.store(seen, action, nothing, seen)  # a superblock: lines 8 and 9
        self._before = seen, action
        return [float(each) for each in action]


class _Greedy:
    """The agents as they are, without noise."""

    hash = "in training"

    def __init__(self, training: MaddpgTraining) -> None:
        self.task, self._agents = training.task, training.agents

    def __call__(self, state: Sequence[float]) -> Sequence[float]:
        torch = pytorch()
        with torch.no_grad():
            found = self._agents.act(torch.tensor([state]))[0]
        return [float(each) for each in found]


def centres(parts: int, total: int) -> list[float]:
    """Numbers for so many combined blocks, far from each other, each in the middle of one of the
    ``total`` parts of [0, 1] that ``plan_of`` tells apart."""
    return [(number * total // parts + 0.5) / total for number in range(parts)]


class MaddpgTraining:
    """Learns in runs of an experiment, of which the policy is TOP's."""

    def __init__(
        self,
        experiment: RequestExperiment,
        task: Task,
        stages: Stager,
        seed: int,
        steps: int,
        quick: Stager | None = None,
        *,
        search: bool = True,
    ) -> None:
        """``search``: begin with a plan that is searched for; or with all blocks on their own.
        ``quick``: cuts blocks, hardly worse, of the many plans that are only tried."""
        pytorch().manual_seed(seed)
        self.task, self.steps, self.done = task, steps, 0
        self.curve: list[tuple[int, float]] = []  # step, mean reward since the last
        self.tests: list[tuple[int, float]] = []
        self._experiment, self._stages, self._seed = experiment, stages, seed
        self._quick = quick or stages
        self._draw = random.Random(seed)
        self._block_ns = [
            sum(stage.op_ns[start:end])
            for stage in experiment.stages.values()
            for start, end in stage.chunks
        ]
        self.agents = Agents(task)
        self.agents.begin_with(self._first_plan(search))
        self._targets = copy.deepcopy(self.agents)
        torch = pytorch()
        self._actor_steps = [torch.optim.Adam(a.parameters(), RATE) for a in self.agents.actors]
        critics = [each.parts for each in self.agents.critics]
        self._critic_steps = [torch.optim.Adam(each.parameters(), RATE) for each in critics]
        self._noise, self._learnt = torch.Generator().manual_seed(seed), 0
        self._memory: list[tuple[np.ndarray, ...]] = []
        self._scores = ZScores(len(task.models) + 2)
        self._measured: list[np.ndarray] = []
        self._best, self._best_actors = self.score(), self._actors()

    # -- runs ------------------------------------------------------------------------------

    def train(self) -> Iterator[None]:
        """An episode at a time."""
        while self.done < self.steps:
            self._measured.clear()
            self._run(_Learner, EPISODE_S, self._draw.randrange(1 << 30), always=True)
            rewards = self._rewards(np.stack(self._measured))[:, 0]
            self.curve.append((self.done, float(rewards.mean())))
            score = self.score()
            self.tests.append((self.done, score))
            if score > self._best:
                self._best, self._best_actors = score, self._actors()
            elif score < _FALLEN * self._best:
                self.agents.actors.load_state_dict(self._best_actors)
            yield
        self.agents.actors.load_state_dict(self._best_actors)

    @property
    def best(self) -> float:
        """The best score so far."""
        return self._best

    def score(self) -> float:
        """How well the agents do without noise: the share of requests that finish, of all and of
        the model with the least."""
        watched = self._run(lambda *_: _Greedy(self), TEST_S, -1)
        shares = [watched.finished[name] / max(watched.asked[name], 1) for name in watched.asked]
        return sum(watched.finished.values()) / max(sum(watched.asked.values()), 1) + min(shares)

    def _run(
        self, actor: Callable[..., Any], seconds: float, seed: int, *, always: bool = False
    ) -> Watched:
        experiment = self._experiment
        device = experiment.device
        assert isinstance(device, TogetherDevice)
        watched = Watched(device, experiment.references)
        self._filled_ns, self._asked_ns, self._finished = 0.0, 0, dict[str, int]()
        stages = self._quick if always else self._stages
        policy = Top(actor(self, watched), stages, always=always)
        run = experiment.begin_with(policy, seed, [watched])
        run.run(round(seconds * 1e9))
        return watched

    def measure(self, watched: Watched) -> np.ndarray:
        """What Eq. 2 is made of, for what happened since it was last asked for: how full the GPU
        was, the latency of each model, how unequal queues are."""
        passed_ns = max(watched.now_ns - self._asked_ns, 1)
        full = (watched.filled_ns - self._filled_ns) / passed_ns
        self._filled_ns, self._asked_ns = watched.filled_ns, watched.now_ns
        latencies = [watched.latency_ms(name) for name in self._experiment.references]
        unequal = math.log1p(variance(list(watched.waiting.values())))
        measured = np.asarray([full, *latencies, unequal])
        self._scores.add(measured)
        return measured

    def _rewards(self, measured: np.ndarray) -> np.ndarray:
        """Eq. 2, of rows of what was measured, for each agent: (rows, agents). Nothing for those
        of NaN."""
        z = self._scores(measured)
        a, b, c = WEIGHTS
        latencies = np.concatenate([z[:, 1:-1].mean(1, keepdims=True), z[:, 1:-1]], 1)
        exponents = np.clip(a * z[:, :1] - b * latencies - c * z[:, -1:], -_MOST, _MOST)
        return np.nan_to_num(np.exp(exponents)).astype(np.float32)

    def _first_plan(self, search: bool) -> list[float]:
        """Shortest intervals, and blocks on their own or combined by local search."""
        task, experiment = self.task, self._experiment
        if not search:
            total = sum(task.blocks)
            return [*([0.001] * len(task.models)), *centres(total, total)]
        events = {name: each.event for name, each in experiment.scenario.models.items()}
        rates = {name: (event and event.rate_hz) or 1.0 for name, event in events.items()}
        parts = searched(task, rates, self._takes_s, self._draw)
        places = centres(len(parts), sum(task.blocks))
        of = {member: place for place, part in zip(places, parts, strict=True) for member in part}
        members = [
            (model, block)
            for model, blocks in zip(task.models, task.blocks, strict=True)
            for block in range(blocks)
        ]
        return [*([0.001] * len(task.models)), *(of[member] for member in members)]

    def _takes_s(self, members: tuple[Member, ...]) -> float:
        device, references = self._experiment.device, self._experiment.references
        assert isinstance(device, TogetherDevice)
        times = [device.times(references[model]) for model, _ in members]
        took = [
            stage_took(
                [times[member].group(as_ranges(ops)) for member, ops in stage],
                device.gpu.contention,
            )
            for stage in self._quick(members)
        ]
        return sum(each.ns for each in took) / 1e9

    def explore(self, state: np.ndarray) -> np.ndarray:
        """An action with noise, or a plan drawn at random."""
        left = max(1 - self.done / self.steps, 0.0)
        if self._draw.random() < _RANDOM * left:
            return np.asarray(self._random_plan(), np.float32)
        torch = pytorch()
        with torch.no_grad():
            found = self.agents.act(torch.from_numpy(state)[None])[0].numpy()
        noise = [self._draw.gauss(0, 0.01 + 0.04 * left) for _ in found]
        return np.asarray(np.clip(found + np.asarray(noise, np.float32), 0.001, 0.999))

    def _random_plan(self) -> list[float]:
        """Short intervals, and blocks dealt into combined ones of at most as many as pay: those of
        a network together, those that take about as long, or any."""
        task, draw = self.task, self._draw
        total = sum(task.blocks)
        members = list(range(total))
        order = draw.randrange(3)
        if order == 1:
            members.sort(key=self._block_ns.__getitem__)
        elif order == 2:
            draw.shuffle(members)
        parts, part = [0] * total, 0
        while members:
            for _ in range(draw.randint(1, task.most_blocks)):
                if members:
                    parts[members.pop()] = part
            part += 1
        launch = [draw.uniform(0.001, 0.3) for _ in task.models]
        places = centres(part, total)
        return [*launch, *(places[each] for each in parts)]

    # -- learning --------------------------------------------------------------------------

    def store(
        self, state: np.ndarray, action: np.ndarray, measured: np.ndarray, after: np.ndarray
    ) -> None:
        """Keep a transition, and learn from some."""
        self._memory.append((state, action, measured, after))
        del self._memory[:-_KEPT]
        self._measured.append(measured)
        self.done += 1
        for _ in range(_BATCHES if len(self._memory) >= REPLAY else 0):
            self._learn(self._draw.sample(self._memory, BATCH))

    def _learn(self, batch: Sequence[tuple[np.ndarray, ...]]) -> None:
        """Eq. 3, and now and then Eq. 4."""
        torch, agents, targets = pytorch(), self.agents, self._targets
        rows = [np.stack(each) for each in zip(*batch, strict=True)]
        states, actions, after = (torch.from_numpy(rows[each]) for each in (0, 1, 3))
        rewards = torch.from_numpy(self._rewards(rows[2]))
        with torch.no_grad():
            later = targets.act(after)
            noise = torch.randn(later.shape, generator=self._noise) * _SMOOTH
            later = (later + noise.clamp(-2 * _SMOOTH, 2 * _SMOOTH)).clamp(0, 1)
        for index, critic in enumerate(agents.critics):
            with torch.no_grad():
                worth = targets.critics[index](after, later).min(1, keepdim=True).values
                target = rewards[:, index : index + 1] + GAMMA * worth
            value = critic(states, actions)
            loss = torch.nn.functional.mse_loss(value, target.expand_as(value))
            self._step(self._critic_steps[index], loss)
        self._learnt += 1
        if self._learnt % _DELAY == 0:
            self._improve(states, actions)

    def _improve(self, states: Any, actions: Any) -> None:
        """Eq. 4, and let the targets follow."""
        torch, agents = pytorch(), self.agents
        chosen = torch.split(actions, agents.sizes, 1)
        for index, (actor, critic) in enumerate(zip(agents.actors, agents.critics, strict=True)):
            mine = [*chosen]
            mine[index] = torch.sigmoid(actor(states))
            worth = critic(states, torch.cat(mine, 1))[:, 0]
            self._step(self._actor_steps[index], -worth.mean())
        pairs = zip(self._targets.parts.parameters(), agents.parts.parameters(), strict=True)
        with torch.no_grad():
            for ours, theirs in pairs:
                ours.lerp_(theirs, _FOLLOW)

    @staticmethod
    def _step(optimizer: Any, loss: Any) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    # -- going on --------------------------------------------------------------------------

    def _actors(self) -> Any:
        return copy.deepcopy(self.agents.actors.state_dict())

    _KEPT_PARTS = ("done", "curve", "tests", "_best", "_best_actors", "_learnt")

    def state(self) -> dict[str, Any]:
        """All that going on needs."""
        nets, scores, torch = (self.agents, self._targets), self._scores, pytorch()
        return {
            **{name: getattr(self, name) for name in self._KEPT_PARTS},
            "draw": self._draw.getstate(),
            "memory": [tuple(map(torch.from_numpy, each)) for each in self._memory],
            "scores": (scores.count, *map(torch.from_numpy, (scores.mean, scores.squares))),
            "noise": self._noise.get_state(),
            "nets": [net.parts.state_dict() for net in nets],
            "optimizers": [each.state_dict() for each in self._optimizers()],
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from there, as if it had never ended."""
        for name in self._KEPT_PARTS:
            setattr(self, name, state[name])
        self._draw.setstate(state["draw"])
        self._memory = [tuple(each.numpy() for each in kept) for kept in state["memory"]]
        self._scores.count, mean, squares = state["scores"]
        self._scores.mean, self._scores.squares = mean.numpy(), squares.numpy()
        self._noise.set_state(state["noise"])
        for net, parts in zip((self.agents, self._targets), state["nets"], strict=True):
            net.parts.load_state_dict(parts)
        for optimizer, kept in zip(self._optimizers(), state["optimizers"], strict=True):
            optimizer.load_state_dict(kept)

    def _optimizers(self) -> list[Any]:
        return [*self._actor_steps, *self._critic_steps]
