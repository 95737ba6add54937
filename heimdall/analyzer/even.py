"""Evenly sized blocks (SPLIT, ICPP '23, section 3): a request that meets a long network waits for
the end of a block of it, so blocks should be equally long, and cutting should cost little.

``Ops`` prices a way of cutting, ``fitness`` (Eq. 2) judges it, ``search`` is the paper's genetic
algorithm (3.3) and ``best_split`` tries every number of blocks with it.

Section 5.4 says that by Eq. 1 ResNet-50 and VGG-19 are best in 2 and 3 blocks. They are by Eq. 2:
Eq. 1 (``waiting_ns``) knows no price of cutting but in the blocks themselves, and for both prefers
the most blocks that Table 3 has.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import pstdev

from heimdall.errors import ConfigError

MOST_BLOCKS = 4  # Table 3
# The paper has the steps of its algorithm, not their sizes. These find the best of all ways to cut
# in 15 generations (Fig. 5), in 10 ms.
GENERATIONS, STALL = 30, 8
_POPULATION, _ELITE, _PARENTS = 100, 10, 40
_CROSSOVER, _MUTATION = 0.8, 0.3
_GUIDED = 0.7  # of the first generation

Cuts = tuple[int, ...]  # the first op of each block but the first


@dataclass(frozen=True)
class Split:
    """A network in blocks that take ``block_ns``, each with what cutting before it costs."""

    cuts: Cuts
    block_ns: tuple[int, ...]
    whole_ns: int  # the same network in one block

    @property
    def std_ns(self) -> float:
        """sigma of Eqs. 1 and 2."""
        return pstdev(self.block_ns)

    @property
    def overhead(self) -> float:
        """What cutting adds, as a share of the network in one block."""
        return sum(self.block_ns) / self.whole_ns - 1 if self.whole_ns else 0.0

    @property
    def fitness(self) -> float:
        return fitness(len(self.block_ns), self.std_ns, self.overhead, self.whole_ns)


class Ops:
    """What it costs to cut a network. ``op_ns``: each op's latency; ``cut_ns[i]``: of beginning a
    block at op i (empty: nothing), beside ``block_cost_ns``, which every block costs."""

    def __init__(
        self, op_ns: Sequence[int], cut_ns: Sequence[int] = (), block_cost_ns: int = 0
    ) -> None:
        if not op_ns:
            raise ConfigError("a network without ops cannot be split")
        self.count = len(op_ns)
        self._sums = list(accumulate(op_ns, initial=0))
        self._begin_ns = [block_cost_ns + ns for ns in cut_ns or [0] * self.count]
        self._begin_ns[0] = block_cost_ns
        self.whole_ns = self._sums[-1] + block_cost_ns

    def split(self, cuts: Cuts) -> Split:
        """The network cut before these ops, which rise."""
        sums, begin_ns = self._sums, self._begin_ns
        pairs = pairwise((0, *cuts, self.count))
        block_ns = tuple(sums[end] - sums[start] + begin_ns[start] for start, end in pairs)
        return Split(cuts, block_ns, self.whole_ns)

    def at(self, share: float) -> int:
        """The op before which that share of the work is done; never the first."""
        op = bisect_left(self._sums, share * self._sums[-1])
        return min(max(op, 1), self.count - 1)


def waiting_ns(block_ns: Sequence[int]) -> float:
    """Eq. 1: how long a request at a random moment waits for the end of a block, on average."""
    total_ns = sum(block_ns)
    return sum(ns * ns for ns in block_ns) / total_ns / 2 if total_ns else 0.0


def fitness(blocks: int, std_ns: float, overhead: float, whole_ns: float) -> float:
    """Eq. 2, the higher the better, 0 at best: even blocks, and a low price of each. ``overhead``
    is a share of ``whole_ns``, in whose unit ``std_ns`` is."""
    spread = std_ns / whole_ns if whole_ns else 0.0
    return -(math.expm1(spread) + math.expm1(overhead / blocks))


def best_split(ops: Ops, most_blocks: int = MOST_BLOCKS, seed: int = 0) -> Split:
    """The best way to cut a network into 2 to ``most_blocks`` blocks; one op is one block."""
    found = [search(ops, blocks, seed)[0] for blocks in range(2, min(most_blocks, ops.count) + 1)]
    return max(found, key=lambda split: split.fitness, default=ops.split(()))


def search(
    ops: Ops, blocks: int, seed: int = 0, generations: int = GENERATIONS
) -> tuple[Split, int]:
    """(The best way found to cut a network into so many blocks, the generation that had it first),
    the same for the same seed.

    Raises ConfigError for fewer blocks than one, more than ops, and no generation.
    """
    if not 1 <= blocks <= ops.count:
        raise ConfigError(f"{ops.count} ops make 1 to {ops.count} blocks, not {blocks}")
    if generations < 1:
        raise ConfigError("a search needs at least one generation")
    draw = _Draw(ops, blocks, seed)
    known: dict[Cuts, float] = {}

    def worth(cuts: Cuts) -> float:
        if cuts not in known:
            known[cuts] = ops.split(cuts).fitness
        return known[cuts]

    population = [draw.first(index) for index in range(_POPULATION)]
    best, found_in = max(population, key=worth), 1
    for generation in range(2, generations + 1):
        ranked = sorted(set(population), key=worth, reverse=True)
        children = [draw.child(ranked[:_PARENTS]) for _ in range(_POPULATION - _ELITE)]
        population = [*ranked[:_ELITE], *children]
        if worth(leader := max(population, key=worth)) > worth(best):
            best, found_in = leader, generation
        elif generation - found_in >= STALL:
            break
    return ops.split(best), found_in


class _Draw:
    """The random steps: ways to cut from nothing, and from two others."""

    def __init__(self, ops: Ops, blocks: int, seed: int) -> None:
        self._ops, self._blocks = ops, blocks
        self._random = random.Random(seed)
        self._places = range(1, ops.count)

    def first(self, index: int) -> Cuts:
        """One of the first generation. Most follow the paper's observations (2.4): blocks of about
        the same time, cut rather later than earlier, where tensors are small."""
        if index >= _GUIDED * _POPULATION:
            return self._anywhere()
        blocks, gauss = self._blocks, self._random.gauss
        return self._mended(
            [self._ops.at(cut / blocks + gauss(0.1, 0.25) / blocks) for cut in range(1, blocks)]
        )

    def child(self, parents: Sequence[Cuts]) -> Cuts:
        """Each cut of either parent, and some of them elsewhere; better parents more often."""
        one, other = self._parent(parents), self._parent(parents)
        if self._random.random() < _CROSSOVER:
            cuts = [self._random.choice(pair) for pair in zip(one, other, strict=True)]
        else:
            cuts = list(one)
        for index, cut in enumerate(cuts):
            if self._random.random() < _MUTATION:
                cuts[index] = self._elsewhere(cut)
        return self._mended(cuts)

    def _parent(self, parents: Sequence[Cuts]) -> Cuts:
        return parents[int(len(parents) * self._random.random() ** 2)]

    def _elsewhere(self, cut: int) -> int:
        """Mostly near by: a long way off is as likely as a step of one op for each op of it."""
        far = round(math.exp(self._random.uniform(0, math.log(self._ops.count))))
        return cut + self._random.choice((-far, far))

    def _mended(self, cuts: list[int]) -> Cuts:
        """These cuts, with every one in the network and no two at one place."""
        kept = {min(max(cut, 1), self._ops.count - 1) for cut in cuts}
        while len(kept) < self._blocks - 1:
            kept.add(self._random.choice(self._places))
        return tuple(sorted(kept))

    def _anywhere(self) -> Cuts:
        return tuple(sorted(self._random.sample(self._places, self._blocks - 1)))
