"""Operators over arrays of any rank, drawn as in test_drawn: here nothing may fall back."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from heimdall.engine.opencl.launch import Traits
from heimdall.errors import ModelError

EXAMPLES = int(os.environ.get("HEIMDALL_EXAMPLES", "6"))
drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 6,
    suppress_health_check=list(HealthCheck),
)
sides = st.integers(1, 7)
flags = st.booleans()
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@pytest.fixture(scope="module", params=["this device", "a GPU"])
def processor(request, engine_for):
    """Both families of kernels."""
    return engine_for(None if request.param == "this device" else Traits("gpu", 4))


@pytest.fixture
def native(processor, build, shared):
    """native(nodes, shapes, constants): no fallback op, and onnxruntime's results."""

    def check(nodes, inputs, constants=None, opset=17, outputs=("y",), low=-2.0):
        before = [helper.make_node("Neg", [name], [f"{name}_"]) for name in inputs]
        for node in nodes:
            node.input[:] = [f"{name}_" if name in inputs else name for name in node.input]
        try:
            graph = build([*before, *nodes], inputs, constants, outputs, opset)
            random = np.random.default_rng(len(nodes))
            given = {
                tensor.name: np.asarray(-random.uniform(low, 2.0, tensor.shape), np.float32)
                for tensor in graph.inputs
            }
            wanted = shared.reference(graph, given)
        except (KeyError, ModelError):
            assume(False)  # drawn values that no shape or kernel of onnxruntime fits
        network = processor.load(graph)
        assert not any(op.fallback for op in network.ops)
        state = network.new_state()
        for _ in range(2):
            found = shared.run(network, state, given)
            for name, value in wanted.items():
                assert found[name].dtype == value.dtype
                np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
        network.close()

    return check


def node(op, inputs, outputs="y", **attributes):
    kept = {key: value for key, value in attributes.items() if value is not None}
    return helper.make_node(op, inputs.split(","), outputs.split(), **kept)


def ints(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


UNARY = ["Sign", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Atanh", "Celu", "Selu"]
UNARY += ["Mish", "ThresholdedRelu", "Shrink"]


@pytest.mark.parametrize("op", UNARY)
def test_functions_of_one_value(native, op):
    within = [node("Mul", "x,s", "a"), node(op, "a")]  # arc functions are of -1 to 1
    native(within, {"x": (1, 19, 3, 5)}, {"s": np.float32(0.45)}, opset=18)


def test_functions_of_one_value_with_attributes(native):
    nodes = [
        node("Celu", "x", "a", alpha=0.5),
        node("Selu", "x", "b", alpha=1.2, gamma=0.7),
        node("ThresholdedRelu", "x", "c", alpha=0.3),
        node("Shrink", "x", "d", lambd=0.4, bias=0.2),
        node("Gelu", "x", "e", approximate="tanh"),
        node("Gelu", "x", "f"),
        node("Mean", "a,b,c,d,e,f"),
    ]
    native(nodes, {"x": (2, 3, 5)}, opset=20)


def test_arcs_of_large_numbers(native):
    native([node("Acosh", "x")], {"x": (3, 4)}, low=1.5)


@drawn
@given(shapes, st.sampled_from(["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]))
def test_comparisons_choose(native, shape, op):
    """Truth values inside a network, and as its results."""
    nodes = [
        node("Round", "x", "a"),
        node("Round", "z", "b"),
        node(op, "a,b", "c"),
        node("Less", "x,half", "d"),
        node("Not", "d", "e"),
        node("And", "c,d", "f"),
        node("Or", "c,e", "g"),
        node("Xor", "f,g", "h"),
        node("Where", "h,x,z", "y"),
        node("Cast", "c", "i", to=1),
        node("Neg", "i", "w"),
    ]
    inputs = {"x": shape, "z": shape[-1:]}
    native(nodes, inputs, {"half": np.float32(0.5)}, outputs=("y", "w", "g", "e"))


def test_limits_that_are_computed(native):
    nodes = [node("ReduceMean", "x", "m", keepdims=0), node("Clip", "x,,m")]
    native(nodes, {"x": (1, 5, 4, 4)})


@drawn
@given(shapes, st.sampled_from(["ArgMax", "ArgMin"]), flags, flags, st.data())
def test_places_of_extremes(native, shape, op, keep, last, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    nodes = [
        node("Round", "x", "a"),  # so that some are equal
        node(op, "a", "i", axis=axis, keepdims=int(keep), select_last_index=int(last)),
        node("Cast", "i", "y", to=1),
    ]
    native(nodes, {"x": shape}, outputs=("y", "i"))


@drawn
@given(shapes, flags, flags, st.data())
def test_running_sums(native, shape, exclusive, reverse, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    scan = node("CumSum", "x,a", exclusive=int(exclusive), reverse=int(reverse))
    native([scan], {"x": shape}, {"a": np.int64(axis)})


@drawn
@given(shapes, st.sampled_from([9, 11, 13]), st.data())
def test_hardmax(native, shape, opset, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    native([node("Hardmax", "x", axis=axis)], {"x": shape}, opset=opset)


@drawn
@given(shapes, st.data())
def test_gathers(native, shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    index = st.integers(-shape[axis], shape[axis] - 1)
    several = np.array(data.draw(st.lists(index, min_size=2, max_size=6)))
    along = [*shape[:axis], 3, *shape[axis + 1 :]]
    elements = np.random.default_rng(0).integers(-shape[axis], shape[axis], along)
    front = np.random.default_rng(1).integers(0, 1, (4, 1))
    constants = {"i": several.reshape(-1, 1), "e": elements, "n": front, "o": np.int64(-1)}
    nodes = [
        node("Gather", "x,i", "y", axis=axis),
        node("GatherElements", "x,e", "w", axis=axis),
        node("GatherND", "x,n", "v"),
        node("Gather", "x,o", "u", axis=axis),
    ]
    native(nodes, {"x": shape}, constants, outputs=("y", "w", "v", "u"))


@drawn
@given(shapes, st.data())
def test_scatters(native, shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, shape[axis]))
    order = np.random.default_rng(0).permutation(shape[axis])[:count]
    along = [1] * len(shape)
    along[axis] = count
    part = [*shape[:axis], count, *shape[axis + 1 :]]
    constants = {"i": np.broadcast_to(order.reshape(along), part).copy(), "n": ints(0)[None]}
    nodes = [
        node("ScatterElements", "x,i,u", "a", axis=axis),
        node("ScatterND", "a,n,z"),
    ]
    native(nodes, {"x": shape, "u": part, "z": [1, *shape[1:]]}, constants)


@drawn
@given(shapes, st.data())
def test_tiles_and_triangles(native, shape, data):
    repeats = ints(*(data.draw(st.integers(1, 3)) for _ in shape))
    k = data.draw(st.integers(-2, 2))
    nodes = [
        node("Tile", "x,r", "a"),
        node("Unsqueeze", "a,o", "b"),
        node("Trilu", "b,k", upper=int(data.draw(flags))),
    ]
    native(nodes, {"x": shape}, {"r": repeats, "o": ints(0), "k": np.int64(k)})


@drawn
@given(shapes, st.sampled_from(["constant", "edge", "reflect", "wrap"]), st.data())
def test_pads_of_any_axis(native, shape, mode, data):
    most = [max(0, size - 1) if mode != "constant" else 3 for size in shape]
    spread = [data.draw(st.integers(0, limit)) for limit in most * 2]
    constants = {"p": ints(*spread), "v": np.float32(1.5)}
    inputs = "x,p,v" if mode == "constant" else "x,p"
    native([node("Pad", inputs, mode=mode)], {"x": shape}, constants, opset=19)


RESIZED = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]


@drawn
@given(
    st.lists(st.integers(1, 5), min_size=3, max_size=3),
    st.sampled_from(RESIZED),
    st.sampled_from(["nearest", "linear", "cubic"]),
    flags,
    st.data(),
)
def test_resizes(native, shape, where, mode, exclude, data):
    if mode == "cubic":
        shape = [1, 2, *shape[1:]]
    front = len(shape) - 2 if mode != "nearest" else 0
    wanted = [*shape[:front], *(data.draw(st.integers(1, 8)) for _ in shape[front:])]
    assume(where != "pytorch_half_pixel" or mode != "cubic")
    resize = node(
        "Resize", "x,,,s", mode=mode, coordinate_transformation_mode=where,
        exclude_outside=int(exclude and mode == "cubic"),
    )  # fmt: skip
    native([resize], {"x": shape}, {"s": ints(*wanted)})


@drawn
@given(
    st.integers(1, 3), st.integers(1, 3), st.lists(sides, min_size=1, max_size=3),
    st.sampled_from(["MaxPool", "AveragePool", "LpPool"]), flags, flags, st.data(),
)  # fmt: skip
def test_pools_of_any_rank(native, n, c, size, op, counted, ceil, data):
    kernel = [data.draw(st.integers(1, each)) for each in size]
    strides = [data.draw(st.integers(1, each)) for each in kernel]
    pads = [data.draw(st.integers(0, each - 1)) for each in kernel * 2]
    if ceil:  # windows that start beyond the picture: sizes differ between ONNX and onnxruntime
        pads = [0] * len(pads)
    extra = {"count_include_pad": int(counted)} if op == "AveragePool" else {}
    pool = node(
        op, "x", kernel_shape=kernel, strides=strides, pads=pads,
        ceil_mode=int(ceil) if op != "LpPool" else None, **extra,
    )  # fmt: skip
    native([pool], {"x": (n, c, *size)})


@drawn
@given(
    st.integers(1, 3), st.sampled_from([1, 2]), st.lists(sides, min_size=1, max_size=3),
    flags, flags, flags, st.data(),
)  # fmt: skip
def test_convolutions_of_any_rank(native, n, groups, size, transposed, known, biased, data):
    kernel = [data.draw(st.integers(1, min(each, 3))) for each in size]
    strides = [data.draw(st.integers(1, 2)) for _ in size]
    dilations = [data.draw(st.integers(1, 2)) if each > 4 else 1 for each in size]
    pads = [data.draw(st.integers(0, each - 1)) for each in kernel * 2]
    weights = (2 * groups, 3, *kernel) if transposed else (3 * groups, 2, *kernel)
    constants, shapes = {}, {"x": (n, 2 * groups, *size)}
    if known:
        constants["w"] = floats(*weights)
    else:
        shapes["w"] = weights
    if biased:
        constants["b"] = floats(3 * groups)
    conv = node(
        "ConvTranspose" if transposed else "Conv", "x,w,b" if biased else "x,w",
        strides=strides, dilations=dilations, pads=pads, group=groups,
    )  # fmt: skip
    native([conv], shapes, constants)


@drawn
@given(st.integers(1, 3), st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_norms(native, n, size, data):
    rank = len(size) + 2
    axis = data.draw(st.integers(1, rank - 1))
    shape = [n, 4, *size]
    constants = {"s": floats(4), "b": floats(4), "t": floats(*shape[axis:])}
    nodes = [
        node("InstanceNormalization", "x,s,b", "i"),
        node("LayerNormalization", "x,t", "l", axis=axis),
        node("LpNormalization", "x", "p", axis=data.draw(st.integers(0, rank - 1)), p=2),
        node("MeanVarianceNormalization", "x", "m", axes=[0, *range(2, rank)]),
        node("Sum", "i,l,p,m"),
    ]
    native(nodes, {"x": shape}, constants, opset=21)


@drawn
@given(shapes, st.sampled_from(["L1", "L2", "SumSquare", "LogSumExp", "LogSum"]), flags, st.data())
def test_sums_of_functions(native, shape, kind, keep, data):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    reduce = node(f"Reduce{kind}", "a,r", keepdims=int(keep))
    native([node("Abs", "x", "a"), reduce], {"x": shape}, {"r": ints(*axes)}, opset=18)


@drawn
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.data())
def test_products(native, rows, depth, columns, data):
    equation = data.draw(st.sampled_from(["bik,bkj->bij", "bik,bjk->bji", "bik,k->bi", "bik->kib"]))
    second: dict[str, tuple[int, ...]] = {
        "bik,bkj->bij": (2, depth, columns),
        "bik,bjk->bji": (2, columns, depth),
        "bik,k->bi": (depth,),
    }
    inputs: dict[str, tuple[int, ...]] = {"x": (2, rows, depth)}
    if equation in second:
        inputs["z"] = second[equation]
    nodes = [node("Einsum", ",".join(inputs), equation=equation)]
    native(nodes, inputs)


@drawn
@given(flags, flags, st.sampled_from([(), (1,), (3,), (4, 1), (4, 3)]))
def test_gemm_of_two_computed_matrices(native, first, second, addend):
    gemm = node("Gemm", "x,z,c", transA=int(first), transB=int(second), alpha=0.5, beta=2.0)
    shapes = {"x": (5, 4) if first else (4, 5), "z": (3, 5) if second else (5, 3)}
    native([gemm], {**shapes, "c": addend})


@drawn
@given(
    st.integers(1, 2), st.lists(st.integers(2, 5), min_size=2, max_size=3),
    st.sampled_from(["linear", "nearest", "cubic"]),
    st.sampled_from(["zeros", "border", "reflection"]), flags,
)  # fmt: skip
def test_grid_samples(native, n, size, mode, padding, align):
    assume(mode != "cubic" or len(size) == 2)
    sample = node("GridSample", "x,z", mode=mode, padding_mode=padding, align_corners=int(align))
    native([sample], {"x": (n, 2, *size), "z": (n, *[3] * len(size), len(size))}, opset=20)


@drawn
@given(st.integers(1, 2), st.sampled_from([1, 3]), flags, flags, flags, flags)
def test_attention(native, batch, repeats, flat, masked, causal, capped):
    heads, rows, columns, size = 2, 3, 5, 4
    shapes: dict[str, tuple[int, ...]] = {
        "x": (batch, rows, heads * repeats * size)
        if flat
        else (batch, heads * repeats, rows, size),
        "k": (batch, columns, heads * size) if flat else (batch, heads, columns, size),
        "v": (batch, columns, heads * 6) if flat else (batch, heads, columns, 6),
    }
    if masked:
        shapes["m"] = (rows, columns)
    counts = {"q_num_heads": heads * repeats, "kv_num_heads": heads} if flat else {}
    attend = node(
        "Attention", ",".join(shapes),
        is_causal=int(causal), softcap=1.5 if capped else None, **counts,
    )  # fmt: skip
    native([attend], shapes, opset=23)


@drawn
@given(st.integers(1, 2), flags, flags, st.sampled_from([0, 4]), flags)
def test_rotary_embeddings(native, batch, flat, apart, turned, placed):
    heads, length, size = 2, 3, 8
    half = (turned or size) // 2
    table = (9, half) if placed else (batch, length, half)
    constants = {"c": floats(*table), "s": floats(*table)}
    if placed:
        constants["p"] = np.arange(batch * length).reshape(batch, length)
    rotate = node(
        "RotaryEmbedding", ",".join(["x", *constants]), interleaved=int(apart),
        rotary_embedding_dim=turned or None, num_heads=heads if flat or turned else None,
    )  # fmt: skip
    shape = (batch, length, heads * size) if flat else (batch, heads, length, size)
    native([rotate], {"x": shape}, constants, opset=23)
