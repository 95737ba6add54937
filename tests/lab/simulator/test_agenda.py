from __future__ import annotations

from heimdall.lab.simulator.agenda import Agenda


def test_the_earliest_comes_first_and_equals_in_their_order():
    agenda: Agenda[str] = Agenda()
    for at_ns, item in [(30, "c"), (10, "a"), (30, "d"), (20, "b")]:
        agenda.add(at_ns, item)
    assert agenda.next_ns() == 10
    assert [agenda.pop() for _ in range(4)] == [(10, "a"), (20, "b"), (30, "c"), (30, "d")]
    assert agenda.next_ns() is None
