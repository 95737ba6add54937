"""Pairs cost least as a whole, whatever is to be paired."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from heimdall.tracking.assign import pairs

LIMIT = 1.0

costs = st.tuples(st.integers(0, 4), st.integers(0, 4)).flatmap(
    lambda shape: arrays(float, shape, elements=st.floats(0, 2) | st.just(np.inf))
)


def total(cost: np.ndarray, found: list[tuple[int, int]]) -> float:
    """With what those who stay alone cost."""
    return sum(cost[pair] for pair in found) + LIMIT * (len(cost) - len(found))


def least(cost: np.ndarray) -> float:
    """By trying everything."""
    rows, columns = cost.shape
    places = [*range(columns), *[None] * rows]
    ways = set(permutations(places, rows))
    return min(
        sum(LIMIT if at is None else cost[row, at] for row, at in enumerate(way)) for way in ways
    )


@given(costs)
def test_nothing_is_cheaper(cost):
    found = pairs(cost, LIMIT)
    assert abs(total(cost, found) - least(cost)) < 1e-9


@given(costs)
def test_everybody_has_one_partner_at_most_and_none_beyond_the_limit(cost):
    found = pairs(cost, LIMIT)
    rows, columns = [row for row, _ in found], [column for _, column in found]
    assert len(set(rows)) == len(rows)
    assert len(set(columns)) == len(columns)
    assert all(cost[pair] < LIMIT for pair in found)


def test_the_whole_is_cheapest_where_the_nearest_would_not_be():
    cost = np.array([[0.1, 0.2], [0.15, 0.9]])
    assert pairs(cost, LIMIT) == [(0, 1), (1, 0)]
