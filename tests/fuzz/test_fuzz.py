"""Damaged models neither crash nor hang, and are refused or right; `make fuzz` tries more."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.fuzz.child import damaged
from tests.fuzz.seeds import SMALL, small
from tests.fuzz.watch import trials

COUNT = 200


@pytest.mark.slow
def test_damaged_models_are_refused_or_right():
    pytest.importorskip("pyopencl")
    results = list(trials(range(COUNT)))
    assert len(results) == COUNT
    assert [result for result in results if result["problem"]] == []
    outcomes = {result["outcome"] for result in results}
    assert {"compared", "refused at load"} <= outcomes


@pytest.mark.parametrize("name", SMALL)
def test_networks_to_be_damaged_are_whole(name):
    model = onnx.load_from_string(small(name))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.value_info


def test_a_seed_gives_the_same_model_again():
    assert damaged(7) == damaged(7)
    assert damaged(7) != damaged(8)
    assert np.unique([damaged(seed)[0] for seed in range(60)]).size >= len(SMALL)
