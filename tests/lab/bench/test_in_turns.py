from __future__ import annotations

import pytest

from heimdall.lab.bench.in_turns import drawn, rounds, spread, timed, turn


def test_every_way_has_its_turns():
    ran: list[str] = []

    def way(name: str, seconds: float):
        def once() -> float:
            ran.append(name)
            return seconds

        return once

    ways = {"a": way("a", 1.0), "b": way("b", 2.0)}
    assert drawn(ways, 0.0, 5) == {"a": [1.0] * 5, "b": [2.0] * 5}
    assert sorted(ran[:2]) == ["a", "b"]  # none begins again before the other has run
    assert rounds(ways, 0.0, 2) == {"a": [1.0] * 2, "b": [2.0] * 2}


def test_a_turn_is_its_fastest_run():
    times = iter([3.0, 1.0, 2.0])
    assert turn(lambda: next(times), 0.0) == 1.0


def test_the_spread_is_that_of_the_middle_half():
    assert spread([1.0, 2.0, 3.0, 4.0, 100.0]) == pytest.approx(2 / 3)
    assert spread([1.0]) == 0.0


def test_what_is_timed_is_run():
    ran = []
    assert timed(lambda: ran.append(1))() >= 0
    assert ran == [1]
