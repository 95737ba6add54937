from __future__ import annotations

import pytest

from heimdall import DNN
from heimdall.lab.bench.judge.identity import network_id, thinned


def test_what_changes_a_networks_times_is_in_its_name():
    kinds: list[DNN] = [
        DNN("a", model="centerface"),
        DNN("a", model="selfie"),
        DNN("a", model="centerface", options={"size": (32, 64)}),
        DNN("a", model="centerface", force_fallback=("x",)),
        DNN("a", model="centerface", precision="fp16"),
    ]
    assert len({network_id(dnn) for dnn in kinds}) == len(kinds)


def test_what_a_scenario_says_of_rates_does_not_change_it():
    one = DNN("a", model="centerface", options={"size": (32, 64)}, force_fallback=("x", "y"))
    other = DNN("b", model="centerface", options={"size": [32, 64]}, force_fallback=("y", "x"))
    assert network_id(one) == network_id(other)


def test_a_network_of_a_load_is_called_after_that_whatever_its_size():
    small, large = (
        DNN("a", model="centerface", options={"size": size, "score": 0.5}) for size in (32, 64)
    )
    assert network_id(small, 95) == network_id(large, 95)
    assert len({network_id(small), network_id(small, 95), network_id(small, 207)}) == 3


def test_few_values_stand_for_many():
    assert thinned([3, 1, 2]) == [1, 2, 3]
    some = thinned(range(1000), most=10)
    assert len(some) == 10
    assert some[0] == pytest.approx(50, abs=1)
    assert some[-1] == pytest.approx(950, abs=1)
