"""All of the ONNX project's node tests, of every op, type and opset, as files that a user brings.

Each case is a model of its own. Sizes that it leaves free are those of its data; where it does not
load so, integers among its inputs become constants, as they are in models (axes, shapes). What is
not right is named: onnxruntime cannot run it either, or it has inputs that no app gives.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

from heimdall.engine import open_engine
from heimdall.engine.base import Engine
from heimdall.errors import HeimdallError, ModelError
from heimdall.graph.graph import Graph, graph_from_model
from heimdall.graph.values import opset_of

SAMPLE = 9  # one case of so many
RIGHT = 1640  # of the 1884 cases of onnx 1.23, with onnxruntime 1.32
RANDOM = {"Bernoulli", "Dropout", "Multinomial"}
# What may be said of a case that onnxruntime runs.
NAMED = {
    "an input or output is a list, or may be absent": r"is not a tensor|is no tensor",
    "an input is text": r"is string",
    "an input has no elements": r"free or empty dimensions|of shape \(1, 5\); given",
    "an input decides shapes or ranks": r"fails there on a sample|makes? '.*' of .*shape|scalars",
    "an opset of 2017": r"opset [1-6];",
}


class Case(NamedTuple):
    name: str
    model: onnx.ModelProto
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    tolerance: tuple[float, float]


@cache
def cases() -> tuple[Case, ...]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's, about infinities that are wanted
        found = sorted(collect_testcases(None), key=lambda case: case.name)
    return tuple(_case(each) for each in found)


def _case(test: Any) -> Case:
    graph = test.model.graph
    inputs, outputs = ([_array(value) for value in part] for part in test.data_sets[0])
    names, made = ([value.name for value in part] for part in (graph.input, graph.output))
    return Case(
        test.name,
        test.model,
        dict(zip(names, inputs, strict=False)),
        dict(zip(made, outputs, strict=False)),
        (max(test.rtol, 1e-3), max(test.atol, 1e-5)),
    )


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _as_brought(case: Case) -> onnx.ModelProto:
    """The case's model with the sizes of its data."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for value in model.graph.input:
        array, dims = case.inputs.get(value.name), value.type.tensor_type.shape.dim
        if isinstance(array, np.ndarray) and len(dims) == array.ndim:
            for dim, size in zip(dims, array.shape, strict=True):
                dim.dim_value = size
    return model


def _graph(case: Case) -> Graph:
    model = _as_brought(case)
    try:
        return graph_from_model(model)
    except ModelError as error:
        given = [
            value
            for value in model.graph.input
            if getattr(case.inputs.get(value.name), "dtype", np.dtype(object)).kind in "iu"
        ]
        if not given or len(given) == len(model.graph.input):
            raise
        for value in given:
            model.graph.input.remove(value)
            array = case.inputs[value.name]
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        model.ir_version = max(model.ir_version, 4)
        try:
            return graph_from_model(model)
        except ModelError:
            raise error from None


def _problem(engine: Engine, case: Case) -> str:
    """What is said or wrong; empty where all outputs are right."""
    try:
        graph = _graph(case)
        network = engine.load(graph)
        feeds = {each.name: case.inputs[each.name] for each in graph.inputs}
        typed = {each.name: np.asarray(feeds[each.name], each.dtype) for each in graph.inputs}
        found = network.infer(network.new_state(), typed)
        network.close()
    except HeimdallError as error:
        return str(error)
    if missing := case.outputs.keys() - found.keys():
        return f"{min(missing)!r} is no tensor"
    wrong = [n for n, value in case.outputs.items() if not _agree(found[n], value, case.tolerance)]
    return f"wrong: {', '.join(wrong)}" if wrong else ""


def _agree(found: Any, wanted: Any, tolerance: tuple[float, float]) -> bool:
    if not isinstance(wanted, np.ndarray) or not isinstance(found, np.ndarray):
        return False
    numbers = wanted.dtype.kind not in "OUTS"
    widened = wanted.dtype.isbuiltin != 1 or wanted.dtype == np.float16
    if found.shape != wanted.shape or (numbers and not widened and found.dtype != wanted.dtype):
        return False
    if not numbers:
        return bool((found.astype(str) == wanted.astype(str)).all())
    rtol, atol = (2e-2, 2e-2) if wanted.dtype.name == "bfloat16" else tolerance
    a, b = (each.astype(complex if each.dtype.kind == "c" else float) for each in (found, wanted))
    atol = max(atol, 1e-5 * float(np.abs(np.where(np.isfinite(b), b, 0)).max(initial=0)))
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True))


def _by_onnxruntime(case: Case) -> bool:
    """Does onnxruntime run the file, and is it right?"""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(case.model.SerializeToString(), options)
        made = session.run(list(case.outputs), case.inputs)
    except Exception:  # onnxruntime raises a dozen types of its own
        return False
    return all(map(_agree, made, case.outputs.values(), [case.tolerance] * len(made)))


@pytest.mark.parametrize(
    ("engine", "one_of"),
    [
        pytest.param("onnxruntime", SAMPLE, id="onnxruntime, a sample"),
        pytest.param("onnxruntime", 1, marks=pytest.mark.long, id="onnxruntime, all"),
        pytest.param("opencl", 1, marks=pytest.mark.long, id="opencl, all"),
    ],
)
def test_what_onnxruntime_runs_is_run(engine, one_of):
    opened = open_engine(engine)
    chosen = cases()[::one_of]
    problems = {case.name: _problem(opened, case) for case in chosen}
    opened.close()
    outcomes: Counter[str] = Counter()
    unexplained = {}
    for case in chosen:
        problem = problems[case.name]
        reasons = [why for why, said in NAMED.items() if re.search(said, problem)]
        if not problem:
            outcomes["right"] += 1
        elif not _by_onnxruntime(case) or case.model.graph.node[0].op_type in RANDOM:
            outcomes["onnxruntime cannot, or is wrong, or it is random"] += 1
        elif reasons:
            outcomes[reasons[0]] += 1
        else:
            unexplained[case.name] = problem
    print(f"{len(chosen)} cases: {dict(outcomes)}")
    assert unexplained == {}
    assert not [
        name
        for case, (name, said) in zip(chosen, problems.items(), strict=True)
        if "uses ONNX opset" in said and opset_of(case.model) > 23
    ]
    if one_of == 1 and len(chosen) == 1884:
        assert outcomes["right"] >= RIGHT
