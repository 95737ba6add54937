"""Several in-order queues of one device, whose work may run at the same time."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

import pyopencl as cl

from heimdall.engine.opencl.device import explain, finish
from heimdall.engine.opencl.network import OpenCLNetwork
from heimdall.engine.opencl.state import OpenCLState
from heimdall.engine.together import GroupMember, deal
from heimdall.vocabulary.ranges import as_ranges

AT_ONCE_NS = 1_000_000  # of each lane in turn: none waits until another is enqueued as a whole
# What the shorter lanes of a stage must have to do: to wait for one another costs 20 to 100 us. On
# a CPU the cores are all busy with one lane, and those of several save only waits at each layer.
LEAST_NS, LEAST_SHARED_NS = 100_000, 500_000


Sequences = list[list[GroupMember]]  # what each lane runs, one part after the other


class Chunk(NamedTuple):
    """Ops of a job. ``beside``: on how many other lanes there is work meanwhile."""

    state: OpenCLState
    start: int
    end: int
    beside: int


class Lanes:
    """The first lane is the queue that the engine runs chunks on; others open when needed."""

    def __init__(
        self, queue: cl.CommandQueue, open_queue: Callable[[], cl.CommandQueue], least_ns: int
    ) -> None:
        """``least_ns``: what is worth a lane."""
        self._queues, self._open = [queue], open_queue
        self.least_ns = least_ns

    def _lane(self, index: int) -> cl.CommandQueue:
        while len(self._queues) <= index:
            self._queues.append(self._open())
        return self._queues[index]

    def run(self, stages: Sequence[Sequence[GroupMember]], lanes: int) -> list[cl.Event]:
        """Run parts that may run so (``whole_jobs``) on that many lanes, and wait; the first and
        the last event of all chunks.

        A stage waits for the one before on the device; the host takes no part in it. Raises
        DeviceError, once nothing runs any more.
        """
        states = [state for stage in stages for _, state in map(_job, stage)]
        events: list[cl.Event] = []
        try:
            for state in states:
                state.in_flight = True
            before: dict[int, cl.Event] = {}
            for sequences in self._dealt(stages, lanes):
                before = self._enqueue(sequences, before, events) or before
            if before:
                cl.wait_for_events(list(before.values()))
        except cl.Error as error:
            with contextlib.suppress(cl.Error):
                for queue in self._queues:
                    finish(queue)
                _end(states)
            for state in states:
                state.progress.begin(-1)  # until it is written anew
            raise explain(error, "running networks together") from error
        _end(states)
        return events

    def _dealt(self, stages: Sequence[Sequence[GroupMember]], lanes: int) -> Iterator[Sequences]:
        """Ops by lane. A stage of which little could be gained stays on one lane, and with those
        before and after it that do is as one."""
        alone: list[GroupMember] = []
        for stage in stages:
            costs = [_cost(part) for part in stage] if len(stage) > 1 else [0.0] * len(stage)
            if lanes == 1 or sum(costs) - max(costs, default=0.0) < self.least_ns:
                alone += stage
                continue
            if alone:
                yield [_by_job(alone)]
                alone = []
            yield [_by_job([stage[part] for part in parts]) for parts in deal(costs, lanes)]
        if alone:
            yield [_by_job(alone)]

    def _enqueue(
        self, sequences: Sequences, before: dict[int, cl.Event], events: list[cl.Event]
    ) -> dict[int, cl.Event]:
        """One stage, behind what was last on each lane ``before``; the same of its own lanes."""
        for lane in range(len(sequences)):
            if others := [event for index, event in before.items() if index != lane]:
                cl.enqueue_marker(self._lane(lane), wait_for=others)
        loads = [sum(map(_cost, parts)) for parts in sequences]
        chunks = [_chunks(parts, loads, lane) for lane, parts in enumerate(sequences)]
        ended: dict[int, cl.Event] = {}
        for turn in zip_longest(*chunks):
            for lane, chunk in enumerate(turn):
                if chunk is None:
                    continue
                made = chunk.state.enqueue(chunk.start, chunk.end, self._lane(lane), chunk.beside)
                if made:
                    ended[lane] = made[-1]
                    events += made
        return ended


def _by_job(parts: Sequence[GroupMember]) -> list[GroupMember]:
    """What one lane runs: the ops of each job in their own order, where its branches often are
    one range."""
    jobs: dict[int, list[GroupMember]] = {}
    for part in parts:
        jobs.setdefault(id(part.state), []).append(part)
    return [
        replace(own[0], ranges=as_ranges(sorted(op for part in own for op in part.ops)))
        for own in jobs.values()
    ]


def _chunks(parts: Sequence[GroupMember], loads: Sequence[float], lane: int) -> Iterator[Chunk]:
    """What a lane is given at a time. Lanes with as much to do get on equally fast, so ``loads``
    tell which is done first: the others share the device from then on."""
    done, others = 0.0, sorted((*loads[:lane], *loads[lane + 1 :]))
    for part in parts:
        network, state = _job(part)
        until_ns = network.until_ns
        for start, end in part.ranges:
            while start < end:
                beside = len(others) - bisect_right(others, done)
                stop = end
                if beside:
                    left_ns = min(AT_ONCE_NS, others[-beside] - done)
                    stop = bisect_left(until_ns, until_ns[start] + left_ns, start + 1, end)
                yield Chunk(state, start, stop, beside)
                done += until_ns[stop] - until_ns[start]
                start = stop


def _cost(part: GroupMember) -> float:
    until_ns = _job(part)[0].until_ns
    return sum(until_ns[end] - until_ns[start] for start, end in part.ranges)


def _job(part: GroupMember) -> tuple[OpenCLNetwork, OpenCLState]:
    assert isinstance(part.network, OpenCLNetwork) and isinstance(part.state, OpenCLState)  # noqa: PT018
    return part.network, part.state


def _end(states: Sequence[OpenCLState]) -> None:
    for state in states:
        state.in_flight = False
