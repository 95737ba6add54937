"""Gates: who goes on, and who waits for whom."""

from __future__ import annotations

import threading

import pytest

from heimdall.lab.bench.admission import Free, OneAtATime, Passage, Rounds


class Door:
    """A gate, and who has gone through it in which order."""

    def __init__(self, gate):
        self.gate, self.gone = gate, []

    def ask(self, *names, rank=0.0):
        for name in names:
            self.gate.ask(name, rank, lambda name=name: self.gone.append(name))

    def leave(self, *names):
        for name in names:
            self.gate.leave(name)


def test_where_all_are_free_none_waits():
    door = Door(Free())
    door.ask("a", "b")
    assert door.gone == ["a", "b"]
    assert not door.gate.contested(0)


def test_one_at_a_time_and_the_lowest_rank_first():
    door = Door(OneAtATime())
    door.ask("a", rank=5)
    door.ask("b", rank=9)
    door.ask("c", rank=7)
    assert door.gone == ["a"]
    door.leave("a")
    assert door.gone == ["a", "c"]
    door.ask("d", rank=8)
    door.leave("c")
    door.leave("d")
    assert door.gone == ["a", "c", "d", "b"]


def test_equal_ranks_take_turns():
    door = Door(OneAtATime())
    door.ask("a", "b", "c")
    for name in "abc":
        door.ask(name)  # has left, and wants to again
    assert door.gone == ["a", "b", "c", "a"]


def test_who_leaves_while_waiting_is_passed_over():
    door = Door(OneAtATime())
    door.ask("a", "b", "c")
    door.leave("b", "a")
    assert door.gone == ["a", "c"]


@pytest.mark.parametrize(("rank", "contested"), [(4, False), (5, True), (6, True)])
def test_it_is_contested_by_those_who_would_go_first(rank, contested):
    door = Door(OneAtATime())
    door.ask("inside")
    assert not door.gate.contested(9)
    door.ask("waiting", rank=5)
    assert door.gate.contested(rank) is contested


def test_a_round_begins_when_the_last_one_has_ended():
    door = Door(Rounds())
    door.ask("a", "b", "c")
    assert door.gone == ["a"]
    door.leave("a")
    assert door.gone == ["a", "b", "c"]
    door.ask("a")
    door.leave("b")
    assert door.gone == ["a", "b", "c"]
    door.leave("c")
    assert door.gone == ["a", "b", "c", "a"]


def test_who_wants_to_go_on_at_once_is_in_the_next_round_with_all_the_others():
    door = Door(Rounds())
    door.ask("a", "b")
    door.ask("a")  # the first round was a's alone
    assert door.gone == ["a", "b", "a"]
    door.ask("b", "a")
    assert door.gone == ["a", "b", "a", "b", "a"]


def test_who_does_not_want_to_any_more_does_not_hold_up_a_round():
    door = Door(Rounds())
    door.ask("a", "b", "c")
    door.leave("b", "a")
    assert door.gone == ["a", "c"]


def test_a_thread_waits_until_it_is_let_through():
    gate, seen = OneAtATime(), []
    first, second = Passage(gate, "first"), Passage(gate, "second")
    first.enter(1.0)
    entered = threading.Event()

    def pass_through():
        second.enter(0.0)
        seen.append("second")
        entered.set()
        second.leave()

    thread = threading.Thread(target=pass_through)
    thread.start()
    while not gate.contested(1.0):
        pass
    seen.append("first")
    first.give_way(1.0)
    assert entered.wait(20)
    first.leave()
    thread.join(20)
    assert seen == ["first", "second"]


def test_none_gives_way_to_the_less_urgent():
    gate = OneAtATime()
    first = Passage(gate, "first")
    first.enter(1.0)
    gone = []
    gate.ask("second", 2.0, lambda: gone.append("second"))
    first.give_way(1.0)
    assert gone == []
    first.leave()
    assert gone == ["second"]
