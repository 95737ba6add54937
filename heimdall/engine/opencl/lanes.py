"""Several in-order queues of one device, whose work may run at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import pyopencl as cl

from heimdall.engine.opencl.device import explain, finish
from heimdall.engine.opencl.network import OpenCLNetwork
from heimdall.engine.opencl.state import OpenCLState
from heimdall.engine.together import Part, deal

AT_ONCE_NS = 1_000_000  # of each lane in turn: none waits until another is enqueued as a whole


class Chunk(NamedTuple):
    """Ops of a job. ``beside``: on how many other lanes there is work meanwhile."""

    state: OpenCLState
    start: int
    end: int
    beside: int


class Lanes:
    """The first lane is the queue that the engine runs chunks on; others open when needed."""

    def __init__(self, queue: cl.CommandQueue, open_queue: Callable[[], cl.CommandQueue]) -> None:
        self._queues, self._open = [queue], open_queue

    def _lane(self, index: int) -> cl.CommandQueue:
        while len(self._queues) <= index:
            self._queues.append(self._open())
        return self._queues[index]

    def run(self, stages: Sequence[Sequence[Part]], lanes: int) -> list[cl.Event]:
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
            for stage in stages:
                before = self._enqueue(stage, lanes, before, events) or before
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

    def _enqueue(
        self,
        stage: Sequence[Part],
        lanes: int,
        before: dict[int, cl.Event],
        events: list[cl.Event],
    ) -> dict[int, cl.Event]:
        """One stage, behind what was last on each lane ``before``; the same of its own lanes."""
        costs = [_cost(part) for part in stage]
        dealt = deal(costs, lanes)
        loads = [sum(costs[part] for part in parts) for parts in dealt]
        for lane in range(len(dealt)):
            if others := [event for index, event in before.items() if index != lane]:
                cl.enqueue_marker(self._lane(lane), wait_for=others)
        ended: dict[int, cl.Event] = {}
        chunks = [
            _chunks([stage[part] for part in parts], loads[lane], loads)
            for lane, parts in enumerate(dealt)
        ]
        for turn in zip_longest(*chunks):
            for lane, chunk in enumerate(turn):
                if chunk is None:
                    continue
                made = chunk.state.enqueue(chunk.start, chunk.end, self._lane(lane), chunk.beside)
                if made:
                    ended[lane] = made[-1]
                    events += made
        return ended


def _chunks(parts: Sequence[Part], own: float, loads: Sequence[float]) -> Iterator[Chunk]:
    """What a lane is given at a time. Lanes with as much to do get on equally fast, so ``loads``
    tell who is done first: the others share the device from then on."""
    done = 0.0
    for part in parts:
        network, state = _job(part)
        for start, end in part.ranges:
            first, since = start, done
            for op in range(start, end):
                beside = sum(load > done for load in loads) - (own > done)
                if op == first:
                    together = beside
                elif beside != together or done - since >= AT_ONCE_NS:
                    yield Chunk(state, first, op, together)
                    first, since, together = op, done, beside
                done += network.expected_ns(op)
            yield Chunk(state, first, end, together)


def _cost(part: Part) -> float:
    network, _ = _job(part)
    return sum(map(network.expected_ns, part.ops))


def _job(part: Part) -> tuple[OpenCLNetwork, OpenCLState]:
    assert isinstance(part.network, OpenCLNetwork) and isinstance(part.state, OpenCLState)  # noqa: PT018
    return part.network, part.state


def _end(states: Sequence[OpenCLState]) -> None:
    for state in states:
        state.in_flight = False
