"""TOP's policy, with actors that answer what a test says."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.policies.top import Task, Top, plan_of
from heimdall.schedulers.expected import StageCosts
from heimdall.vocabulary.plans import StagePlan
from tests.views import still_view

MS = 1_000_000
TASK = Task(("a", "b"), (2, 1), most_blocks=2, samples=2, threshold=4.0)
AT_ONCE = [0.0, 0.0]


class Answers:
    """An actor that answers these, one after the other, and then the last for ever."""

    hash = "abc"

    def __init__(self, *answers, task=TASK):
        self.task, self.answers, self.states = task, list(answers), []

    def __call__(self, state):
        self.states.append(list(state))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def side_by_side(members):
    """Every block of TASK is one op."""
    starts = {("a", 0): 0, ("a", 1): 1, ("b", 0): 0}
    return [[(index, (starts[member],)) for index, member in enumerate(members)]]


@pytest.fixture
def view(queues):
    costs = {
        name: StageCosts(
            StagePlan((1,) * n, (False,) * n, 0, 0, tuple((i, i + 1) for i in range(n)))
        )
        for name, n in (("a", 2), ("b", 1), ("c", 1))
    }

    def make(*jobs, running=()):
        """Jobs as (name, next op)."""
        made = [
            queues.request(id, costs[name], dnn=name, next_op=op)
            for id, (name, op) in enumerate(jobs)
        ]
        return still_view(made, ["gpu", "gpu"], {"gpu": 0}, running=running)

    return make


def top(*answers, **options):
    actor = Answers(*answers)
    return Top(actor, side_by_side, {"stages": "def"}, **options), actor


def test_numbers_are_intervals_and_parts_of_equal_size():
    plan = plan_of(TASK, [0.0, 1.0, 0.1, 0.5, 0.2])
    assert plan.intervals_ns == {"a": MS, "b": 1000 * MS}
    assert plan.combined == ((("a", 0), ("b", 0)), (("a", 1),))
    assert plan.largest == 2
    assert plan_of(TASK, [0.0, 0.0, 1.0, 1.0, 1.0]).largest == 3


def test_an_actor_that_answers_too_little():
    with pytest.raises(ConfigError, match="answers 2 numbers where 5 are needed"):
        plan_of(TASK, [0.0, 1.0])


def test_blocks_that_are_combined_run_together(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.9, 0.2])
    choice = policy.select(view(("a", 0), ("b", 0)), 0)
    assert choice.together
    assert [(each.job, each.end_op) for each in choice.assignments] == [(0, 1), (1, 1)]


def test_those_of_which_most_have_input_come_first(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.9, 0.2])  # a's first with b, a's second alone
    choice = policy.select(view(("a", 0), ("a", 1)), 0)
    assert [each.job for each in choice.assignments] == [1]
    assert choice.reason == "1 of 1 blocks have input"


def test_who_has_waited_long_is_not_starved_by_smaller_combined_blocks(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.9, 0.2])
    moment = view(("b", 0), ("a", 1))  # half of two blocks has input, and one of one
    moment.ready[1] = moment.ready[1]._replace(arrival_ns=9 * MS)
    assert policy.select(moment, 10 * MS).assignments[0].job == 0


def test_between_two_blocks_of_a_network_one_request_waits_at_most(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.9, 0.9])
    # a's second block is at a place with b's only one, half of which has input; its first alone
    choice = policy.select(view(("a", 1), ("a", 0)), 0)
    assert [each.job for each in choice.assignments] == [0]
    policy, _ = top([*AT_ONCE, 0.9, 0.9, 0.1])  # both of a together: the place becomes free
    choice = policy.select(view(("a", 1), ("a", 0)), 0)
    assert sorted(each.job for each in choice.assignments) == [0, 1]


def test_queues_are_drawn_from_at_their_intervals(view):
    policy, _ = top([0.5, 0.0, 0.1, 0.5, 0.9])
    interval_ns = round(1e9 * 0.001**0.5)
    assert policy.select(view(("a", 0)), 7).assignments[0].job == 0
    waits = policy.select(view(("a", 0)), 7 + interval_ns - 1)
    assert (waits.assignments, waits.wake_ns) == ((), 7 + interval_ns)
    assert policy.select(view(("a", 0)), 7 + interval_ns) is not None


def test_nothing_begins_while_something_runs(view):
    policy, actor = top([*AT_ONCE, 0.1, 0.5, 0.9])
    assert policy.select(view(("a", 0), running=["busy"]), 0) is None
    assert not actor.states


def test_the_actor_is_asked_again_when_queues_are_unequal(view):
    policy, actor = top([*AT_ONCE, 0.1, 0.5, 0.9])
    policy.select(view(("a", 0)), 0)
    policy.select(view(("a", 0), ("b", 0)), 200 * MS)  # variance 0
    assert len(actor.states) == 1
    policy.select(view(*[("a", 0)] * 5), 400 * MS)  # of 5 and 0: 6.25
    assert len(actor.states) == 2
    policy.select(view(*[("a", 0)] * 5), 410 * MS)  # but not at once
    assert len(actor.states) == 2


def test_what_the_actor_sees(view):
    policy, actor = top([*AT_ONCE, 0.1, 0.5, 0.9])
    policy.select(view(("a", 0), ("a", 0), ("a", 1)), 0)
    # a's and b's blocks that have input, then how far the queues are from their mean, in sqrt(T)
    assert actor.states == [[1.0, 1.0, 0.0, 0.5, -0.5] * 2]
    assert len(actor.states[0]) == TASK.state_size


def test_a_superblock_leaves_what_was_before(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.1, 0.1], [*AT_ONCE, 0.1, 0.9, 0.1], [*AT_ONCE, 0.5, 0.5, 0.5])
    policy.select(view(("a", 0)), 0)
    assert policy.plan.largest == 1  # there was none: every block on its own
    policy.select(view(*[("a", 0)] * 9), 200 * MS)
    before = policy.plan
    assert before.largest == 2
    policy.select(view(*[("a", 0)] * 9), 400 * MS)
    assert policy.plan is before


def test_a_model_that_the_actor_does_not_know(view):
    policy, _ = top([*AT_ONCE, 0.1, 0.5, 0.9])
    with pytest.raises(ConfigError, match=r"trained for \('a', 'b'\), not for 'c'"):
        policy.select(view(("c", 0)), 0)


def test_what_a_replay_needs():
    policy, _ = top([*AT_ONCE, 0.1, 0.5, 0.9])
    assert policy.config() == {"actor": "abc", "stages": "def"}
