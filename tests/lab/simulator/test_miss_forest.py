"""RT-mDL's predictor: the bundled random forest."""

from __future__ import annotations

import pytest

from heimdall.errors import ConfigError
from heimdall.lab.simulator.miss_forest import FEATURES, MissForest, features
from heimdall.lab.simulator.schedulability import Task


def equal_tasks(load, number=4, period_ns=33e6):
    return [Task(round(load * period_ns / number), period_ns, round(0.8 * period_ns))] * number


def test_it_is_told_as_much_as_it_learnt_from():
    assert len(features(equal_tasks(0.5))) == FEATURES


def test_the_more_is_asked_for_the_more_is_missed():
    forest = MissForest()
    predicted = [forest(equal_tasks(load)) for load in (0.4, 1.1, 1.6)]
    assert predicted == sorted(predicted)
    assert predicted[0] < 0.02
    assert predicted[2] > 0.25
    assert forest([]) == 0


@pytest.mark.parametrize("content", [None, b"not a network"])
def test_one_that_is_missing_or_damaged_is_named(tmp_path, content):
    path = tmp_path / "forest.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"forest\.onnx"):
        MissForest(path)
