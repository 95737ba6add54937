"""Eqs. 3-6 of Pantheon's paper: the optimum is that of trying everything."""

from __future__ import annotations

from itertools import accumulate, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heimdall.errors import ConfigError
from heimdall.lab.exits.placement import Exit, pareto, place


def made(chunks, accuracies, heads=None, sizes=None, head_sizes=None):
    """Exits of a network whose chunks take these times."""
    count = len(chunks)
    heads, sizes = heads or [1] * count, sizes or [10] * count
    return [
        Exit(done + head, accuracy, size, head_size, chunk)
        for done, head, accuracy, size, head_size, chunk in zip(
            accumulate(chunks), heads, accuracies, sizes, head_sizes or [1] * count, chunks,
            strict=True,
        )
    ]  # fmt: skip


def all_choices(exits, alpha, keep_best):
    """By brute force and as the paper writes it: (bytes, mean delay, exits) of every choice."""
    front = {
        j
        for j in range(len(exits))
        if all(
            exits[j].delay < exits[k].delay or exits[j].accuracy >= exits[k].accuracy
            for k in range(len(exits))
            if k != j
        )
    }
    alpha += 1e-9
    allowed = [j for j in sorted(front) if exits[-1].accuracy - exits[j].accuracy <= alpha]
    if not allowed:
        return []
    top = max(allowed, key=lambda j: (exits[j].accuracy, -exits[j].delay))
    found = []
    for bits in product((0, 1), repeat=len(exits)):
        kept = [j for j, bit in enumerate(bits) if bit]
        if not kept or not set(kept) <= front:
            continue
        if exits[-1].accuracy - min(exits[j].accuracy for j in kept) > alpha:
            continue
        if keep_best and top not in kept:
            continue
        last = kept[-1]
        begins = [0, *accumulate(each.chunk_delay for each in exits)]
        near = [
            exits[min(j for j in kept if j >= chunk)].delay - begins[chunk]
            for chunk in range(last + 1)
        ]
        size = sum(each.chunk_bytes for each in exits[: last + 1])
        size += sum(exits[j].head_bytes for j in kept)
        found.append((size, sum(near) / (last + 1), tuple(kept)))
    return found


NUMBERS = st.integers(1, 9)


@st.composite
def networks(draw, most=13):
    count = draw(st.integers(1, most))

    def numbers():
        return draw(st.lists(NUMBERS, min_size=count, max_size=count))

    accuracies = [draw(st.integers(80, 99)) / 100 for _ in range(count)]
    return made(numbers(), accuracies, numbers(), numbers(), numbers())


@settings(max_examples=150, deadline=None)
@given(networks(), st.sampled_from([0, 0.01, 0.05, 1]), st.integers(1, 150), st.booleans())
def test_it_is_the_best_of_all_choices(exits, alpha, budget, keep_best):
    found = all_choices(exits, alpha, keep_best)
    fitting = [choice for choice in found if choice[0] <= budget]
    if not fitting:
        with pytest.raises(ConfigError):
            place([exits], alpha, budget, keep_best=keep_best)
        return
    (placement,) = place([exits], alpha, budget, keep_best=keep_best)
    assert placement.delay == pytest.approx(min(delay for _, delay, _ in fitting))
    (own,) = [choice for choice in found if choice[2] == placement.kept]
    assert own[:2] == (placement.bytes, pytest.approx(placement.delay))
    assert placement.bytes <= budget


@settings(max_examples=60, deadline=None)
@given(networks(most=5), networks(most=5), st.integers(1, 150))
def test_networks_that_share_a_budget_are_placed_together(first, second, budget):
    choices = [all_choices(exits, 0.05, True) for exits in (first, second)]
    assume(all(choices))
    totals = [(one[0] + other[0], one[1] + other[1]) for one in choices[0] for other in choices[1]]
    fitting = [delay for size, delay in totals if size <= budget]
    if not fitting:
        with pytest.raises(ConfigError, match="too small"):
            place([first, second], 0.05, budget)
        return
    found = place([first, second], 0.05, budget)
    assert sum(each.delay for each in found) == pytest.approx(min(fitting))
    assert sum(each.bytes for each in found) <= budget


def test_without_the_most_accurate_one_early_exit_would_be_all():
    """Eq. 6 alone degenerates: the rest of the network only makes its mean longer."""
    exits = made([10, 10, 10], [0.90, 0.905, 0.91])
    assert place([exits], 0.01, 1000, keep_best=False)[0].kept == (0,)
    assert place([exits], 0.01, 1000)[0].kept == (0, 1, 2)


def test_an_exit_below_the_front_is_never_kept():
    exits = made([10, 10, 10], [0.905, 0.9, 0.91])
    assert pareto(exits) == [0, 2]
    assert place([exits], 0.01, 1000)[0].kept == (0, 2)


def test_the_original_exit_goes_where_an_earlier_one_is_more_accurate():
    exits = made([10, 10, 10], [0.90, 0.93, 0.92], sizes=[10, 10, 500])
    (found,) = place([exits], 0.02, 100)
    assert found.kept == (0, 1)
    assert found.bytes == 22


def test_what_cannot_be_is_named():
    exits = made([10, 10], [0.8, 0.9])
    with pytest.raises(ConfigError, match=r"budget of 0.00 MB is too small: .* 0.00 MB at least"):
        place([exits], 0.01, 5)
    with pytest.raises(ConfigError, match=r"not -0\.1"):
        place([exits], -0.1, 100)
    with pytest.raises(ConfigError, match="network 0 has no exit"):
        place([[]], 0.1, 100)
