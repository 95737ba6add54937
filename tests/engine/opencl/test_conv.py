"""Every convolution kernel against onnxruntime, on whatever CPU OpenCL device is here."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from heimdall.engine.opencl.activation import NONE, Activation
from heimdall.engine.opencl.conv import plan_conv
from heimdall.engine.opencl.conv_spec import ConvSpec, Layer
from heimdall.engine.opencl.launch import Plan, Traits
from heimdall.engine.opencl.layout import Layout
from heimdall.engine.opencl.program import Programs
from heimdall.errors import ModelError

cl = pytest.importorskip("pyopencl")

TOLERANCE = 1e-4  # largest |a - b| over largest |b|
AVX512 = Traits("cpu", 16, 1, 32)
AVX2 = Traits("cpu", 8, 2, 16)
NEON = Traits("cpu", 4, 1, 32)
GPU = Traits("gpu", 4, 8)
few_builds = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Device:
    """Runs a Plan once on arrays: the smallest engine that can."""

    def __init__(self) -> None:
        try:
            devices = [d for p in cl.get_platforms() for d in p.get_devices()]
        except cl.Error:
            devices = []
        if not devices:
            pytest.skip("no OpenCL device")
        self.context = cl.Context(devices[:1])
        self.queue = cl.CommandQueue(self.context)
        self.programs = Programs(self.context, keep=False)

    def run(self, plan: Plan, **arrays: np.ndarray) -> np.ndarray:
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        scratch = {"scratch": np.full(plan.scratch_floats + 1, np.nan, np.float32)}
        buffers = {
            name: cl.Buffer(self.context, flags, hostbuf=array)
            for name, array in (plan.constants | arrays | scratch).items()
        }
        for launch in plan.launches:
            ready = self.programs.kernel(launch.kernel)
            ready.set_args(*launch.bound(buffers.__getitem__))
            cl.enqueue_nd_range_kernel(self.queue, ready, launch.global_size, launch.local_size)
        result = np.empty_like(arrays["y"])
        cl.enqueue_copy(self.queue, result, buffers["y"])
        return result


@pytest.fixture(scope="module")
def device():
    return Device()


@dataclass(frozen=True)
class Case:
    spec: ConvSpec
    channels: tuple[int, int]
    size: tuple[int, int]
    more: tuple[int, int] = (0, 0)  # output_padding
    x_block: int = 0  # 0: the device's
    y_block: int = 0
    residual: bool = False
    bias: bool = True

    @property
    def out(self) -> tuple[int, int]:
        height, width = self.spec.output_size(*self.size)
        return height + self.more[0], width + self.more[1]


_ACTIVATIONS = {
    "none": (NONE, None),
    "relu": (Activation("relu"), ("Relu", [], {})),
    "relu6": (Activation("clip", 0, 6), ("Clip", [0.0, 6.0], {})),
    "leaky": (Activation("prelu", lanes=(0.1,)), ("LeakyRelu", [], {"alpha": 0.1})),
    "hard_sigmoid": (Activation("hard_sigmoid", 0.2, 0.5), ("HardSigmoid", [], {})),
    "hard_swish": (Activation("hard_swish", 1 / 6, 0.5), ("HardSwish", [], {})),
    "sigmoid": (Activation("sigmoid"), ("Sigmoid", [], {})),
    "tanh": (Activation("tanh"), ("Tanh", [], {})),
}


def reference(case: Case, arrays: dict[str, np.ndarray], act) -> np.ndarray:
    """The same layer as an ONNX model: Conv, Add and activation in the order of the spec."""
    spec = case.spec
    attributes: dict[str, Any] = {
        "kernel_shape": spec.kernel,
        "strides": spec.strides,
        "dilations": spec.dilations,
        "pads": spec.pads,
        "group": spec.groups,
    }
    if spec.transposed:
        attributes["output_padding"] = case.more
    constants = [numpy_helper.from_array(arrays[n], n) for n in ("w", "b") if n in arrays]
    inputs = ["x", "w", "b"] if "b" in arrays else ["x", "w"]
    kind = "ConvTranspose" if spec.transposed else "Conv"
    nodes = [helper.make_node(kind, inputs, ["c"], **attributes)]
    last = "c"

    def append(op: str, more: list[str], **attributes) -> None:
        nonlocal last
        nodes.append(helper.make_node(op, [last, *more], [last + "_"], **attributes))
        last += "_"

    if case.residual and spec.residual_before_activation:
        append("Add", ["r"])
    if act == "silu":
        nodes.append(helper.make_node("Sigmoid", [last], ["gate"]))
        append("Mul", ["gate"])
    elif act in ("prelu", "shifted_hard_swish"):
        lanes = np.array(spec.activation.lanes, np.float32).reshape(-1, 1, 1)
        constants.append(numpy_helper.from_array(lanes, "lanes"))
        if act == "shifted_hard_swish":
            append("HardSwish", [])
        append("PRelu" if act == "prelu" else "Add", ["lanes"])
    elif _ACTIVATIONS[act][1]:
        op, values, more = _ACTIVATIONS[act][1]
        names = [f"v{index}" for index in range(len(values))]
        constants += [
            numpy_helper.from_array(np.array(v, "f"), n) for n, v in zip(names, values, strict=True)
        ]
        append(op, names, **more)
    if case.residual and not spec.residual_before_activation:
        append("Add", ["r"])
    feeds = {name: arrays[name][None] for name in ("x", "r") if name in arrays}
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, None)],
        constants,
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0][0]


def check(
    device: Device,
    case: Case,
    traits: Traits = AVX512,
    act: str = "none",
    tolerance: float = TOLERANCE,
    clears: bool = False,
) -> Plan:
    """Run a case; compare with onnxruntime; see that all of y and nothing else was written.

    With ``clears`` the halo of y holds something else before, and zeros afterwards.
    """
    spec, (ic, oc) = case.spec, case.channels
    rng = np.random.default_rng(0)
    shape = (ic, oc // spec.groups) if spec.transposed else (oc, ic // spec.groups)
    arrays = {"x": rng.standard_normal((ic, *case.size), np.float32)}
    arrays["w"] = rng.standard_normal((*shape, *spec.kernel), np.float32)
    if case.bias:
        arrays["b"] = rng.standard_normal(oc, np.float32)
    y = Layout(oc, *case.out, case.y_block or traits.block, halo=(1, 2, 0, 1))
    residual = None
    if case.residual:
        residual = replace(y, halo=(0, 0, 1, 2))
        arrays["r"] = rng.standard_normal((oc, *case.out), np.float32)
    values = tuple(rng.standard_normal(oc).astype(np.float32).tolist())
    if act == "prelu":
        spec = replace(spec, activation=Activation("prelu", lanes=values))
    elif act == "shifted_hard_swish":
        shifted = Activation("shifted_hard_swish", 1 / 6, 0.5, values)
        spec = replace(spec, activation=shifted)
    elif act == "silu":
        spec = replace(spec, activation=Activation("silu"))
    else:
        spec = replace(spec, activation=_ACTIVATIONS[act][0])
    case = replace(case, spec=spec)
    halo = spec.required_halo(case.size, case.out)
    x = Layout(ic, *case.size, case.x_block or traits.block, halo)

    layer = Layer(spec, x, y, arrays["w"], arrays.get("b"), residual, clears)
    plan = plan_conv(layer, traits)
    buffers = {"x": _with_garbage_lanes(x, arrays["x"])}
    buffers["y"] = y.pack(np.full((oc, *case.out), np.nan, np.float32))
    if clears:
        buffers["y"][:] = np.nan
    if residual is not None:
        buffers["residual"] = residual.pack(arrays["r"])
    result = device.run(plan, **buffers)

    expected = reference(case, arrays, act)
    error = np.abs(y.unpack(result) - expected).max() / max(np.abs(expected).max(), 1e-3)
    assert error <= tolerance, f"{error} with {[launch.kernel for launch in plan.launches]}"
    halo_only = _with_garbage_lanes(y, np.ones((oc, *case.out), np.float32)) == 0
    assert np.all(result[halo_only] == 0), "the halo of the output was written"
    assert np.all(np.isfinite(result)), "a pixel or lane of the output was left out"
    return plan


def _with_garbage_lanes(layout: Layout, array: np.ndarray) -> np.ndarray:
    """Packed, with 9 in the padding lanes of every pixel: readers must ignore them."""
    lanes = layout.blocks * layout.block
    full = np.full((lanes, *array.shape[1:]), 9, np.float32)
    full[: layout.channels] = array
    return replace(layout, channels=lanes).pack(full)


def names(plan: Plan) -> set[str]:
    return {launch.kernel.name for launch in plan.launches}


sides = st.tuples(st.integers(1, 20), st.integers(1, 30))
small = st.tuples(st.integers(1, 3), st.integers(1, 3))
pads = st.tuples(*[st.integers(0, 2)] * 4)
acts = st.sampled_from([*_ACTIVATIONS, "prelu", "shifted_hard_swish", "silu"])


one = st.just(1)
many = st.integers(1, 70)


@st.composite
def cases(draw, groups=one, channels=many, transposed=False) -> Case:
    count = draw(groups)
    ic, oc = draw(channels) * count, draw(channels) * count
    spec = ConvSpec(
        kernel=draw(st.tuples(st.integers(1, 5), st.integers(1, 5))),
        strides=draw(small),
        dilations=draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (2, 3)])),
        pads=draw(pads),
        groups=count,
        transposed=transposed,
        residual_before_activation=draw(st.booleans()),
    )
    size = draw(sides)
    more = (0, 0)
    if transposed:
        size = (-(-size[0] // 2), -(-size[1] // 2))
        more = draw(st.tuples(*[st.integers(0, stride - 1) for stride in spec.strides]))
    case = Case(spec, (ic, oc), size, more, residual=draw(st.booleans()), bias=draw(st.booleans()))
    assume(min(case.out) >= 1)
    # onnxruntime refuses kernels that reach beyond the padded picture
    assume(transposed or min(spec.output_size(*size)) >= 1)
    return case


@few_builds
@given(cases(), acts)
def test_dense_convolutions_match_onnxruntime(device, case, act):
    check(device, case, act=act)


@few_builds
@given(cases(), st.sampled_from(["none", "relu", "prelu"]))
def test_narrow_cpus_match_onnxruntime(device, case, act):
    check(device, case, AVX2, act)


@settings(few_builds, max_examples=10)
@given(cases(), st.sampled_from([AVX512, AVX2, GPU]))
def test_dense_convolutions_clear_the_halo_of_their_output(device, case, traits):
    check(device, case, traits, clears=True)


@few_builds
@given(cases(), st.sampled_from(["none", "relu", "prelu"]))
def test_gpu_kernels_match_onnxruntime(device, case, act):
    check(device, case, GPU, act)


@st.composite
def depthwise_cases(draw) -> Case:
    case = draw(cases(groups=st.integers(2, 40), channels=st.just(1)))
    side = draw(st.sampled_from([0, 3, 3, 5, 7]))
    if side:  # the square kernels that are unrolled
        stride = draw(st.integers(1, 2))
        spec = replace(
            case.spec,
            kernel=(side, side),
            strides=(stride, stride),
            dilations=(1, 1),
            pads=(side // 2,) * 4,
        )
        case = replace(case, spec=spec)
    return case


@few_builds
@given(depthwise_cases(), st.sampled_from(["none", "relu6", "prelu"]))
def test_depthwise_convolutions_match_onnxruntime(device, case, act):
    assert names(check(device, case, act=act)) == {"conv_depthwise"}


@few_builds
@given(depthwise_cases(), st.sampled_from([AVX2, GPU]))
def test_depthwise_convolutions_of_other_devices_match_onnxruntime(device, case, traits):
    check(device, case, traits, "relu6")


@settings(few_builds, max_examples=10)
@given(depthwise_cases(), st.sampled_from([AVX512, GPU]))
def test_depthwise_convolutions_clear_the_halo_of_their_output(device, case, traits):
    plan = check(device, case, traits, clears=True)
    alone = names(plan) == {"conv_depthwise"}
    assert alone == (traits is AVX512), "CPUs do it in the same launch"


@few_builds
@given(cases(groups=st.integers(2, 5), channels=st.integers(1, 18)), st.sampled_from([AVX512, GPU]))
def test_grouped_convolutions_match_onnxruntime(device, case, traits):
    check(device, case, traits, "relu")


@few_builds
@given(cases(channels=st.integers(1, 40), transposed=True), acts, st.booleans())
def test_transposed_convolutions_match_onnxruntime(device, case, act, clears):
    check(device, case, act=act, clears=clears)


@few_builds
@given(cases(groups=st.integers(2, 24), channels=st.integers(1, 2), transposed=True))
def test_grouped_transposed_convolutions_match_onnxruntime(device, case):
    check(device, case)


@few_builds
@given(cases(), st.integers(1, 4), st.integers(9, 50), st.sampled_from([AVX512, AVX2, GPU]), acts)
def test_few_outputs_match_onnxruntime(device, case, outputs, inputs, traits, act):
    plan = check(device, replace(case, channels=(inputs, outputs)), traits, act)
    assert names(plan) == {"conv_few"}


@few_builds
@given(cases(channels=st.integers(1, 20)), st.sampled_from(["nchw", "nhwc"]), st.booleans())
def test_plain_layouts_are_read_and_written(device, case, order, both):
    ic, oc = case.channels
    block_in, block_out = (1, 1) if order == "nchw" else (ic, oc)
    if both:
        case = replace(case, x_block=block_in)
    check(device, replace(case, y_block=block_out), act="prelu")


@few_builds
@given(cases(channels=st.integers(1, 12)), st.sampled_from([AVX512, AVX2, GPU]), acts)
def test_planar_pictures_match_onnxruntime(device, case, traits, act):
    spec = replace(case.spec, strides=(case.spec.strides[0], 1))
    case = replace(case, spec=spec, size=(case.size[0], case.size[1] + 30), x_block=1, y_block=1)
    assert names(check(device, case, traits, act)) == {"conv_planar"}


@pytest.mark.parametrize(("outputs", "y_block"), [(3, 16), (4, 16), (8, 1)])
def test_few_channels_with_large_windows_are_unpacked_to_planar_pictures(device, outputs, y_block):
    case = Case(ConvSpec((5, 5), pads=(2, 1, 0, 2)), (4, outputs), (9, 80), y_block=y_block)
    assert names(check(device, case, act="prelu")) == {"pack", "conv_planar"}


@pytest.mark.parametrize("outputs", [8, 21, 40, 56, 72])
@pytest.mark.parametrize("y_block", [16, 1])
def test_half_blocks_match_onnxruntime(device, outputs, y_block):
    spec = ConvSpec((3, 3), pads=(1, 1, 1, 1))
    case = Case(spec, (20, outputs), (9, 14), y_block=y_block, residual=True)
    check(device, case, act="prelu")


@st.composite
def winograd_cases(draw) -> Case:
    spec = ConvSpec((3, 3), pads=draw(pads), residual_before_activation=draw(st.booleans()))
    size = draw(st.tuples(st.integers(12, 40), st.integers(12, 40)))
    channels = draw(st.tuples(st.integers(20, 130), st.integers(12, 130)))
    return Case(spec, channels, size, residual=draw(st.booleans()), bias=draw(st.booleans()))


@settings(few_builds, max_examples=15)
@given(
    winograd_cases(),
    st.sampled_from([AVX512, AVX512, AVX2, NEON]),
    st.sampled_from(["relu6", "prelu"]),
)
def test_winograd_convolutions_match_onnxruntime(device, case, traits, act):
    # its sums lose a digit, which shows where the activation cuts off all large outputs
    plan = check(device, case, traits, act, tolerance=1e-3)
    if case.channels[1] % 16 == 0:
        assert names(plan) == {"winograd_input", "winograd"}


@pytest.mark.parametrize("x_block", [1, 3])
@pytest.mark.parametrize("traits", [AVX512, AVX2])
def test_large_first_layers_are_sums_of_winograd_convolutions(device, x_block, traits):
    spec = ConvSpec((9, 9), pads=(4, 4, 3, 4))
    case = Case(spec, (3, 32), (22, 41), x_block=x_block, residual=True)
    assert names(check(device, case, traits, "relu")) == {"winograd_input", "winograd"}


@pytest.mark.parametrize("outputs", [24, 32])
def test_winograd_works_in_bands_that_fit_into_the_cache(device, outputs):
    case = Case(ConvSpec((3, 3), pads=(1, 1, 1, 1)), (64, outputs), (90, 70), residual=True)
    plan = check(device, case, act="relu")
    assert len(plan.launches) > 2
    assert plan.scratch_floats <= 1 << 18


@pytest.mark.parametrize("kernel", [(2, 2), (1, 2), (3, 2)])
@pytest.mark.parametrize("traits", [AVX512, GPU])
@pytest.mark.parametrize("act", ["none", "prelu", "sigmoid"])
def test_transposed_layers_without_overlap_stamp_their_outputs(device, kernel, traits, act):
    spec = ConvSpec(kernel, kernel, transposed=True)
    case = Case(spec, (22, 1), (7, 27), y_block=1)
    assert names(check(device, case, traits, act)) == {"conv_stamp"}


@pytest.mark.parametrize("x_block", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
def test_first_layers_read_camera_pictures(device, x_block, stride):
    spec = ConvSpec((3, 3), (stride, stride), pads=(1, 1, 1, 1))
    check(device, Case(spec, (3, 32), (40, 56), x_block=x_block), act="relu")


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("columns", "outputs"), [(64, 48), (50, 33), (257, 10)])
def test_fully_connected_layers_match_onnxruntime(device, rows, columns, outputs):
    case = Case(ConvSpec((1, 1)), (columns, outputs), (1, rows), x_block=columns, y_block=outputs)
    for traits in (AVX512, GPU):
        check(device, case, traits, "relu")


def test_a_fully_connected_layer_after_flatten_is_a_kernel_as_large_as_the_picture(device):
    case = Case(ConvSpec((7, 6)), (40, 30), (7, 6), y_block=30)
    check(device, case)


def test_a_tensor_can_be_a_view_of_a_larger_one(device):
    """A producer writes its part of a Concat in place."""
    spec = ConvSpec((1, 1))
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((16, 32, 1, 1), np.float32)
    array = rng.standard_normal((48, 4, 5), np.float32)
    source, target = Layout(48, 4, 5), Layout(64, 4, 5)
    plan = plan_conv(Layer(spec, source.slice(16, 32), target.slice(32, 16), weights), AVX512)
    buffers = {"x": source.pack(array), "y": np.zeros(target.floats, np.float32)}
    result = target.unpack(device.run(plan, **buffers))
    expected = np.einsum("oi,ihw->ohw", weights[:, :, 0, 0], array[16:])
    assert np.allclose(result[32:48], expected, atol=1e-4)
    assert not result[:32].any()
    assert not result[48:].any()


def test_layers_of_one_kind_share_their_kernels():
    def plan(channels, width):
        layout = Layout(channels, width, width, halo=(1, 1, 1, 1))
        weights = np.zeros((channels, channels, 3, 3), np.float32)
        spec = ConvSpec((3, 3), (2, 2), pads=(1, 1, 1, 1), activation=Activation("relu"))
        out = Layout(channels, *spec.output_size(width, width))
        return plan_conv(Layer(spec, layout, out, weights), AVX512)

    assert plan(64, 52).launches[0].kernel is plan(128, 26).launches[0].kernel


def test_a_tuned_tile_is_used_where_it_fits():
    spec = ConvSpec((1, 1))
    weights = np.zeros((64, 64, 1, 1), np.float32)

    def grid(width):
        layout = Layout(64, 8, width)
        tuned = {"tile": (2, 4, 1)}
        plan = plan_conv(Layer(spec, layout, layout, weights), AVX512, tuned)
        return plan.launches[0].global_size

    assert grid(8) == (16, 1, 2)


def _refused(message: str, spec: ConvSpec = ConvSpec((3, 3)), **changes) -> None:  # noqa: B008
    given: dict[str, Any] = {
        "x": Layout(8, 6, 6),
        "y": Layout(8, 4, 4),
        "weights": np.zeros((8, 8, 3, 3), np.float32),
    } | changes
    with pytest.raises(ModelError, match=message):
        plan_conv(Layer(spec, **given), AVX512)


def test_what_does_not_fit_is_refused_with_a_reason():
    _refused("weights of shape", weights=np.zeros((8, 4, 3, 3), np.float32))
    _refused("bias of shape", bias=np.zeros(3, np.float32))
    _refused("output", y=Layout(8, 5, 4))
    _refused("halo", ConvSpec((3, 3), pads=(1, 1, 1, 1)), y=Layout(8, 6, 6))
    _refused("groups", ConvSpec((3, 3), groups=3))
    _refused("values of prelu", ConvSpec((3, 3), activation=Activation("prelu", lanes=(0.1, 0.2))))
    _refused("residual", residual=Layout(8, 4, 5))
    _refused("block", y=Layout(8, 4, 4, block=4))
