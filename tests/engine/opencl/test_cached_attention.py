"""Attention over a cache, and rows picked by computed indices, against onnxruntime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.opencl.engine import OpenCLEngine
from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError
from heimdall.graph.graph import Zeros, graph_from_model

SMALL_GPU = Traits("gpu", 4, 8, 32)


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def engine(request):
    return OpenCLEngine(traits=SMALL_GPU if request.param == "gpu" else None)


def attention(rows, heads, groups, size, context, *, rotary, packed, interleaved=False):
    kv_heads = heads // groups
    wide, narrow = heads * size, kv_heads * size
    parts = {"q": wide, "k": narrow, "v": narrow}
    if packed:
        parts = {"q": wide + 2 * narrow}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, rows, width])
        for name, width in parts.items()
    ]
    cache = [1, kv_heads, context, size]
    inputs += [helper.make_tensor_value_info(n, TensorProto.FLOAT, cache) for n in ("pk", "pv")]
    inputs += [helper.make_tensor_value_info(n, TensorProto.INT32, [1]) for n in ("seen", "total")]
    tables, constants = [], []
    if rotary:
        angles = np.random.default_rng(1).random((context, size // 2)).astype(np.float32) * 6
        tables = ["cos", "sin"]
        constants = [
            numpy_helper.from_array(function(angles), name)
            for name, function in (("cos", np.cos), ("sin", np.sin))
        ]
    names = ["q", "", ""] if packed else ["q", "k", "v"]
    node = helper.make_node(
        "GroupQueryAttention",
        [*names, "pk", "pv", "seen", "total", *tables],
        ["y", "k2", "v2"],
        "attend",
        domain="com.microsoft",
        num_heads=heads,
        kv_num_heads=kv_heads,
        do_rotary=int(rotary),
        rotary_interleaved=int(interleaved),
    )
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("y", [1, rows, wide]), ("k2", cache), ("v2", cache))
    ]
    graph = helper.make_graph([node], "net", inputs, outputs, constants)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def ran(engine, model, inputs):
    network = engine.load(graph_from_model(model))
    assert not any(op.fallback for op in network.ops)
    return network.infer(network.new_state(), inputs)


def check(engine, model, filled, seed=0):
    """The outputs, and the rows of the cache that count."""
    random, inputs = np.random.default_rng(seed), {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = random.standard_normal(shape).astype(np.float32)
    rows = inputs["q"].shape[1]
    inputs["seen"] = np.array([filled + rows - 1], np.int32)
    inputs["total"] = np.array([filled + rows], np.int32)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = dict(zip(("y", "k2", "v2"), session.run(["y", "k2", "v2"], inputs), strict=True))
    found = ran(engine, model, inputs)
    np.testing.assert_allclose(found["y"], wanted["y"], atol=2e-5)
    for name in ("k2", "v2"):
        there = np.s_[:, :, : filled + rows]
        np.testing.assert_allclose(found[name][there], wanted[name][there], atol=2e-5)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_sizes(engine, data):
    draw = data.draw
    groups, size = draw(st.integers(1, 4)), draw(st.sampled_from([16, 32, 48, 64, 80]))
    heads, rows = groups * draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 5, 16]))
    context = draw(st.integers(rows + 1, 100))
    filled = draw(st.integers(0, context - rows))
    kinds = {"rotary": draw(st.booleans()), "packed": draw(st.booleans())}
    check(engine, attention(rows, heads, groups, size, context, **kinds), filled)


def test_pairs_that_are_neighbours(engine):
    model = attention(3, 4, 2, 16, 40, rotary=True, packed=False, interleaved=True)
    check(engine, model, filled=20)


def test_a_length_beyond_the_cache_stays_inside_it(engine):
    """Whatever is asked for, nothing outside is read or written."""
    model = attention(2, 2, 1, 16, 32, rotary=True, packed=False)
    inputs = {
        value.name: np.ones([d.dim_value for d in value.type.tensor_type.shape.dim], np.float32)
        for value in model.graph.input
    }
    for length in (-(2**30), 2**30):
        inputs |= {name: np.array([length], np.int32) for name in ("seen", "total")}
        assert np.isfinite(ran(engine, model, inputs)["y"]).all()


def table(rows, width, count):
    lines = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, count])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, count, width])
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["line"]),
        helper.make_node("Neg", ["line"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "net", [ids], [y], [numpy_helper.from_array(lines, "table")])
    imports = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8), lines


def test_rows_of_a_table(engine):
    model, lines = table(50, 24, 4)
    found = ran(engine, model, {"ids": np.array([[3, 49, -1, 0]])})["y"]
    np.testing.assert_array_equal(found, -lines[[3, 49, -1, 0]][None])


def test_rows_that_a_table_has_not_are_its_nearest(engine):
    model, lines = table(50, 24, 2)
    found = ran(engine, model, {"ids": np.array([[50, -(2**40)]])})["y"]
    np.testing.assert_array_equal(found, -lines[[49, 0]][None])


@pytest.mark.parametrize("what", ["a table", "a cache"])
def test_computed_indices_that_half_precision_rounds_are_refused(what):
    """They would be others: nobody would see it."""
    if what == "a table":
        (model, _), index = table(4000, 8, 2), "ids"
    else:
        model, index = attention(1, 2, 1, 8, 4000, rotary=False, packed=False), "seen"
    for node in model.graph.node:
        renamed = ["computed" if name == index else name for name in node.input]
        node.input[:] = renamed
    model.graph.node.insert(0, helper.make_node("Neg", [index], ["computed"], "turned"))
    half = OpenCLEngine(traits=replace(SMALL_GPU, storage="half"))
    with pytest.raises(ModelError, match=r"4000 lines are reached by .* precision='fp32'"):
        half.load(graph_from_model(model))


def test_a_cache_that_begins_with_zeros_shows_no_rows_of_the_last_conversation(engine):
    model = attention(1, 2, 1, 16, 32, rotary=False, packed=False)
    network = engine.load(graph_from_model(model))
    state = network.new_state()
    inputs: dict[str, Any] = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        inputs[value.name] = np.ones(shape, np.float32)
    inputs |= {"seen": np.array([20], np.int32), "total": np.array([21], np.int32)}
    network.infer(state, inputs)
    cache = (1, 2, 32, 16)
    inputs |= {name: Zeros(cache, np.dtype(np.float32)) for name in ("pk", "pv")}
    inputs |= {"seen": np.array([0], np.int32), "total": np.array([1], np.int32)}
    found = network.infer(state, inputs)
    for name in ("k2", "v2"):
        assert (found[name][:, :, :1] == 1).all()
        assert (found[name][:, :, 1:] == 0).all()
    network.close()
