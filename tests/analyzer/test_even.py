"""Evenly sized blocks: SPLIT's Eqs. 1 and 2, and its genetic search."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.analyzer.even import Ops, best_split, fitness, search, waiting_ns
from heimdall.errors import ConfigError

MS = 1_000_000
# Table 3: by blocks, the standard deviation of their times in ms and the overhead.
TABLE_3 = {
    "ResNet50": (28.35, {2: (0.62, 0.154), 3: (1.33, 0.424), 4: (2.0, 0.503)}),
    "VGG19": (67.5, {2: (0.02, 0.198), 3: (1.1, 0.181), 4: (5.03, 0.276)}),
}


def network(ops: int, kind: str, seed: int = 0) -> Ops:
    """Ops that are longer and dearer to cut at the beginning, as the paper observed (Fig. 2)."""
    draw = random.Random(f"{ops} {kind} {seed}")
    falls = [1 - op / ops for op in range(ops)]
    op_ns = [round(MS * math.exp(draw.gauss(0, 0.7)) * (0.5 + 1.5 * fall)) for fall in falls]
    cut_ns = {
        "free": [],
        "falling": [round(2 * MS * fall) for fall in falls],
        "ragged": [round(4 * MS * fall * draw.choice([0.25, 0.5, 1])) for fall in falls],
    }[kind]
    return Ops(op_ns, cut_ns, 50_000)


def exhaustive(ops: Ops, blocks: int) -> float:
    """The best fitness of all ways to cut."""
    ways = itertools.combinations(range(1, ops.count), blocks - 1)
    return max(ops.split(cuts).fitness for cuts in ways)


@pytest.mark.parametrize(("model", "blocks"), [("ResNet50", 2), ("VGG19", 3)])
def test_eq_2_on_table_3_gives_the_papers_numbers_of_blocks(model, blocks):
    whole_ms, rows = TABLE_3[model]
    worth = {m: fitness(m, std, overhead, whole_ms) for m, (std, overhead) in rows.items()}
    assert max(worth, key=worth.get) == blocks


@pytest.mark.parametrize("model", TABLE_3)
def test_eq_1_would_take_the_most_blocks_of_table_3(model):
    """Which is why it is not what chooses, whatever section 5.4 says."""
    whole_ms, rows = TABLE_3[model]

    def waits(blocks):
        std, overhead = rows[blocks]
        mean = whole_ms * (1 + overhead) / blocks
        return (std**2 / mean + mean) / 2

    assert min(rows, key=waits) == 4


def test_eq_1_is_half_the_time_of_even_blocks_and_more_of_uneven_ones():
    assert waiting_ns([10, 10]) == 5
    assert waiting_ns([15, 5]) == 6.25  # (sigma^2 / mean + mean) / 2
    assert waiting_ns([0]) == 0


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 10), st.integers(0, 2**32)
)
def test_a_split_prices_every_block_with_the_cut_before_it(op_ns, block_cost_ns, seed):
    draw = random.Random(seed)
    cut_ns = [draw.randrange(20) for _ in op_ns]
    cuts = tuple(op for op in range(1, len(op_ns)) if draw.random() < 0.5)
    split = Ops(op_ns, cut_ns, block_cost_ns).split(cuts)
    cost_ns = sum(cut_ns[cut] + block_cost_ns for cut in cuts)
    assert split.whole_ns == sum(op_ns) + block_cost_ns
    assert sum(split.block_ns) == split.whole_ns + cost_ns
    assert split.overhead == pytest.approx(cost_ns / split.whole_ns)
    assert split.fitness <= 0


@pytest.mark.parametrize("kind", ["free", "falling", "ragged"])
@pytest.mark.parametrize("ops", [44, 122, 142])  # VGG-19, ResNet-50, GoogLeNet
@pytest.mark.parametrize("blocks", [2, 3])
def test_the_search_finds_the_best_of_all_ways_within_15_generations(ops, kind, blocks):
    given_ops = network(ops, kind)
    best = exhaustive(given_ops, blocks)
    found = [search(given_ops, blocks, seed, generations=15)[0] for seed in range(20)]
    assert sum(split.fitness == pytest.approx(best, abs=1e-12) for split in found) >= 19


def test_the_search_is_the_same_for_the_same_seed_and_says_when_it_had_the_best():
    given_ops = network(122, "ragged")
    split, generation = search(given_ops, 3, seed=5)
    assert search(given_ops, 3, seed=5) == (split, generation)
    assert search(given_ops, 3, seed=5, generations=generation)[0] == split
    if generation > 1:
        earlier, _ = search(given_ops, 3, seed=5, generations=generation - 1)
        assert earlier.fitness < split.fitness


def test_the_best_split_is_the_best_of_every_number_of_blocks():
    given_ops = network(44, "falling")
    most = max(exhaustive(given_ops, blocks) for blocks in (2, 3))
    assert best_split(given_ops, most_blocks=3).fitness == pytest.approx(most)


def test_a_lone_op_is_one_block_and_two_are_two():
    assert best_split(Ops([7])).cuts == ()
    assert best_split(Ops([7, 9])).cuts == (1,)


@pytest.mark.parametrize(("blocks", "generations"), [(0, 5), (4, 5), (2, 0)])
def test_an_impossible_search_is_refused(blocks, generations):
    with pytest.raises(ConfigError):
        search(Ops([1, 2, 3]), blocks, generations=generations)


def test_no_ops_cannot_be_split():
    with pytest.raises(ConfigError, match="without ops"):
        Ops([])
