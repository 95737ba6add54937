"""One plan for a request of every model."""

from __future__ import annotations

import pytest

from heimdall.lab.policies.grouped import Stages
from heimdall.lab.policies.static_plan import StaticPlan
from heimdall.schedulers.base import Assignment

# Two stages: both models' first op at the same time, then what is left of each.
STAGES: Stages = [[(0, (0,)), (1, (0,))], [(0, (1, 2)), (1, (1,))]]


@pytest.fixture
def requests(queues):
    long, short = queues.costs({"gpu": (5, 5, 5)}), queues.costs({"gpu": (5, 5)})

    def make(*names):
        kinds = {"long": long, "short": short}
        return [queues.request(id, kinds[name], dnn=name) for id, name in enumerate(names)]

    return make


def test_a_round_is_one_request_of_each_model(queues, requests):
    view = queues.view(*requests("short", "short", "long"), idle=("gpu", "gpu"))
    chosen = StaticPlan(("long", "short"), STAGES).select(view, 0)
    assert chosen.together
    assert chosen.assignments == (
        Assignment(2, 1, "gpu", "", 1, 0, ((0, 1),)),
        Assignment(0, 1, "gpu", "", 2, 0, ((0, 1),)),
        Assignment(2, 3, "gpu", "", 1, 1, ((1, 3),)),
        Assignment(0, 2, "gpu", "", 2, 1, ((1, 2),)),
    )


def test_it_waits_for_all_models_or_leaves_their_places_free(queues, requests):
    view = queues.view(*requests("short"), idle=("gpu", "gpu"))
    assert StaticPlan(("long", "short"), STAGES).select(view, 0) is None
    free = StaticPlan(("long", "short"), STAGES, waits=False).select(view, 0)
    assert free.assignments == (Assignment(0, 2, "gpu"),)  # alone, as always


def test_it_says_what_it_was_made_of():
    assert StaticPlan(("long", "short"), STAGES).config() == {
        "models": ["long", "short"],
        "stages": [[[0, [0]], [1, [0]]], [[0, [1, 2]], [1, [1]]]],
        "waits": True,
    }
