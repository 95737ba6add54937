"""An inference goes through its stages the same way, whoever runs the networks."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.walk import Walk, run_pipeline

IMAGE = np.zeros((4, 4, 3), np.uint8)


class Counting(Pipeline):
    """Stage 0 gives a number, stage 1 as many tasks as that, stage 2 one for each of them."""

    networks = (Network("a.onnx"), Network("b.onnx"), Network("c.onnx"))

    def prepare(self, stage, image, previous, options):
        if stage == 0:
            return [Prepared({"x": np.array(options.get("hands", 2), "f")}, "whole")]
        count = int(previous[0]) if stage == 1 else len(previous)
        return [Prepared({"x": np.array(i, "f")}, i) for i in range(count)]

    def decode(self, stage, outputs, context):
        return float(outputs["y"])

    def combine(self, results, image):
        return results


def echo(stage, inputs):
    return {"y": inputs["x"] + 10 * (stage > 0)}


def test_each_stage_gets_the_results_of_the_one_before():
    assert run_pipeline(Counting(), IMAGE, echo) == [[2.0], [10.0, 11.0], [10.0, 11.0]]


def test_options_reach_the_pipeline():
    assert run_pipeline(Counting(), IMAGE, echo, {"hands": 1}) == [[1.0], [10.0], [10.0]]


def test_a_stage_without_tasks_is_the_last_one():
    assert run_pipeline(Counting(), IMAGE, echo, {"hands": 0}) == [[0.0], []]


def test_outputs_that_do_not_match_the_tasks_are_refused():
    walk = Walk(Counting(), IMAGE, {})
    walk.prepare()
    with pytest.raises(ValueError, match="argument"):
        walk.decode([])
