from __future__ import annotations

from collections.abc import Callable

from heimdall.simulator.agenda import Agenda
from heimdall.simulator.turns import TurnTakingGpu


class Bench:
    """A GPU, what it ran, and when runs ended."""

    def __init__(self, batch_ns: int, switch_ns: int = 0) -> None:
        self.agenda: Agenda[Callable[[int], None]] = Agenda()
        self.ran: list[tuple[str, int, int]] = []
        self.ended: dict[str, int] = {}
        self.gpu = TurnTakingGpu(
            self.agenda,
            batch_ns=batch_ns,
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
