"""Every operator over drawn attributes, shapes and opsets, against onnxruntime.

What the kernels do not cover falls back, and must be right too: only results are compared here.
``HEIMDALL_EXAMPLES=500`` searches longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from heimdall.errors import ModelError
from tests.engine.opencl.drawn import floats, ints, negated, node, search

drawn = search(10)
channels = st.sampled_from([1, 2, 3, 8, 16, 20, 33])
sides = st.integers(1, 12)
opsets = st.integers(9, 23)
flags = st.booleans()
batches = st.sampled_from([1, 1, 1, 2])


@pytest.fixture
def agrees(processor, build, shared):
    """agrees(nodes, shapes, constants, opset): twice on one state, then op by op."""

    def check(nodes, shapes, constants=None, opset=17, outputs=("y",), low=-2.0):
        try:
            graph = build(negated(nodes, shapes), shapes, constants, outputs, opset)
        except (KeyError, ModelError):
            assume(False)  # drawn values that no shape or kernel of onnxruntime fits
        network = processor.load(graph)
        state = network.new_state()
        random = np.random.default_rng(len(nodes))
        for _ in range(2):
            inputs = {
                tensor.name: -random.uniform(low, 2.0, tensor.shape).astype(np.float32)
                for tensor in graph.inputs
            }
            try:
                wanted = shared.reference(graph, inputs)
            except Exception:  # onnxruntime finds out about some attributes when it runs
                assume(False)
            try:
                whole = shared.run(network, state, inputs)
            except ModelError as error:  # onnxruntime's sizes are not those of the file
                assume("was inferred" not in str(error))
                raise
            _assert_close(whole, wanted)
        single = shared.run(network, state, inputs, range(len(network.ops)))
        for name, value in whole.items():
            np.testing.assert_array_equal(single[name], value)
        network.close()

    return check


def _assert_close(found, wanted):
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype
        finite = np.abs(value[np.isfinite(value)]).max(initial=1e-6)
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4 * float(finite))


def windows(data, largest=4, dilations=True):
    """Drawn attributes of a sliding window."""
    pair = st.lists(st.integers(1, largest), min_size=2, max_size=2)
    kernel, strides = data.draw(pair), data.draw(pair)
    dilation = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=2)) if dilations else None
    mode = data.draw(st.sampled_from(["NOTSET"] * 4 + ["SAME_UPPER", "SAME_LOWER", "VALID"]))
    pads = None
    if mode == "NOTSET":
        limits = [*kernel, *kernel]
        pads = [data.draw(st.integers(0, max(0, limit - 1))) for limit in limits]
    return {
        "kernel_shape": kernel, "strides": strides, "dilations": dilation, "auto_pad": mode,
        "pads": pads,
    }  # fmt: skip


@drawn
@given(batches, channels, sides, sides, opsets, st.data())
def test_pools(agrees, n, c, h, w, opset, data):
    op = data.draw(st.sampled_from(["MaxPool", "AveragePool"]))
    attributes = windows(data, dilations=opset >= (10 if op == "MaxPool" else 19))
    if attributes["auto_pad"].startswith("SAME"):
        attributes["dilations"] = None  # onnxruntime pads for a kernel that is not dilated
    if opset >= 10:
        attributes["ceil_mode"] = int(data.draw(flags))
    if op == "AveragePool":
        attributes["count_include_pad"] = int(data.draw(flags))
    agrees([node(op, "x", **attributes)], {"x": (n, c, h, w)}, opset=opset)


@drawn
@given(batches, st.sampled_from([1, 2, 3]), sides, sides, st.data())
def test_convolutions(agrees, n, groups, h, w, data):
    per_in, per_out = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    attributes = windows(data) | {"group": groups}
    transposed = data.draw(flags)
    shape = (groups * per_in, per_out) if transposed else (groups * per_out, per_in)
    if transposed and attributes["auto_pad"] == "NOTSET":
        attributes["output_padding"] = [
            data.draw(st.integers(0, max(stride, dilation) - 1))
            for stride, dilation in zip(attributes["strides"], attributes["dilations"], strict=True)
        ]
    constants = {"k": floats(*shape, *attributes["kernel_shape"]), "b": floats(groups * per_out)}
    inputs = "x,k,b" if data.draw(flags) else "x,k"
    last = data.draw(st.sampled_from(["Relu", "Sigmoid", "HardSwish", "Abs", "Tanh"]))
    op = "ConvTranspose" if transposed else "Conv"
    nodes = [node(op, inputs, "c", **attributes), node(last, "c")]
    agrees(nodes, {"x": (n, groups * per_in, h, w)}, constants)


@drawn
@given(st.sampled_from([1, 3]), sides, st.data())
def test_convolutions_of_other_ranks(agrees, rank, side, data):
    kernel = data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    constants = {"k": floats(5, 4, *kernel)}
    agrees([node("Conv", "x,k")], {"x": (1, 4, *[side] * rank)}, constants)


COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
COORDINATES += ["tf_crop_and_resize", "half_pixel_symmetric"]


@drawn
@given(batches, channels, sides, sides, st.integers(10, 23), st.data())
def test_resizes(agrees, n, c, h, w, opset, data):
    mode = data.draw(st.sampled_from(["nearest", "linear", "nearest", "linear", "cubic"]))
    if opset == 10:
        scales = [1, 1, *(data.draw(st.sampled_from([0.5, 1, 1.5, 2, 3])) for _ in "hw")]
        constants = {"s": np.array(scales, np.float32)}
        agrees([node("Resize", "x,s", mode=mode)], {"x": (n, c, h, w)}, constants, opset)
        return
    where = data.draw(st.sampled_from(COORDINATES if opset >= 19 else COORDINATES[:-1]))
    rounding = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": where,
        "nearest_mode": data.draw(st.sampled_from(rounding)),
    }
    if opset >= 18 and data.draw(flags):
        attributes["antialias"] = int(mode != "nearest")
    constants = {"r": np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 0.8], np.float32)}
    if data.draw(flags):
        scale = st.sampled_from([0.375, 0.5, 0.7, 1, 1.25, 2, 2.5, 3])
        constants["s"] = np.array([1, 1, data.draw(scale), data.draw(scale)], np.float32)
        inputs = "x,r,s"
    else:
        constants["z"] = ints(n, c, data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20)))
        inputs = "x,r,,z"
    agrees([node("Resize", inputs, **attributes)], {"x": (n, c, h, w)}, constants, opset)


@drawn
@given(channels, sides, sides, st.data())
def test_upsample(agrees, c, h, w, data):
    scales = [1, 1, data.draw(st.sampled_from([1, 1.5, 2])), data.draw(st.sampled_from([1, 2, 3]))]
    mode = data.draw(st.sampled_from(["nearest", "linear"]))
    constants = {"s": np.array(scales, np.float32)}
    agrees([node("Upsample", "x,s", mode=mode)], {"x": (1, c, h, w)}, constants, opset=9)


@drawn
@given(batches, channels, sides, sides, opsets, st.data())
def test_pads(agrees, n, c, h, w, opset, data):
    mode = data.draw(st.sampled_from(["constant", "reflect", "edge"]))
    limits = [1, 3, min(h - 1, 3), min(w - 1, 3)]
    if mode != "constant":
        limits[:2] = [data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))]
    low = -1 if data.draw(flags) and min(h, w) > 2 else 0
    spread = [data.draw(st.integers(low if i % 4 > 1 else 0, limits[i % 4])) for i in range(8)]
    if opset < 11:
        agrees([node("Pad", "x", mode=mode, pads=spread)], {"x": (n, c, h, w)}, opset=opset)
        return
    constants = {"p": ints(*spread), "v": np.float32(data.draw(st.sampled_from([0.0, 1.5])))}
    inputs = "x,p,v" if mode == "constant" else "x,p"
    if opset >= 18 and data.draw(flags):
        constants |= {"p": ints(*spread[2:4], *spread[6:8]), "a": ints(-2, 3)}
        inputs = "x,p,v,a"
    agrees([node("Pad", inputs, mode=mode)], {"x": (n, c, h, w)}, constants, opset)


shapes_of_any_rank = st.lists(st.integers(1, 5), min_size=1, max_size=5)


@drawn
@given(shapes_of_any_rank, opsets, st.data())
def test_slices(agrees, shape, opset, data):
    count = data.draw(st.integers(1, len(shape)))
    axes = data.draw(st.permutations(range(len(shape))))[:count]
    starts = [data.draw(st.integers(-7, 7)) for _ in axes]
    ends = [data.draw(st.sampled_from([-7, -1, 1, 3, 2**40, -(2**40)])) for _ in axes]
    if opset < 10:
        cut = node("Slice", "x", starts=starts, ends=ends, axes=axes)
        agrees([cut], {"x": shape}, opset=opset)
        return
    steps = [data.draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in axes]
    signed = [axis - len(shape) if data.draw(flags) else axis for axis in axes]
    names = dict(zip("seap", (starts, ends, signed, steps), strict=True))
    constants = {name: ints(*values) for name, values in names.items()}
    agrees([node("Slice", "x,s,e,a,p")], {"x": shape}, constants, opset)


@drawn
@given(shapes_of_any_rank, st.data())
def test_concat_and_split(agrees, shape, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    other = [*shape]
    other[axis] = data.draw(st.integers(1, 20))
    signed = axis - len(shape) if data.draw(flags) else axis
    sizes = ints(other[axis], shape[axis])
    nodes = [
        node("Concat", "x,z", "c", axis=signed),
        node("Split", "c,s", "d e", axis=signed),
        node("Exp", "d", "y"),
        node("Abs", "e", "w"),
    ]
    agrees(nodes, {"x": shape, "z": other}, {"s": sizes}, outputs=("y", "w"))


@drawn
@given(st.integers(1, 3), st.integers(2, 40), sides, opsets, st.data())
def test_splits_of_channels(agrees, count, c, side, opset, data):
    names = [f"s{index}" for index in range(count)]
    sizes = data.draw(st.permutations([1] * (count - 1) + [c - count + 1])) if c >= count else [c]
    assume(len(sizes) == count)
    axis = data.draw(st.sampled_from([1, -3]))
    if opset < 13:
        split = node("Split", "x", " ".join(names), axis=axis, split=[*sizes])
        constants = {}
    else:
        split, constants = node("Split", "x,z", " ".join(names), axis=axis), {"z": ints(*sizes)}
    after = [node("Exp", name, f"{name}y") for name in names]
    outputs = tuple(f"{name}y" for name in names)
    agrees([split, *after], {"x": (1, c, side, 3)}, constants, opset, outputs)


@drawn
@given(shapes_of_any_rank, st.data())
def test_movements(agrees, shape, data):
    perm = data.draw(st.permutations(range(len(shape))))
    axis = data.draw(st.integers(-len(shape), len(shape)))
    where = data.draw(st.integers(-len(shape) - 1, len(shape)))
    nodes = [
        node("Transpose", "x", "t", perm=perm),
        node("Exp", "t", "e"),
        node("Unsqueeze", "e,u", "n"),
        node("Sigmoid", "n", "g"),
        node("Squeeze", "g,u", "q"),
        node("Flatten", "q", axis=axis),
    ]
    agrees(nodes, {"x": shape}, {"u": ints(where)})


@drawn
@given(shapes_of_any_rank, st.data())
def test_expand(agrees, shape, data):
    wanted = [size if size > 1 else data.draw(st.integers(1, 4)) for size in shape]
    front = data.draw(st.lists(st.integers(1, 3), max_size=2))
    nodes = [node("Expand", "x,s", "e"), node("Abs", "e")]
    agrees(nodes, {"x": shape}, {"s": ints(*front, *wanted)})


REDUCTIONS = ["Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp"]


@drawn
@given(shapes_of_any_rank, opsets, st.sampled_from(REDUCTIONS), st.data())
def test_reductions(agrees, shape, opset, kind, data):
    axes = data.draw(st.sets(st.integers(0, len(shape) - 1)))
    signed = [axis - len(shape) if opset >= 11 and data.draw(flags) else axis for axis in axes]
    attributes: dict[str, Any] = {"keepdims": int(data.draw(flags))}
    constants: dict[str, np.ndarray] = {}
    inputs = "x"
    if opset >= 18 or (opset >= 13 and kind == "Sum"):
        attributes["noop_with_empty_axes"] = int(data.draw(flags))
        if signed or data.draw(flags):
            constants, inputs = {"a": ints(*signed)}, "x,a"
    elif signed:
        attributes["axes"] = signed
    agrees([node(f"Reduce{kind}", inputs, **attributes)], {"x": shape}, constants, opset)


@drawn
@given(batches, channels, sides, sides, st.sampled_from(["Average", "Max"]))
def test_global_pools(agrees, n, c, h, w, kind):
    agrees([node(f"Global{kind}Pool", "x")], {"x": (n, c, h, w)})


@drawn
@given(shapes_of_any_rank, opsets, st.sampled_from(["Softmax", "LogSoftmax"]), st.data())
def test_softmax(agrees, shape, opset, op, data):
    low = 0 if opset < 11 else -len(shape)
    axis = data.draw(st.one_of(st.none(), st.integers(low, len(shape) - 1)))
    agrees([node(op, "x", axis=axis)], {"x": shape}, opset=opset)


@drawn
@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 40), opsets, st.data())
def test_gemm(agrees, rows, depth, columns, opset, data):
    a, b = data.draw(flags), data.draw(flags)
    addend = data.draw(
        st.sampled_from([(), (1,), (columns,), (1, columns), (rows, 1), (rows, columns)])
    )
    gemm = node(
        "Gemm", "x,w,c" if opset < 11 or data.draw(flags) else "x,w", "g",
        transA=int(a), transB=int(b),
        alpha=data.draw(st.sampled_from([1.0, 0.5])), beta=data.draw(st.sampled_from([1.0, 2.0])),
    )  # fmt: skip
    constants = {"w": floats(*((columns, depth) if b else (depth, columns))), "c": floats(*addend)}
    shape = (depth, rows) if a else (rows, depth)
    agrees([gemm, node("Relu", "g")], {"x": shape}, constants, opset)


@drawn
@given(st.integers(1, 5), st.integers(1, 20), st.integers(1, 20), st.data())
def test_matrix_products(agrees, rows, depth, columns, data):
    front = st.lists(st.sampled_from([1, 2]), max_size=2)
    a = data.draw(st.sampled_from([(depth,), (*data.draw(front), rows, depth)]))
    b = data.draw(st.sampled_from([(depth,), (*data.draw(front), depth, columns)]))
    kind = data.draw(st.sampled_from(["computed", "first", "second"]))
    constants = {"k": floats(*(a if kind == "first" else b))}
    shapes = {"x": b if kind == "first" else a}
    inputs = {"computed": "x,z", "first": "k,x", "second": "x,k"}[kind]
    if kind == "computed":
        shapes["z"] = b
    agrees([node("MatMul", inputs)], shapes, constants)


BINARY = ["Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "PRelu"]


@drawn
@given(
    shapes_of_any_rank, st.sampled_from(BINARY), st.sampled_from(["const", "computed"]), st.data()
)
def test_binary_operators_broadcast(agrees, shape, op, kind, data):
    rank = data.draw(st.integers(0, len(shape)))
    small = [data.draw(st.sampled_from([1, size])) for size in shape[len(shape) - rank :]]
    mine = [*shape]
    if op != "PRelu":
        mine = [data.draw(st.sampled_from([1, size])) for size in shape]
    first = op == "PRelu" or data.draw(flags)
    shapes, constants = {"x": mine}, {}
    if kind == "const":
        constants["z"] = np.abs(floats(*small)) + np.float32(0.5)
    else:
        shapes["z"] = small
    nodes = [node(op, "x,z" if first else "z,x", "b"), node("Abs", "b")]
    agrees(nodes, shapes, constants, low=0.5)


@drawn
@given(shapes_of_any_rank, st.data())
def test_unary_operators_with_parameters(agrees, shape, data):
    number = st.sampled_from([-1.5, -0.25, 0.0, 0.3, 1.0, 2.0])
    nodes = [
        node("LeakyRelu", "x", "a", alpha=data.draw(number)),
        node("Elu", "a", "b", alpha=data.draw(number)),
        node("HardSigmoid", "b", "c", alpha=data.draw(number), beta=data.draw(number)),
        node("Clip", "c,lo,hi", "d"),
        node("Round", "x", "e"),
        node("Add", "d,e"),
    ]
    low, high = sorted([data.draw(number), data.draw(number)])
    agrees(nodes, {"x": shape}, {"lo": np.float32(low), "hi": np.float32(high)})


@drawn
@given(batches, channels, st.lists(sides, max_size=3), opsets, st.data())
def test_normalisations(agrees, n, c, spatial, opset, data):
    constants = {name: np.abs(floats(c)) + np.float32(0.5) for name in "sbmv"}
    epsilon = data.draw(st.sampled_from([None, 1e-3]))
    op, inputs = data.draw(
        st.sampled_from([("BatchNormalization", "x,s,b,m,v"), ("InstanceNormalization", "x,s,b")])
    )
    assume(op == "BatchNormalization" or np.prod(spatial) > 1)
    agrees([node(op, inputs, epsilon=epsilon)], {"x": (n, c, *spatial)}, constants, opset)


@drawn
@given(batches, channels, sides, sides, st.integers(1, 4), st.data())
def test_lrn(agrees, n, c, h, w, half, data):
    number = st.sampled_from([0.1, 0.75, 1.0, 2.0])
    lrn = node(
        "LRN", "x", size=2 * half - 1,
        alpha=data.draw(number), beta=data.draw(number), bias=data.draw(number),
    )  # fmt: skip
    agrees([lrn], {"x": (n, c, h, w)})


@drawn
@given(batches, st.integers(1, 3), st.integers(1, 3), sides, sides, flags)
def test_pixels_to_channels_and_back(agrees, n, block, c, h, w, columns_first):
    mode = "CRD" if columns_first else "DCR"
    nodes = [
        node("DepthToSpace", "x", "d", blocksize=block, mode=mode),
        node("Exp", "d", "e"),
        node("SpaceToDepth", "e", blocksize=block),
    ]
    agrees(nodes, {"x": (n, c * block * block, h, w)})
