"""The ONNX project's own node tests, of all operators on floats: right, and without fallback ops.

A test counts when its operator is a standard one of an opset that is supported, its outputs are
float32 and its inputs are float32 or integers. Integers (axes, shapes, indices) become constants,
as they are in models, and so do numbers that the shape of an output depends on; weights stay
inputs. Function bodies ("_expanded") and random operators do not count. Truth values and indices
as results are checked too, but do not count either.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import numpy as np
import onnx
import pytest
from onnx.backend.test.case.node import collect_testcases

from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError
from heimdall.graph.graph import graph_from_model
from heimdall.graph.onnx_file import OPSETS

GOAL = 480  # of 550
FLOAT, BOOL = np.dtype(np.float32), np.dtype(bool)
SHAPING = {"Resize": (1, 2, 3), "Upsample": (1,), "Pad": (1, 2, 3)}  # inputs
RANDOM = {"Bernoulli", "Dropout", "Multinomial"}


class Case(NamedTuple):
    """``counts``: its results are floats."""

    name: str
    op_type: str
    model: onnx.ModelProto
    inputs: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    counts: bool


@cache
def cases() -> tuple[Case, ...]:
    found = (_case(test) for test in collect_testcases(None))
    return tuple(sorted((each for each in found if each), key=lambda case: case.name))


def _case(test) -> Case | None:
    node, graph = test.model.graph.node[0], test.model.graph
    versions = {entry.domain: entry.version for entry in test.model.opset_import}
    if "_expanded" in test.name or node.domain or versions.get("") not in OPSETS:
        return None
    inputs, outputs = test.data_sets[0]
    arrays = (*inputs, *outputs)
    if node.op_type in RANDOM or not all(isinstance(each, np.ndarray) for each in arrays):
        return None
    if not all(each.size and each.dtype.kind in "fib" for each in arrays):
        return None
    kinds = {FLOAT, BOOL}
    if any(each.dtype.kind == "f" and each.dtype != FLOAT for each in arrays):
        return None
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    names = [value.name for value in graph.input]
    constant = {node.input[i] for i in SHAPING.get(node.op_type, ()) if i < len(node.input)}
    given = dict(zip(names, inputs, strict=True))
    constant |= {name for name, each in given.items() if each.dtype not in kinds}
    computed = {name: each for name, each in given.items() if name not in constant}
    if not computed:
        return None
    del model.graph.input[:]
    model.graph.input.extend(value for value in graph.input if value.name in computed)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(given[name], name) for name in sorted(constant & set(given))
    )
    wanted = dict(zip([value.name for value in graph.output], outputs, strict=True))
    counts = all(each.dtype == FLOAT for each in (*wanted.values(), *computed.values()))
    return Case(test.name, node.op_type, model, computed, wanted, counts)


class Outcome(NamedTuple):
    case: Case
    refused: str = ""  # why the file does not load
    wrong: str = ""
    fallback: bool = False


def _run(engine, shared, case: Case) -> Outcome:
    try:
        graph = graph_from_model(case.model)
    except ModelError as error:
        return Outcome(case, refused=str(error))
    network = engine.load(graph)
    fallback = any(op.fallback for op in network.ops)
    try:
        found = shared.run(network, network.new_state(), case.inputs)
    except ModelError as error:  # a fallback op makes another shape than ONNX infers (STFT)
        return Outcome(case, refused=str(error), fallback=fallback)
    finally:
        network.close()
    wrong = [name for name, value in case.outputs.items() if not _agrees(found[name], value)]
    if wrong:  # onnxruntime reads ONNX otherwise here and there, and the engine goes with it
        other = shared.reference(graph, case.inputs)
        wrong = [name for name in wrong if not _agrees(found[name], other[name])]
    return Outcome(case, wrong=", ".join(wrong), fallback=fallback)


def _agrees(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    return np.allclose(found, wanted, rtol=1e-3, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize(
    "traits",
    [
        pytest.param(None, marks=pytest.mark.long, id="this device"),  # two minutes of compiling
        pytest.param(Traits("gpu", 4), id="a GPU"),
    ],
)
def test_the_node_tests_are_right_and_most_need_no_fallback(engine_for, shared, traits):
    outcomes = [_run(engine_for(traits), shared, case) for case in cases()]
    ran = [each for each in outcomes if not each.refused]
    wrong = {each.case.name: each.wrong for each in ran if each.wrong}
    left = Counter(each.case.op_type for each in ran if each.fallback)
    counted = [each for each in ran if each.case.counts]
    native = sum(not each.fallback for each in counted)
    print(f"{native} of {len(counted)} without fallback ops; the others: {dict(left)}")
    assert wrong == {}
    assert native >= GOAL, f"operators that fall back: {dict(left)}"
