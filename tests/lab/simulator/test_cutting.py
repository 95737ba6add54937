"""Networks of which a paper tells where to cut, and at what price."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.lab.simulator.cutting import CutTable, check_cuts, placed, prices_ms

CUTS = (CutTable(at=0.25, ms=3), CutTable(at=0.75, ms=1))


def test_each_cut_lies_between_two_ops_and_has_its_price():
    shares = [0.2, 0.2, 0.2, 0.2, 0.2]
    assert placed(shares, CUTS) == pytest.approx([0.25, 0.5 / 3, 0.5 / 3, 0.5 / 3, 0.25])
    assert prices_ms(shares, CUTS, 9) == [9, 3, 9, 9, 1]
    assert prices_ms(shares, CUTS, (5, 6, 7, 8, 9)) == [5, 3, 7, 8, 1]


def test_without_cuts_all_is_as_it_was():
    assert placed([0.4, 0.6], ()) == pytest.approx([0.4, 0.6])
    assert prices_ms([0.4, 0.6], (), 2) == [2, 2]


@given(
    shares=st.lists(st.floats(0.01, 1), min_size=4, max_size=20),
    places=st.lists(st.integers(1, 99), min_size=1, max_size=3, unique=True),
)
def test_every_cut_is_where_its_share_of_the_time_has_passed(shares, places):
    cuts = [CutTable(at=place / 100, ms=place) for place in sorted(places)]
    check_cuts(cuts, len(shares))
    scaled, prices = placed(shares, cuts), prices_ms(shares, cuts, 1000)
    before = [0, *accumulate(scaled)]
    assert before[-1] == pytest.approx(1)
    assert min(scaled) > 0
    found = {price: before[op] for op, price in enumerate(prices) if price < 1000}
    assert found == pytest.approx({cut.ms: cut.at for cut in cuts})


@pytest.mark.parametrize(
    ("cuts", "ops", "words"), [(CUTS[::-1], 9, "behind"), (CUTS, 2, "1 places between them")]
)
def test_cuts_that_cannot_be_are_refused(cuts, ops, words):
    with pytest.raises(ValueError, match=words):
        check_cuts(cuts, ops)
