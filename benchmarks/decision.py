"""How long a decision takes: ``python benchmarks/decision.py [--seconds S] [--cold]``.

Plays a busy scene (4, then 11 DNNs of 100 ops each) through a coordinator on a virtual clock and
times every ``receive`` that asked the scheduler, from event to actions. Prints microseconds.

``--cold``: other work runs between the calls and takes the caches, as in an app, where a decision
comes every few milliseconds on a core that capture, decoding and drawing use in between. There a
decision costs what it touches rather than what it computes, about five times the warm figure.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import time
from collections.abc import Callable

import numpy as np

from heimdall.coordinator import Coordinator
from heimdall.schedulers import SCHEDULERS, utility_for
from heimdall.vocabulary.enums import Content
from heimdall.vocabulary.events import (
    ChunkFinished,
    Event,
    FrameRendered,
    InputReady,
    Prepare,
    RenderStarted,
    RunChunk,
)
from heimdall.vocabulary.plans import DnnPlan, StagePlan
from heimdall.vocabulary.processors import GPU

MS = 1_000_000
INTERVAL_NS, RENDER_NS, PREPARE_NS = 33 * MS, 6 * MS, 2 * MS


def plans(count: int) -> list[DnnPlan]:
    """DNNs of 2, 4, 6, ... ms of GPU time; every fourth has a high priority."""
    made = []
    for i in range(count):
        op_ns = (20_000 * (i + 1),) * 100
        stage = StagePlan(op_ns, (False,) * 100, 3 * sum(op_ns), 50_000, ((0, 100),))
        priority = "high" if i % 4 == 3 else "normal"
        utility = utility_for(priority, 1000.0)
        made.append(DnnPlan(f"dnn{i}", (stage,), 1000 * MS, utility, priority=priority))
    return made


def other_work() -> Callable[[], None]:
    """What an app does between two decisions: a pass over much memory, then Python code."""
    memory = np.zeros(24 << 20, np.uint8)
    document = {f"key {i}": [i, str(i), {"half": i / 2}] for i in range(300)}

    def work() -> None:
        memory[::64] += 1
        json.dumps(json.loads(json.dumps(document)), indent=1)  # indent: the encoder in Python

    return work


def decisions_us(
    scheduler: str, count: int, seconds: float, between: Callable[[], None] = lambda: None
) -> list[float]:
    """Time of each deciding call while ``seconds`` of virtual time pass."""
    coordinator = Coordinator(
        plans(count),
        scheduler=scheduler,
        frame_interval_ns=INTERVAL_NS,
        offload=False,
        content=Content.PAPER,
    )
    op_ns = {plan.name: plan.stages[0].op_ns[0] for plan in plans(count)}
    heap: list[tuple[int, int, Event]] = []
    frames = int(seconds * 1e9 / INTERVAL_NS)
    for frame in range(frames):
        start_ns = frame * INTERVAL_NS
        rendered = FrameRendered(frame, start_ns + INTERVAL_NS)
        heap += [(start_ns, 2 * frame, RenderStarted(frame))]
        heap += [(start_ns + RENDER_NS, 2 * frame + 1, rendered)]
    sequence = 2 * frames
    taken = []
    while heap:
        now_ns, _, event = heapq.heappop(heap)
        before = coordinator.decisions
        between()
        began = time.perf_counter_ns()
        actions = coordinator.receive(event, now_ns)
        ended = time.perf_counter_ns()
        if coordinator.decisions != before:
            taken.append((ended - began) / 1000)
        for action in actions:
            sequence += 1
            if isinstance(action, Prepare):
                heapq.heappush(heap, (now_ns + PREPARE_NS, sequence, InputReady(action.job)))
            elif isinstance(action, RunChunk):
                ns = (action.end_op - action.start_op) * op_ns[action.dnn] + 50_000
                done = ChunkFinished(action.job, GPU, action.start_op, action.end_op, ns)
                heapq.heappush(heap, (now_ns + ns, sequence, done))
    return taken


def _queues(scheduler: str) -> bool:
    """Whether it has one queue for all processors: see benchmarks/queueing.py."""
    return not SCHEDULERS[scheduler].binds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="virtual time to play")
    parser.add_argument("--cold", action="store_true", help="other work between the calls")
    arguments = parser.parse_args()
    between = other_work() if arguments.cold else lambda: None
    print(f"{'scheduler':<12}{'DNNs':>5}{'calls':>8}{'p50 us':>9}{'p99 us':>9}")
    for scheduler in sorted(name for name in SCHEDULERS if not _queues(name)):
        for count in (4, 11):
            taken = decisions_us(scheduler, count, arguments.seconds, between)
            p50, p99 = statistics.median(taken), statistics.quantiles(taken, n=100)[98]
            print(f"{scheduler:<12}{count:>5}{len(taken):>8}{p50:>9.1f}{p99:>9.1f}")


if __name__ == "__main__":
    main()
