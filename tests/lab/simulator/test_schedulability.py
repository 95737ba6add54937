"""Response times under fixed priorities without preemption, on literal times."""

from __future__ import annotations

import pytest

from heimdall.lab.simulator.schedulability import MOST, Task, late_share, responses

HIGH, LOW = Task(2, 10, 5), Task(4, 20, 20)


def test_a_task_waits_for_one_below_that_has_begun_and_for_all_above():
    assert responses([HIGH, LOW]) == [(4 + 2) / 5, (2 + 4) / 20]
    assert responses([HIGH, LOW], blocked=False) == [2 / 5, 6 / 20]


def test_what_comes_while_it_waits_goes_first_too():
    often = Task(3, 4, 4)
    assert responses([often, Task(1, 50, 50)], blocked=False)[1] == 4 / 50  # begins at 3
    assert responses([often, Task(1, 4, 20), Task(1, 50, 50)])[2] == MOST  # never begins


@pytest.mark.parametrize(
    ("tasks", "share"), [([], 0), ([HIGH], 0), ([Task(8, 20, 4), Task(1, 20, 20)], (1 - 4 / 9) / 2)]
)
def test_the_later_a_task_may_be_the_more_of_its_deadlines_it_misses(tasks, share):
    assert late_share(tasks) == pytest.approx(share)
