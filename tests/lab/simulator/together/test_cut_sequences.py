"""Cuts by chance, and the best of some."""

from __future__ import annotations

import random

import numpy as np
import pytest

from heimdall.lab.simulator.together.concurrent_stages import best_cut, cut
from heimdall.lab.simulator.together.cut_sequences import Ways, best_of
from tests.lab.simulator.together.test_concurrent_stages import SQUEEZE, combined


def all_alike(_, endings):
    return np.full(len(endings), 1 / len(endings))


def most_work(_, endings):
    found = np.zeros(len(endings))
    found[-1] = 1.0
    return found


def test_the_likeliest_way_takes_the_likeliest_ending_each_time():
    made = combined((SQUEEZE, 1), (SQUEEZE, 2))
    ways = Ways(made, most_work)
    way = ways.cut()
    assert (ways.stages(way), way.ns) == cut(made, lambda _, left, endings: endings[-1])


def test_ways_by_chance_run_every_op_once_and_take_what_their_stages_do():
    made = combined((SQUEEZE, 1), (SQUEEZE, 2))
    ways, draw = Ways(made, all_alike), random.Random(1)
    found = [ways.cut(draw) for _ in range(20)]
    assert len({way.ns for way in found}) > 3
    for way in found:
        ops = [(block, op) for stage in ways.stages(way) for block, group in stage for op in group]
        assert len(ops) == len(set(ops)) == sum(len(block.ops) for block in made.blocks)
        endings = [ways.met[left][0][index] for left, index in way.taken]
        assert way.ns == pytest.approx(sum(each.ns for each in endings))


def test_a_policy_is_asked_once_about_what_is_left():
    asked = []

    def likely(left, endings):
        asked.append(left)
        return all_alike(left, endings)

    best_of(combined((SQUEEZE, 1), (SQUEEZE, 2)), likely, cuts=30)
    assert len(asked) == len(set(asked))


def test_more_cuts_are_never_worse_and_always_the_same():
    made = combined((SQUEEZE, 1), (SQUEEZE, 2))
    took = [best_of(made, all_alike, cuts)[1] for cuts in (1, 4, 16, 400)]
    assert took == sorted(took, reverse=True)
    assert took[-1] == pytest.approx(best_cut(made)[1])
    assert best_of(made, all_alike, 16) == best_of(made, all_alike, 16)
