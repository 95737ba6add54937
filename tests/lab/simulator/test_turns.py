from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heimdall.lab.simulator.agenda import Agenda
from heimdall.lab.simulator.turns import Service, TurnTakingGpu


class Bench:
    """A GPU, what it ran, and when runs ended."""

    def __init__(self, batch_ns: int, switch_ns: int = 0, **service: Any) -> None:
        self.agenda: Agenda[Callable[[int], None]] = Agenda()
        self.ran: list[tuple[str, int, int]] = []
        self.ended: dict[str, int] = {}
        self.gpu = TurnTakingGpu(
            self.agenda,
            service=Service(batch_ns, **service),
            switch_ns=switch_ns,
            noise=lambda: 1.0,
            ran=lambda *batch: self.ran.append(batch),
        )

    def submit(self, queue: str, *op_ns: int) -> None:
        self.gpu.submit(queue, op_ns, 0, lambda now_ns: self.ended.update({queue: now_ns}))

    def go(self) -> None:
        while self.agenda.next_ns() is not None:
            at_ns, call = self.agenda.pop()
            call(at_ns)


def test_a_lone_queue_runs_through():
    bench = Bench(batch_ns=25)
    bench.submit("a", 10, 10, 10, 10)
    bench.go()
    assert bench.ended == {"a": 40}


def test_queues_take_turns_of_a_batch():
    bench = Bench(batch_ns=25)
    bench.submit("a", 10, 10, 10, 10)
    bench.submit("b", 10, 10, 10)
    bench.go()
    assert bench.ran == [("a", 0, 20), ("b", 20, 40), ("a", 40, 60), ("b", 60, 70)]


def test_what_has_started_is_not_preempted():
    bench = Bench(batch_ns=25)
    bench.submit("a", 100)
    bench.submit("frame", 3)
    bench.go()
    assert bench.ended == {"a": 100, "frame": 103}


def test_a_switch_between_queues_costs():
    bench = Bench(batch_ns=10, switch_ns=3)
    bench.submit("a", 10)
    bench.submit("b", 10, 10)
    bench.go()
    assert bench.ran == [("a", 0, 13), ("b", 13, 26), ("b", 26, 36)]


def test_the_lowest_rank_is_served_first_and_equal_ones_in_turns():
    bench = Bench(batch_ns=10, ranks={"frame": -9, "urgent": -1})
    for queue in ("a", "b", "urgent", "frame"):
        bench.submit(queue, 10, 10)
    bench.go()
    order = [queue for queue, _, _ in bench.ran]
    assert order == ["a", "frame", "frame", "urgent", "urgent", "b", "a", "b"]


def test_a_batch_is_no_more_than_what_may_be_outstanding():
    bench = Bench(batch_ns=100, most_ops=2)
    bench.submit("a", 10, 10, 10)
    bench.submit("b", 10)
    bench.go()
    assert bench.ran == [("a", 0, 20), ("b", 20, 30), ("a", 30, 40)]
