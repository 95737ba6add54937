"""Stages of a combined block: which operators run at the same time, and in what order.

A combined block is some blocks of some networks, of which each instance is another request's, so
that no operator of one needs one of another. It is cut from its end: an *ending* of what is left is
a set of ops that nothing else of it needs (TOP, Fig. 5); its connected parts are the groups. As in
IOS, an ending has at most ``s`` groups of at most ``r`` ops. Where there are still more than
``most`` endings, groups are shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from heimdall.lab.simulator.together.gpu import OpTimes
from heimdall.lab.simulator.together.layers import LayeredNetwork

GROUP_OPS, GROUPS, ENDINGS = 3, 8, 1024  # r, s (section VI-B), most

Mask = int  # a set of ops of one block, by bit
Left = tuple[Mask, ...]  # of each block, what is left of it


@dataclass(frozen=True, slots=True)
class BlockSlice:
    """What an ending takes of one block. ``groups``: its ops, counted in the network."""

    mask: Mask
    groups: tuple[tuple[int, ...], ...]
    ops: int
    alone_ns: float
    longest_ns: float
    filled_ns: float


_NOTHING = BlockSlice(0, (), 0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Ending:
    """One ending: of each block a part, and what it takes as a stage."""

    parts: tuple[BlockSlice, ...]
    groups: int
    ops: int
    alone_ns: float  # one op after the other
    longest_ns: float  # its longest group
    filled_ns: float
    ns: float

    def stage(self) -> ConcurrentStage:
        """Its groups: (number of the block, its ops)."""
        return tuple(
            (block, group) for block, part in enumerate(self.parts) for group in part.groups
        )


ConcurrentStage = tuple[tuple[int, tuple[int, ...]], ...]


class Block:
    """One block of a network on a GPU, its ops ``[start, end)``: bit i is its i-th op."""

    def __init__(self, network: LayeredNetwork, start: int, end: int, times: OpTimes) -> None:
        self.network, self.start, self.end, self._times = network, start, end, times
        self.ops = network.ops[self.start : self.end]
        self.ns = times.ns[self.start : self.end]
        self.filled_ns = times.filled_ns[self.start : self.end]
        self.contention = times.contention
        self.needs = [
            [need - self.start for need in op.needs if need >= self.start] for op in self.ops
        ]
        self._behind = [0] * len(self.ops)  # of each op, all that need it, whatever is left
        for op in reversed(range(len(self.ops))):
            for need in self.needs[op]:
                self._behind[need] |= self._behind[op] | 1 << op
        self._parts: dict[tuple[Mask, int], list[BlockSlice]] = {}

    def fresh(self) -> Block:
        """This block, of which nothing has been looked at yet."""
        return Block(self.network, self.start, self.end, self._times)

    @property
    def whole(self) -> Mask:
        """Nothing has run."""
        return (1 << len(self.ops)) - 1

    def parts(self, left: Mask, r: int) -> list[BlockSlice]:
        """What an ending may take of what is left, nothing included."""
        key = left, r
        if key not in self._parts:
            self._parts[key] = [self._part(tails) for tails in _apart(self._tails(left, r), GROUPS)]
        return self._parts[key]

    def _tails(self, left: Mask, r: int) -> list[Mask]:
        """The groups that an ending may have: connected, and with all that needs them."""
        ops = [op for op in range(len(self.ops)) if left >> op & 1]
        closed = {self._behind[op] & left | 1 << op for op in ops}
        found = {mask for mask in closed if mask.bit_count() <= r}
        grown = found
        while grown:
            grown = {a | b for a in grown for b in found if a & b} - found
            grown = {mask for mask in grown if mask.bit_count() <= r}
            found = found | grown
        return sorted(found)

    def _part(self, tails: Sequence[Mask]) -> BlockSlice:
        groups = [[op for op in range(len(self.ops)) if tail >> op & 1] for tail in tails]
        if not groups:
            return _NOTHING
        lengths = [sum(self.ns[op] for op in group) for group in groups]
        filled_ns = sum(self.filled_ns[op] for group in groups for op in group)
        return BlockSlice(
            sum(tails),
            tuple(tuple(self.start + op for op in group) for group in groups),
            sum(map(len, groups)),
            sum(lengths),
            max(lengths),
            filled_ns,
        )


def _apart(tails: Sequence[Mask], most: int) -> Iterator[list[Mask]]:
    """All sets of at most so many tails that have no op in common."""

    def grow(chosen: list[Mask], taken: Mask, start: int) -> Iterator[list[Mask]]:
        yield chosen
        if len(chosen) == most:
            return
        for index in range(start, len(tails)):
            if not tails[index] & taken:
                yield from grow([*chosen, tails[index]], taken | tails[index], index + 1)

    yield from grow([], 0, 0)


class Combined:
    """Some blocks whose instances run together, in stages of at most so many ``groups``."""

    def __init__(self, blocks: Sequence[Block], groups: int = GROUPS) -> None:
        self.blocks, self._groups = tuple(blocks), groups
        self.contention = blocks[0].contention

    @property
    def whole(self) -> Left:
        """Nothing has run."""
        return tuple(block.whole for block in self.blocks)

    def endings(self, left: Left) -> list[Ending]:
        """All endings of what is left, those with little work first."""
        r = GROUP_OPS
        while r > 1 and self._number(left, r) > ENDINGS:
            r -= 1
        choices = [block.parts(each, r) for block, each in zip(self.blocks, left, strict=True)]
        if self._number(left, r) > ENDINGS:
            choices = [_in_order(parts) for parts in choices]
        found = [self._ending(parts) for parts in product(*choices)]
        kept = [each for each in found if each is not None]
        return sorted(kept, key=lambda ending: ending.alone_ns)

    def after(self, left: Left, ending: Ending) -> Left:
        """What is left without an ending."""
        pairs = zip(left, ending.parts, strict=True)
        return tuple(mask & ~part.mask for mask, part in pairs)

    def _number(self, left: Left, r: int) -> int:
        number = 1
        for block, mask in zip(self.blocks, left, strict=True):
            number *= len(block.parts(mask, r))
        return number

    def _ending(self, parts: tuple[BlockSlice, ...]) -> Ending | None:
        groups = sum(len(part.groups) for part in parts)
        if not 0 < groups <= self._groups:
            return None
        longest_ns = max(part.longest_ns for part in parts)
        filled_ns = sum(part.filled_ns for part in parts)
        ns = max(longest_ns, filled_ns) * (1 + self.contention * (groups - 1))
        ops, alone_ns = sum(part.ops for part in parts), sum(part.alone_ns for part in parts)
        return Ending(parts, groups, ops, alone_ns, longest_ns, filled_ns, ns)

    @cached_property
    def alone_ns(self) -> float:
        """All its ops, one after the other."""
        return sum(sum(block.ns) for block in self.blocks)


def _in_order(parts: Sequence[BlockSlice]) -> list[BlockSlice]:
    """Of each number of ops the part with the longest group: few enough, whatever the block."""
    best: dict[int, BlockSlice] = {}
    for part in parts:
        known = best.get(part.ops)
        if known is None or part.longest_ns < known.longest_ns:
            best[part.ops] = part
    return list(best.values())


Choose = Callable[[Combined, Left, list[Ending]], Ending]


def cut(combined: Combined, choose: Choose) -> tuple[list[ConcurrentStage], float]:
    """(Stages in the order in which they run, what they take in ns), one ending after another."""
    left, stages, ns = combined.whole, list[ConcurrentStage](), 0.0
    while any(left):
        ending = choose(combined, left, combined.endings(left))
        stages.insert(0, ending.stage())
        ns += ending.ns
        left = combined.after(left, ending)
    return stages, ns


def most_saving(combined: Combined, left: Left, endings: list[Ending]) -> Ending:
    """The ending that takes least beside its ops one after the other."""
    return min(endings, key=lambda ending: (ending.ns / ending.alone_ns, -ending.ops))


def best_cut(
    combined: Combined, most_states: int = 1_000_000
) -> tuple[list[ConcurrentStage], float] | None:
    """The stages that take least, by dynamic programming (IOS); None where that would look at more
    than ``most_states``."""
    least = least_ns(combined, most_states)
    if least is None:
        return None

    def choose(_: Combined, left: Left, endings: list[Ending]) -> Ending:
        return min(endings, key=lambda each: least[combined.after(left, each)] + each.ns)

    return cut(combined, choose)


def least_ns(combined: Combined, most_states: int) -> dict[Left, float] | None:
    """Of all that may be left of a combined block what it takes at least, in ns, by dynamic
    programming; None where that is more than ``most_states``."""
    ways: dict[Left, list[tuple[Left, float]]] = {}
    order, seen = [combined.whole], {combined.whole}
    for left in order:  # found breadth first: what is left only shrinks
        if len(order) > most_states:
            return None
        endings = combined.endings(left) if any(left) else []
        ways[left] = [(combined.after(left, ending), ending.ns) for ending in endings]
        for after, _ in ways[left]:
            if after not in seen:
                seen.add(after)
                order.append(after)
    least: dict[Left, float] = {}
    for left in sorted(order, key=lambda each: sum(mask.bit_count() for mask in each)):
        least[left] = min((least[after] + ns for after, ns in ways[left]), default=0.0)
    return least
