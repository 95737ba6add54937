from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from heimdall.errors import ModelError
from heimdall.graph.graph import graph_from_model
from heimdall.models.base import Network, Pipeline, Prepared
from heimdall.models.memory import Memory, without_state
from heimdall.models.walk import Walk, run_pipeline
from tests.graph.models import model

STATE = {"sum_out": "sum_in"}


@pytest.fixture
def graph():
    """y = sum_out = sum_in + x."""
    nodes = [
        helper.make_node("Add", ["sum_in", "x"], ["sum_out"]),
        helper.make_node("Identity", ["sum_out"], ["y"]),
    ]
    shapes = {"x": [1, 2], "sum_in": [1, 2]}
    return graph_from_model(model(nodes, shapes, ["y", "sum_out"]))


class Sum(Pipeline[float]):
    networks = (Network("sum.onnx", {}, STATE),)

    def prepare(self, stage, image, previous, options):
        return [Prepared({"x": image})]

    def decode(self, stage, outputs, context):
        assert set(outputs) == {"y"}  # the state is not the pipeline's
        return float(outputs["y"].sum())


def infer(stage, inputs):
    total = inputs["x"] + inputs["sum_in"]
    return {"y": total, "sum_out": total}


ONES = np.ones((1, 2), np.float32)


def test_each_inference_goes_on_from_the_last_one(graph):
    memory = Memory(graph, STATE)
    assert [run_pipeline(Sum(), ONES, infer, memory=memory) for _ in range(3)] == [2, 4, 6]
    np.testing.assert_array_equal(memory.recall()[0]["sum_in"], 3 * ONES)
    memory.reset()
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


def test_what_is_dropped_changes_nothing(graph):
    memory = Memory(graph, STATE)
    walk = Walk(Sum(), ONES, {}, memory)
    walk.decode([infer(0, task.inputs) for task in walk.prepare()])
    walk.result()  # and nobody says that it counts
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


def test_what_was_begun_before_a_reset_is_forgotten(graph):
    memory = Memory(graph, STATE)
    walk = Walk(Sum(), ONES, {}, memory)
    walk.decode([infer(0, task.inputs) for task in walk.prepare()])
    memory.reset()
    walk.remember()
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


class Counting(Sum):
    """Says how many results there were, too."""

    def follow(self, result, past):
        count = (past or 0) + 1
        return (result, count), count


def test_a_pipeline_goes_on_from_its_last_result_that_counted(graph):
    memory = Memory(graph, STATE)
    assert run_pipeline(Counting(), ONES, infer, memory=memory) == (2, 1)
    walk = Walk(Counting(), ONES, {}, memory)
    walk.decode([infer(0, task.inputs) for task in walk.prepare()])
    assert walk.result() == walk.result() == (4, 2)  # and nobody says that it counts
    assert run_pipeline(Counting(), ONES, infer, memory=memory) == (4, 2)
    memory.reset()
    assert run_pipeline(Counting(), ONES, infer, memory=memory) == (2, 1)


def test_values_that_are_no_numbers_do_not_stay(graph, caplog):
    memory = Memory(graph, STATE)
    run_pipeline(Sum(), ONES * np.float32(np.nan), infer, memory=memory)
    assert "no numbers" in caplog.text
    assert "'sum_out'" in caplog.text
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


class Gone:
    """A tensor of a device that was lost."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("the device is gone")


class There:
    """A tensor of a device; ``copies``: how often it was brought to the host."""

    copies = 0

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        There.copies += 1
        return self._array


def there(seen, kept):
    """Outputs of which that one which is kept lies on a device."""
    return {"y": seen, "sum_out": There(kept)}


NAN = ONES * np.float32(np.nan)


def test_what_lies_on_a_device_is_looked_at_where_other_outputs_are_no_numbers(graph, caplog):
    memory, before = Memory(graph, STATE), There.copies
    memory.keep(there(ONES, ONES), 0)
    assert There.copies == before
    memory.keep(there(NAN, ONES), 0)  # but the state is sound
    assert There.copies == before + 1
    assert caplog.text == ""
    np.testing.assert_array_equal(memory.recall()[0]["sum_in"], ONES)
    memory.keep(there(NAN, NAN), 0)
    assert "output 'sum_out' has values that are no numbers" in caplog.text
    np.testing.assert_array_equal(memory.recall()[0]["sum_in"], 0 * ONES)


def test_what_lies_on_a_device_and_shows_nowhere_is_looked_at_now_and_then(graph, caplog):
    memory, before = Memory(graph, STATE), There.copies
    for _ in range(100):
        memory.keep(there(ONES, ONES), 0)
    assert 0 < There.copies - before < 10
    for _ in range(100):
        memory.keep(there(ONES, NAN), 0)
    assert "no numbers" in caplog.text


def test_what_cannot_be_looked_at_begins_anew(graph, caplog):
    memory = Memory(graph, STATE)
    memory.keep({"y": NAN, "sum_out": Gone()}, 0)
    assert "the device is gone" in caplog.text
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


def test_what_is_lost_with_its_device_begins_anew(graph, caplog):
    memory = Memory(graph, STATE)
    memory.keep({"sum_out": Gone()}, 0)
    memory.bring()
    assert "the device is gone" in caplog.text
    assert run_pipeline(Sum(), ONES, infer, memory=memory) == 2


def test_who_makes_the_other_inputs_does_not_see_it(graph):
    seen = without_state(graph, STATE)
    assert [each.name for each in seen.inputs] == ["x"]
    assert [each.name for each in seen.outputs] == ["y"]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"sum": "sum_in"}, "no output 'sum'"),
        ({"sum_out": "sum"}, "no input 'sum'"),
        ({"sum_out": "sum_in", "y": "sum_in"}, "two outputs are the same input"),
        ({"sum_out": "sum_in", "y": "x"}, "none of its inputs is left"),
    ],
)
def test_a_state_that_cannot_be_is_refused(graph, state, message):
    with pytest.raises(ModelError, match=message):
        Memory(graph, state)


def test_a_state_of_another_shape_is_refused():
    node = helper.make_node("Concat", ["a", "x"], ["b"], axis=1)
    grows = graph_from_model(model([node], {"x": [1, 2], "a": [1, 2]}, ["b"]))
    with pytest.raises(ModelError, match=r"\[1, 4\], and cannot be the input 'a'.*\[1, 2\]"):
        Memory(grows, {"b": "a"})
