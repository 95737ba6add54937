"""Damaged inputs neither crash nor hang, and are handled or refused; `make fuzz` tries more."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.fuzz.target import NAMES, damaged
from tests.fuzz.targets.onnx_seeds import SMALL, small
from tests.fuzz.watch import trials

CORPUS = Path(__file__).with_name("corpus")
MODELS = 200
COUNT = 40  # of each other target, in one child: its start takes longer than they do
NEEDED = {"onnx": "pyopencl", "mcap": "mcap", "rest": "tritonclient", "grpc": "tritonclient"}
NEEDED |= {"preview": "aiohttp"}
OTHERS = [
    name
    for name in NAMES
    if name != "onnx" and importlib.util.find_spec(NEEDED.get(name, "numpy")) is not None
]


@pytest.mark.slow
def test_damaged_models_are_refused_or_right():
    pytest.importorskip("pyopencl")
    results = list(trials([("onnx", seed) for seed in range(MODELS)]))
    assert len(results) == MODELS
    assert [result for result in results if result["problem"]] == []
    outcomes = {result["outcome"] for result in results}
    assert {"compared", "refused at load"} <= outcomes


def test_other_damaged_inputs_are_handled_or_refused():
    cases = [(name, seed) for name in OTHERS for seed in range(COUNT)]
    results = list(trials(cases, children=1))
    assert [result for result in results if result["problem"]] == []
    outcomes = defaultdict(set)
    for result in results:
        outcomes[result["target"]].add(result["outcome"])
    assert set(outcomes) == set(OTHERS)
    assert all(len(found) > 1 for found in outcomes.values()), outcomes  # some are fine, some not


def test_what_was_found_before_is_found_no_more():
    files = sorted(CORPUS.glob("*/*"))
    cases = [(file.parent.name, str(file)) for file in files if file.parent.name in OTHERS]
    assert cases
    results = list(trials(cases, children=1))
    assert [result for result in results if result["problem"]] == []


@pytest.mark.parametrize("name", SMALL)
def test_networks_to_be_damaged_are_whole(name):
    model = onnx.load_from_string(small(name))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.value_info


@pytest.mark.parametrize("name", ["onnx", *OTHERS])
def test_a_seed_gives_the_same_input_again(name):
    assert damaged(name, 7) == damaged(name, 7)
    found = [damaged(name, seed) for seed in range(60)]
    assert len({raw for _, raw in found}) > 30
    assert np.unique([was for was, _ in found]).size > 1
