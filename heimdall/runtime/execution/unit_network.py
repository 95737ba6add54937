"""A network on one processor, and the states that jobs have there.

What a job runs at a time are *units*: ranges of ops that all processors of a model can begin and
end at. On the processor that its plan was made for, a unit may be one op.
"""

from __future__ import annotations

import contextlib
import queue
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from heimdall.engine.exits import is_done, may_skip
from heimdall.engine.network import LoadedNetwork, State
from heimdall.graph.samples import zero_inputs

Tensors = Mapping[str, np.ndarray]
GoOn = Callable[[int, int], bool]  # whether to start a part, now that so many have ended


class Whole(Sequence[int]):
    """The edges of units where a network is run whole, whatever the units elsewhere are."""

    def __init__(self, ops: int) -> None:
        self._ops = ops

    def __getitem__(self, unit: Any) -> Any:
        return self._ops if unit else 0

    def __len__(self) -> int:
        return 2


class UnitNetwork:
    """``edges[i]`` is the op with which unit i begins."""

    def __init__(
        self, network: LoadedNetwork, edges: Sequence[int], *, alone: bool = False
    ) -> None:
        """``alone``: jobs wait for the one state that there is, which is made now; else one that
        finds none gets another."""
        self.network, self.edges, self._alone = network, edges, alone
        self._lacking = list(accumulate((op.fallback for op in network.ops), initial=0))
        self._spare: queue.SimpleQueue[State | None] = queue.SimpleQueue()  # None: to be made
        if alone:
            self._spare.put(network.new_state())

    def take(self) -> Placement:
        """A state for a job: of a job before, or a new one."""
        state = None
        with contextlib.suppress(queue.Empty):
            state = self._spare.get(block=self._alone)
        return Placement(self, state or self.network.new_state())

    @contextlib.contextmanager
    def taken(self) -> Iterator[Placement]:
        """One for as long as the context lasts."""
        where = self.take()
        try:
            yield where
        finally:
            where.free()

    def free(self, state: State) -> None:
        """Keep the state of a job that is over, or has gone elsewhere, for another one."""
        self._spare.put(state)

    def replace(self) -> None:
        """A state will not come back: where there is one only, another is made in its place."""
        if self._alone:
            self._spare.put(None)

    def ops(self, start: int, end: int) -> tuple[int, int]:
        """Units as a range of ops."""
        return self.edges[start], self.edges[end]

    def lacks(self, start: int, end: int) -> int:
        """How many ops of these units the engine does not have."""
        first, last = self.ops(start, end)
        return self._lacking[last] - self._lacking[first]

    def supports(self, unit: int) -> bool:
        """Whether the engine has any op of a unit."""
        first, last = self.ops(unit, unit + 1)
        return self.lacks(unit, unit + 1) < last - first

    def run(self, state: State, start: int, end: int) -> int:
        """Run units; returns the elapsed ns. Ops that the engine lacks run in between, on this
        thread."""
        return self.network.run_any(state, *self.ops(start, end))

    def try_out(self, state: State | None = None) -> None:
        """A whole inference on zeros, in a state that no job has. Raises what the engine does."""
        state = state or self.network.new_state()
        self.network.write(state, zero_inputs(self.network.graph))
        self.network.run_any(state, 0, len(self.network.ops))


@dataclass(eq=False)
class Placement:
    """Where a job is: its tensors are in ``state``, before ``unit``."""

    unit_network: UnitNetwork
    state: State
    unit: int = 0
    given_up: bool = False  # the thread that works on it hangs

    @property
    def network(self) -> LoadedNetwork:
        return self.unit_network.network

    def free(self) -> None:
        """Leave the state to another job."""
        if not self.given_up:
            self.unit_network.free(self.state)

    def give_up(self) -> None:
        """The thread that works on it hangs: its state is nobody's any more."""
        self.given_up = True
        self.unit_network.replace()

    def write(self, inputs: Tensors, unit: int = 0, tensors: Tensors | None = None) -> None:
        """Go on before ``unit`` with ``tensors`` from elsewhere; without them, with what is
        computed anew from the inputs."""
        if tensors is not None:
            self.network.take_over(self.state, self.unit_network.edges[unit], inputs, tensors)
        else:
            self.network.write(self.state, inputs)
            if unit:
                self.unit_network.run(self.state, 0, unit)
        self.unit = unit

    def lacks(self, end: int) -> int:
        """How many ops before ``end`` the engine does not have."""
        return self.unit_network.lacks(self.unit, end)

    def run(self, end: int) -> int:
        """Run all units before ``end``; returns the elapsed ns."""
        elapsed_ns = self.unit_network.run(self.state, self.unit, end)
        self.unit = end
        return elapsed_ns

    def run_parts(self, ends: Sequence[int], go_on: GoOn) -> tuple[int, int]:
        """``run`` in parts (see ``LoadedNetwork.run_parts``), or fewer of them; returns the elapsed
        ns on the processor, and those on the CPU, in fallback ops between."""
        network, state, edges = self.network, self.state, self.unit_network.edges
        parts = [edges[end] for end in ends]
        op, on_ns, off_ns = edges[self.unit], 0, 0
        for fallback, stop in self._runs(op, parts[-1]):
            first = bisect_right(parts, op)  # the part that begins here, or goes on
            if first and parts[first - 1] == op and not go_on(first, first):
                break
            if fallback:
                off_ns += network.run_fallback(state, op, stop)
                op = stop
                continue
            own = [end for end in parts[first:] if end < stop] + [stop]
            op, elapsed_ns = network.run_parts(state, op, own, partial(_later, go_on, first))
            on_ns += elapsed_ns
            if op < stop:
                break
        self.unit = ends[-1] if op == parts[-1] else bisect_left(edges, op)
        return on_ns, off_ns

    def _runs(self, start: int, end: int) -> Iterator[tuple[bool, int]]:
        """Where the runs of ops of one kind end, and whether they are fallback ops."""
        for fallback, run in groupby(self.network.ops[start:end], lambda op: op.fallback):
            start += sum(1 for _ in run)
            yield fallback, start

    def is_before(self, unit: int) -> bool:
        """True if ``unit`` may be run next."""
        edges = self.unit_network.edges
        return self.unit == unit or may_skip(self.network.exits, edges[self.unit], edges[unit])

    @property
    def is_done(self) -> bool:
        """True if the output is there."""
        op = self.unit_network.edges[self.unit]
        return is_done(self.network.exits, len(self.network.ops), op)


def _later(go_on: GoOn, first: int, part: int) -> bool:
    """Whether to start a part of those from ``first`` on, while the one before it runs."""
    return go_on(first + part, first + part - 1)
