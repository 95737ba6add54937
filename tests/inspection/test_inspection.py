"""What the commands say about a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from onnx import helper

from heimdall import inspection
from heimdall.engine.base import PassOp, Tried
from heimdall.engine.null import NullEngine
from heimdall.errors import ConfigError
from tests.networks import small_graph


class TunableEngine(NullEngine):
    def tune(self, graph, on_progress, *, again=True):
        on_progress(2, 2)
        return {
            "small layer": Tried(4_000_000, 4_000_000, wrong=2),
            "large layer": Tried(9_000_000, 6_000_000),
        }


@pytest.fixture
def graph():
    return small_graph([helper.make_node("Relu", ["x"], ["y"])], {"x": [1, 4]}, {"y": [1, 4]})


def on(engine) -> Any:
    return SimpleNamespace(gpu=engine)


def test_tuning_says_how_many_layers_changed_and_what_that_gains(graph):
    seen = []
    (found,) = inspection.tune([graph], on(TunableEngine()), lambda *step: seen.append(step))
    assert found == {
        "network": graph.name,
        "layers": 2,
        "changed": 1,
        "before_ms": 13.0,
        "after_ms": 10.0,
        "wrong_kernels": 2,
    }
    assert seen == [(f"tuning {graph.name}", 2, 2)]


class CompilingEngine(NullEngine):
    def passes(self, graph, *, force_fallback=()):
        return [("lowering", [PassOp("elementwise", "y", (1, 4), ("n", "n"))])]


def test_a_pass_is_described_by_its_ops(graph):
    (found,) = inspection.describe_passes([graph], on(CompilingEngine()))
    op = {"kind": "elementwise", "output": "y", "shape": [1, 4], "nodes": ["n"]}
    assert found == {"network": graph.name, "pass": "lowering", "ops": [op]}


def test_an_engine_without_passes_is_an_error_that_names_it(graph):
    with pytest.raises(ConfigError, match="the engine null has no passes to show"):
        inspection.describe_passes([graph], on(NullEngine()))


def test_an_engine_without_a_choice_of_kernels_has_nothing_to_tune(graph):
    (found,) = inspection.tune([graph], on(NullEngine()))
    assert (found["layers"], found["changed"]) == (0, 0)
