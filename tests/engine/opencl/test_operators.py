"""Every operator against onnxruntime."""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from heimdall.engine.opencl.lowered import Transpose
from heimdall.engine.opencl.operators.context import TABLE, Operator

EXAMPLES = int(os.environ.get("HEIMDALL_EXAMPLES", "8"))
few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 8,  # kernels of the last run are in the cache
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
channels = st.sampled_from([1, 3, 16, 20, 35])
sides = st.integers(1, 13)
seeds = st.integers(0, 1000)


def node(op, inputs, outputs="y", **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def relu_first(*nodes):
    """A kernel in front, so that the op under test reads what a kernel has written."""
    return [node("Relu", "x", "a"), *nodes]


BINARY = ["Add", "Sub", "Mul", "Div", "Min", "Max"]
UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Exp", "Erf", "Floor", "Ceil", "Round"]
UNARY += ["Sin", "Cos", "Softplus", "Softsign", "HardSwish", "LeakyRelu", "Elu", "HardSigmoid"]


@pytest.mark.parametrize("op", UNARY)
def test_unary(check, build, op):
    check(build([node(op, "x")], {"x": (1, 19, 5, 7)}))


def test_the_error_function_near_zero_and_far_from_it(check, build):
    check(build([node("Erf", "x")], {"x": (3, 700)}), low=-6.0, high=6.0)
    check(build([node("Erf", "x")], {"x": (3, 70)}), low=-1e-4, high=1e-4)


@pytest.mark.parametrize("op", ["Sqrt", "Log", "Reciprocal"])
def test_unary_of_positive_numbers_keeps_padding_lanes_finite(check, build, op):
    kernel = np.random.default_rng(0).standard_normal((8, 19, 1, 1)).astype(np.float32)
    nodes = [node("Abs", "x", "a"), node(op, "a", "b"), node("Conv", "b k")]
    check(build(nodes, {"x": (1, 19, 5, 7)}, {"k": kernel}), low=0.5)


@few
@given(
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Min", "Max"]), channels, sides, sides, st.data()
)
def test_binary_broadcasts_pictures(check, build, op, c, h, w, data):
    full = (1, c, h, w)
    small = tuple(data.draw(st.sampled_from([1, size])) for size in full)
    nodes = [node("Relu", "x", "a"), node(op, "a z" if data.draw(st.booleans()) else "z a")]
    check(build(nodes, {"x": full, "z": small}), low=0.5)


@few
@given(
    st.sampled_from(["Add", "Mul", "Sub"]),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
    st.data(),
)
def test_binary_broadcasts_arrays(check, build, op, shape, data):
    rank = data.draw(st.integers(0, len(shape)))
    small = [data.draw(st.sampled_from([1, size])) for size in shape[len(shape) - rank :]]
    constant = np.random.default_rng(1).standard_normal(small).astype(np.float32)
    check(build([node(op, "x c")], {"x": shape}, {"c": constant}))


@few
@given(channels, sides, sides, st.sampled_from(["per channel", "scalar", "full"]))
def test_binary_with_constants(check, build, c, h, w, kind):
    shape = {"per channel": (1, c, 1, 1), "scalar": (), "full": (1, c, h, w)}[kind]
    constant = np.random.default_rng(2).uniform(0.5, 2, shape).astype(np.float32)
    nodes = relu_first(node("Div", "a c", "b"), node("Pow", "b two", "e"), node("Add", "e a"))
    check(build(nodes, {"x": (1, c, h, w)}, {"c": constant, "two": np.float32(2)}))


def test_pow_with_other_exponents(check, build):
    nodes = [node("Pow", "x p")]
    check(build(nodes, {"x": (1, 5, 4, 4)}, {"p": np.float32(1.7)}), low=0.1)


@pytest.mark.parametrize("opset", [9, 17])
def test_clip_and_prelu(check, build, opset):
    slopes = np.linspace(-1, 1, 20, dtype=np.float32).reshape(20, 1, 1)
    if opset == 9:
        clip = node("Clip", "x", "a", min=-0.5, max=1.5)
        constants = {"s": slopes}
    else:
        clip = node("Clip", "x lo hi", "a")
        constants = {"s": slopes, "lo": np.array(-0.5, "f"), "hi": np.array(1.5, "f")}
    check(build([clip, node("PRelu", "a s")], {"x": (1, 20, 3, 5)}, constants, opset=opset))


def test_clip_with_its_limits_the_wrong_way_round_gives_the_upper_one(check, build):
    limits = {"low": np.float32(1.5), "high": np.float32(-0.5)}
    check(build([node("Clip", "x low high")], {"x": (1, 5, 6, 7)}, limits))


def test_sum_of_three(check, build):
    shape = (1, 18, 4, 5)
    check(build([node("Sum", "a b c")], dict.fromkeys("abc", shape)))


@few
@given(
    st.sampled_from(["MaxPool", "AveragePool"]),
    channels,
    st.integers(5, 14),
    st.integers(5, 14),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 1),
    st.integers(0, 1),
    st.booleans(),
)
def test_pools(check, build, op, c, h, w, k, stride, pad, ceil, counted):
    # windows that start beyond the picture: ONNX and onnxruntime disagree on the output's size
    pad, stride = 0 if ceil else min(pad, k // 2), min(stride, k)
    extra = {"count_include_pad": 1} if op == "AveragePool" and counted and not ceil else {}
    pool = node(
        op, "a", kernel_shape=[k, k], strides=[stride] * 2, pads=[pad] * 4, ceil_mode=ceil, **extra
    )
    check(build(relu_first(pool), {"x": (1, c, h, w)}))


def test_max_pool_with_dilations_and_same_padding(check, build):
    dilated = node("MaxPool", "a", "b", kernel_shape=[2, 2], dilations=[2, 2])
    same = node("MaxPool", "b", kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    check(build(relu_first(dilated, same), {"x": (1, 20, 11, 12)}))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(1, 20, 1, 1), (1, 20, 5, 7), (1, 35, 60, 50)])
def test_global_pools(check, build, op, shape):
    check(build(relu_first(node(op, "a")), {"x": shape}))


@few
@given(
    st.sampled_from(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]),
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(0, 1),
    st.data(),
)
def test_reductions_over_any_axes(check, build, op, shape, keep, data):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    reduce = node(op, "a", axes=sorted(axes), keepdims=keep)
    check(build(relu_first(reduce), {"x": shape}, opset=11))


def test_reduce_with_axes_as_input(check, build):
    axes = np.array([2, 3], np.int64)
    check(build([node("ReduceSum", "x axes")], {"x": (1, 20, 6, 6)}, {"axes": axes}, opset=13))


def test_a_mean_of_each_channel_may_be_read_with_a_border(check, build):
    kernels = {"k": np.ones((40, 1, 3, 3), np.float32), "l": np.ones((40, 40, 1, 1), np.float32)}
    nodes = relu_first(
        node("GlobalAveragePool", "a", "m"),
        node("Conv", "m l", "z"),
        node("Conv", "m k", pads=[1, 1, 1, 1], group=40),
    )
    check(build(nodes, {"x": (1, 40, 5, 4)}, kernels, outputs=("y", "z")))


NEAREST = [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"),
           ("half_pixel", "round_prefer_ceil"), ("asymmetric", "ceil"),
           ("align_corners", "round_prefer_floor")]  # fmt: skip


@pytest.mark.parametrize(("where", "rounding"), NEAREST)
def test_nearest_resize(check, build, where, rounding):
    resize = node(
        "Resize",
        "a  s",
        mode="nearest",
        nearest_mode=rounding,
        coordinate_transformation_mode=where,
    )
    resize.input[:] = ["a", "", "s"]
    scales = np.array([1, 1, 2, 3], np.float32)
    check(build(relu_first(resize), {"x": (1, 20, 5, 4)}, {"s": scales}))


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(("h", "w"), [(0.6, 0.6), (1.2, 1.1), (0.3, 1.5), (2.4, 0.4)])
@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (1, 2, 4, 8), (2, 2, 10, 20)])
def test_resize_by_scales_whose_places_fall_between(check, build, mode, h, w, shape):
    """The last bit of a place decides which pixel is nearest; a size that stays is a copy."""
    resize = node("Resize", "x s", mode=mode)
    if mode == "nearest":
        resize.attribute.append(helper.make_attribute("nearest_mode", "floor"))
    resize.input[:] = ["x", "", "s"]
    check(build([resize], {"x": shape}, {"s": np.array([1, 1, h, w], np.float32)}))


@few
@given(
    st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
    channels,
    sides,
    sides,
    st.integers(1, 20),
    st.integers(1, 20),
)
def test_linear_resize(check, build, where, c, h, w, oh, ow):
    resize = node("Resize", "a", mode="linear", coordinate_transformation_mode=where)
    resize.input[:] = ["a", "", "", "s"]
    sizes = np.array([1, c, oh, ow], np.int64)
    check(build(relu_first(resize), {"x": (1, c, h, w)}, {"s": sizes}))


@few
@given(st.lists(st.sampled_from([1, 3, 8, 16, 20, 24, 32]), min_size=1, max_size=4), sides, sides)
def test_concat_of_channels(check, build, counts, h, w):
    inputs = {f"x{i}": (1, c, h, w) for i, c in enumerate(counts)}
    nodes = [node("Relu", name, f"r{i}") for i, name in enumerate(inputs)]
    names = " ".join(f"r{i}" for i in range(len(counts)))
    nodes += [node("Concat", names, "cat", axis=1), node("Neg", "cat"), node("Exp", "r0", "z")]
    check(build(nodes, inputs, outputs=("y", "z")))


def test_a_concat_read_by_a_padded_convolution(check, build):
    kernel = np.random.default_rng(3).standard_normal((6, 40, 3, 3)).astype(np.float32)
    nodes = [node("Relu", "x", "a"), node("Exp", "x", "b"), node("Concat", "a b a", "cat", axis=1),
             node("Conv", "cat k", pads=[1, 1, 1, 1])]  # fmt: skip
    shapes = {"x": (1, 16, 5, 6)}
    kernel = np.random.default_rng(3).standard_normal((6, 48, 3, 3)).astype(np.float32)
    check(build(nodes, shapes, {"k": kernel}))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat_of_arrays(check, build, axis):
    nodes = [node("Relu", "x", "a"), node("Concat", "a z c", "b", axis=axis), node("Neg", "b")]
    constant = np.ones((2, 3, 4), np.float32)
    check(build(nodes, {"x": (2, 3, 4), "z": (2, 3, 4)}, {"c": constant}))


@few
@given(st.integers(1, 40), st.integers(1, 40), sides)
def test_split_of_channels(check, build, first, second, side):
    split = node("Split", "a s", "b c", axis=1)
    nodes = relu_first(split, node("Neg", "b"), node("Exp", "c", "z"))
    sizes = np.array([first, second], np.int64)
    shapes = {"x": (1, first + second, side, 3)}
    check(build(nodes, shapes, {"s": sizes}, outputs=("y", "z")))


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([2], [9], [1], [1]),
        ([16], [20], [1], [1]),
        ([1, 0], [6, 5], [2, 3], [2, 1]),
        ([5], [-9], [3], [-2]),
        ([0], [20], [1], [3]),
        ([3, 1], [20, 4], [1, 2], [1, 1]),
    ],
)
def test_slices(check, build, starts, ends, axes, steps):
    lists = zip("sexp", (starts, ends, axes, steps), strict=True)
    constants = {name: np.array(values, np.int64) for name, values in lists}
    nodes = [node("Relu", "i", "a"), node("Slice", "a s e x p", "b"), node("Neg", "b")]
    check(build(nodes, {"i": (1, 20, 6, 7)}, constants))


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("reader", ["Conv", "Neg"])
def test_pads(check, build, mode, reader):
    pads = np.array([0, 0, 2, 1, 0, 0, 3, 2], np.int64)
    kernel = np.random.default_rng(4).standard_normal((5, 20, 3, 3)).astype(np.float32)
    last = node("Conv", "b k") if reader == "Conv" else node("Neg", "b")
    nodes = relu_first(node("Pad", "a p", "b", mode=mode), last, node("Exp", "a", "z"))
    shapes, constants = {"x": (1, 20, 6, 7)}, {"p": pads, "k": kernel}
    check(build(nodes, shapes, constants, outputs=("y", "z")))


def test_a_tensor_with_zero_padded_and_reflected_readers(check, build):
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    kernel = np.random.default_rng(5).standard_normal((5, 20, 3, 3)).astype(np.float32)
    nodes = relu_first(
        node("Pad", "a p", "b", mode="reflect"),
        node("Conv", "b k", "c"),
        node("Conv", "a k", "d", pads=[1, 1, 1, 1]),
        node("Add", "c d"),
    )
    check(build(nodes, {"x": (1, 20, 6, 7)}, {"p": pads, "k": kernel}))


@pytest.mark.parametrize(("before", "after", "count"), [(0, 16, 16), (0, 5, 20), (3, 2, 17)])
def test_pads_of_channels(check, build, before, after, count):
    pads = np.array([0, before, 0, 1, 0, after, 0, 0], np.int64)
    nodes = relu_first(node("Pad", "a p", "b"), node("Neg", "b"))
    check(build(nodes, {"x": (1, count, 4, 4)}, {"p": pads}))


def test_pad_with_a_value(check, build):
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    kernel = np.random.default_rng(6).standard_normal((5, 20, 3, 3)).astype(np.float32)
    nodes = relu_first(node("Pad", "a p v", "b"), node("Conv", "b k"))
    constants = {"p": pads, "v": np.float32(1.5), "k": kernel}
    check(build(nodes, {"x": (1, 20, 6, 7)}, constants))


@few
@given(st.permutations(range(4)), channels, sides)
def test_transposes_between_kernels(check, build, perm, c, side):
    nodes = relu_first(node("Transpose", "a", "b", perm=perm), node("Exp", "b"))
    check(build(nodes, {"x": (1, c, side, 3)}))


def test_channel_shuffle(check, build):
    nodes = relu_first(
        node("Reshape", "a s5", "b"),
        node("Transpose", "b", "c", perm=[0, 2, 1, 3, 4]),
        node("Reshape", "c s4", "d"),
        node("Neg", "d"),
    )
    shapes = {"s5": np.array([1, 3, 8, 5, 5]), "s4": np.array([1, 24, 5, 5])}
    check(build(nodes, {"x": (1, 24, 5, 5)}, shapes))


def test_nhwc_edges_cost_no_op(check, build):
    kernel = np.random.default_rng(7).standard_normal((20, 3, 3, 3)).astype(np.float32)
    nodes = [
        node("Transpose", "x", "a", perm=[0, 3, 1, 2]),
        node("Conv", "a k", "b", pads=[1, 1, 1, 1]),
        node("Transpose", "b", "c", perm=[0, 2, 3, 1]),
        node("Reshape", "c s"),
    ]
    constants = {"k": kernel, "s": np.array([1, -1, 20])}
    assert len(check(build(nodes, {"x": (1, 8, 9, 3)}, constants)).ops) == 1


@few
@given(
    st.sampled_from(["Softmax", "LogSoftmax"]),
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.data(),
)
def test_softmax(check, build, op, shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    check(build(relu_first(node(op, "a", axis=axis)), {"x": shape}))


@few
@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 40), st.booleans())
def test_gemm_and_what_follows(check, build, rows, depth, columns, transposed):
    random = np.random.default_rng(8)
    shape = (columns, depth) if transposed else (depth, columns)
    constants = {
        "w": random.standard_normal(shape).astype(np.float32),
        "b": random.standard_normal(columns).astype(np.float32),
    }
    gemm = node("Gemm", "x w b", "g", transB=int(transposed))
    check(build([gemm, node("Relu", "g")], {"x": (rows, depth)}, constants))


def test_a_classifier_head(check, build):
    random = np.random.default_rng(9)
    constants = {
        "w1": random.standard_normal((20 * 12, 33)).astype(np.float32),
        "w2": random.standard_normal((33, 5)).astype(np.float32),
    }
    nodes = relu_first(
        node("Flatten", "a", "f"),
        node("Gemm", "f w1", "g"),
        node("Relu", "g", "h"),
        node("MatMul", "h w2", "i"),
        node("Softmax", "i"),
    )
    check(build(nodes, {"x": (1, 20, 3, 4)}, constants))


def test_product_of_two_computed_matrices(check, build):
    check(build([node("MatMul", "a b")], {"a": (2, 3, 5, 4), "b": (2, 3, 4, 6)}))


def test_batch_norm_that_nothing_absorbs(check, build):
    random = np.random.default_rng(10)
    arrays = {name: random.uniform(0.5, 2, 20).astype(np.float32) for name in "sbmv"}
    norm = node("BatchNormalization", "a s b m v", "n")
    check(build(relu_first(norm, node("Relu", "n")), {"x": (1, 20, 4, 5)}, arrays))


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_instance_norm_survives_a_large_mean(check, build, offset):
    arrays = {
        "s": np.linspace(0.5, 2, 20, dtype=np.float32),
        "b": np.linspace(-1, 1, 20, dtype=np.float32),
        "o": np.float32(offset),
    }
    nodes = [node("Add", "x o", "a"), node("InstanceNormalization", "a s b", "n")]
    check(build([*nodes, node("Relu", "n")], {"x": (1, 20, 40, 37)}, arrays))


def test_lrn(check, build):
    lrn = node("LRN", "a", size=5, alpha=0.1, beta=0.75, bias=1.0)
    check(build(relu_first(lrn), {"x": (1, 20, 4, 5)}))


def test_unknown_operators_fall_back_and_the_rest_does_not(check, build):
    nodes = relu_first(node("Det", "a", "b"), node("Exp", "b"))
    check(build(nodes, {"x": (1, 20, 3, 3)}), fallbacks=1)


def test_consecutive_fallbacks_are_one_op(check, build):
    nodes = [node("Det", "x", "a"), node("Det", "a", "b"), node("Neg", "b")]
    check(build(nodes, {"x": (5, 3, 3, 2, 2)}), fallbacks=1)


def test_indices_from_a_kernel_are_integers_to_fallback_ops(check, build):
    nodes = relu_first(
        node("ArgMax", "a", "i", axis=1, keepdims=0),
        node("OneHot", "i depth values", "h"),
        node("Neg", "h"),
    )
    constants = {"depth": np.int64(20), "values": np.array([0, 1], np.float32)}
    check(build(nodes, {"x": (1, 20, 4, 5)}, constants), fallbacks=1)


def test_fallback_ops_read_what_reshapes_leave_as_it_was(check, build):
    nodes = [node("Neg", "x", "a"), node("Reshape", "a flat", "b"), node("Exp", "b", "c"),
             node("Reshape", "c full", "d"), node("TopK", "d three", "y i")]  # fmt: skip
    shapes = {"flat": np.array([6]), "full": np.array([2, 3]), "three": np.array([3])}
    check(build(nodes, {"x": (2, 3)}, shapes), fallbacks=1)


@pytest.mark.parametrize("op", ["Identity", "Transpose", "Flatten"])
def test_a_network_that_only_moves_data_has_an_op_to_schedule(check, build, op):
    assert len(check(build([node(op, "x")], {"x": (2, 3)})).ops) == 1


def test_images_of_a_batch_are_convolved_one_by_one(check, build):
    kernel = np.ones((4, 3, 3, 3), np.float32)
    check(build([node("Conv", "x k")], {"x": (2, 3, 6, 6)}, {"k": kernel}))


def test_shapes_without_elements_in_common(check, build):
    check(build([node("Add", "x c")], {"x": (math.prod([2, 3]),)}, {"c": np.float32(1)}))


@pytest.mark.parametrize(
    ("error", "said"), [(ValueError("no such axis"), "no such axis"), (None, "does not make")]
)
def test_a_lowering_that_fails_falls_back_and_says_so(
    engine, build, shared, monkeypatch, caplog, error, said
):
    """``error``: None for ops that do not fit the tensors of the node."""
    graph = build([node("Tanh", "x", "a"), node("Erf", "a")], {"x": (1, 2, 3, 3)})

    def fail(context):
        if error is not None:
            raise error
        return [replace(context.op(Transpose((0, 2, 1)), "a"))]

    monkeypatch.setitem(TABLE, "Erf", Operator(fail, False))
    network = engine.load(replace(graph, sha256=f"broken {said}"))
    assert [op.fallback for op in network.ops] == [False, True]
    assert "'Erf" in caplog.text
    assert said in caplog.text
    inputs = {"x": np.linspace(-1, 1, 18, dtype=np.float32).reshape(1, 2, 3, 3)}
    found = shared.run(network, network.new_state(), inputs)["y"]
    np.testing.assert_allclose(found, shared.reference(graph, inputs)["y"], atol=1e-6)


def test_what_is_no_error_of_numbers_is_not_taken_for_one(engine, build, monkeypatch):
    def fail(context):
        raise AttributeError("a slip")

    monkeypatch.setitem(TABLE, "Erf", Operator(fail, False))
    graph = build([node("Erf", "x")], {"x": (1, 2, 3, 3)})
    with pytest.raises(AttributeError, match="a slip"):
        engine.load(replace(graph, sha256="slip"))


@pytest.mark.parametrize("shape", [(1,), (), (3, 1, 1), (8,), (1, 1), (3, 8, 8)])
@pytest.mark.parametrize("op", ["Add", "Mul", "Max"])
def test_an_input_that_is_no_picture_meets_one(check, build, op, shape):
    check(build([node(op, "x t")], {"x": (1, 3, 8, 8), "t": shape}))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", ((3, 1), (4, 5))),
        ("ij,jk->ik", ((3, 4), (1, 5))),
        ("bij,bkj->bik", ((2, 3, 1), (2, 4, 5))),
    ],
)
def test_a_size_of_one_in_an_einsum_broadcasts(check, build, equation, shapes):
    inputs = dict(zip("xz", shapes, strict=True))
    check(build([node("Einsum", "x z", equation=equation)], inputs))
