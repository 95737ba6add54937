"""Do a node's attributes and constants fit its inputs?

Shape inference and onnxruntime look at some of this, often only when the node runs, and engines
read weights by offsets that follow from it: what does not fit must be found before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heimdall.graph import limits
from heimdall.graph.limits import count, say_bytes
from heimdall.graph.sessions import onnxruntime_version

Shape = tuple[int, ...]


class MisfitError(ValueError):
    """What does not fit, without the name of the node."""


@dataclass(frozen=True)
class Site:
    """A node and what is known about its inputs. ``shapes`` has None for an input left out,
    ``values`` the constants among those that decide shapes or places, by their number."""

    op_type: str
    opset: int
    attributes: Mapping[str, Any]
    shapes: Sequence[Shape | None]
    values: Mapping[int, np.ndarray]
    whole_numbers: bool  # the first input's elements are integers
    outputs: int

    def shape(self, index: int) -> Shape:
        """Of an input that must be there."""
        found = self.shapes[index] if index < len(self.shapes) else None
        if found is None:
            raise MisfitError(f"input {index} is missing")
        return found

    def has(self, index: int) -> bool:
        return index < len(self.shapes) and self.shapes[index] is not None

    def ints(self, index: int, name: str) -> list[int] | None:
        """A constant list of integers, an input (newer opsets) or an attribute."""
        if index in self.values:
            return [int(value) for value in self.values[index].reshape(-1)]
        value = self.attributes.get(name)
        return None if value is None or self.has(index) else [int(v) for v in np.atleast_1d(value)]


# Inputs whose values decide shapes or places, by op: those must be constants to be checked.
BY_VALUE: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Reshape", "Expand", "Tile", "Unsqueeze", "Squeeze", "Split", "TopK"), (1,)),
    **dict.fromkeys(("OneHot", "Upsample", "Gather", "GatherElements", "GatherND"), (1,)),
    **dict.fromkeys(("ScatterElements", "ScatterND", "Scatter", "CumSum", "Trilu"), (1,)),
    **dict.fromkeys(("Div", "Mod", "CenterCropPad", "AffineGrid"), (1,)),
    **dict.fromkeys(("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow"), (0,)),
    **dict.fromkeys(("Slice",), (1, 2, 3, 4)),
    **dict.fromkeys(("Pad", "Resize"), (1, 2, 3)),
    **dict.fromkeys(("Col2Im", "DFT"), (1, 2)),
    **dict.fromkeys(("Range",), (0, 1, 2)),
    **dict.fromkeys(("MaxUnpool",), (2,)),
    **dict.fromkeys(("STFT",), (1, 3)),
    **dict.fromkeys(("MelWeightMatrix",), (0, 1, 2, 3, 4)),
    **{f"Reduce{kind}": (1,) for kind in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2")},
    **{f"Reduce{kind}": (1,) for kind in ("LogSum", "LogSumExp", "SumSquare")},
}


def check_node(site: Site) -> None:
    """Raise MisfitError with what does not fit."""
    for name, value in site.attributes.items():
        numbers = value if isinstance(value, list) else [value]
        large = any(isinstance(each, int) and abs(each) >= 2**31 for each in numbers)
        if large and name not in _FREE_INTS:
            raise MisfitError(f"{name} is {value}")
    for family, check in _CHECKS:
        if site.op_type in family:
            check(site)


_FREE_INTS = {"starts", "ends"}  # "to the end" is the largest number there is


def _window(site: Site) -> None:
    """Conv, ConvTranspose and pools: sizes, strides, dilations, pads and groups."""
    size = site.shape(0)[2:]
    if not size:
        raise MisfitError(f"needs an input of 3 dimensions or more, not {list(site.shape(0))}")
    get, rank = site.attributes.get, len(size)
    convolves = site.op_type.startswith("Conv")
    kernel = list(site.shape(1)[2:]) if convolves else list(get("kernel_shape", ()))
    if convolves and list(get("kernel_shape", kernel)) != kernel:
        raise MisfitError(
            f"kernel_shape {get('kernel_shape')} is not that of its weights, {kernel}"
        )
    for name, values, length, least in (
        ("kernel_shape", kernel, rank, 1),
        ("strides", get("strides", [1] * rank), rank, 1),
        ("dilations", get("dilations", [1] * rank), rank, 1),
        ("pads", get("pads", [0] * 2 * rank), 2 * rank, 0),
        ("output_padding", get("output_padding", [0] * rank), rank, 0),
        ("output_shape", get("output_shape", [1] * rank), rank, 1),
    ):
        if len(values) != length or min(values) < least:
            raise MisfitError(f"{name} {list(values)}: {length} numbers from {least} on are needed")
    if get("auto_pad", "NOTSET") not in ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise MisfitError(f"unknown auto_pad {get('auto_pad')!r}")
    if site.op_type != "ConvTranspose" and not get("ceil_mode", 0):
        _reach(site, size, kernel)
    if not convolves:
        pads = get("pads", [0] * 2 * rank)
        if any(pad >= kernel[axis % rank] for axis, pad in enumerate(pads)):
            raise MisfitError(f"pads {list(pads)} are as large as its window {kernel}")


def _reach(site: Site, size: Shape, kernel: Sequence[int]) -> None:
    """With a stride above one, shape inference gives one pixel for a window that is larger than
    the padded input."""
    get, rank = site.attributes.get, len(size)
    if get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return
    pads, dilations = get("pads", [0] * 2 * rank), get("dilations", [1] * rank)
    for axis in range(rank):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if reach > size[axis] + pads[axis] + pads[axis + rank]:
            raise MisfitError(
                f"its window of {reach} is larger than the padded input, {list(size)}; choose a "
                "larger input shape"
            )


def _channels(site: Site) -> None:
    """Conv and ConvTranspose: weights and bias against the input's channels and the groups."""
    x, weights, group = site.shape(0), site.shape(1), site.attributes.get("group", 1)
    if len(weights) != len(x) or group < 1:
        raise MisfitError(f"weights {list(weights)} in {group} group(s), for an input {list(x)}")
    transposed = site.op_type == "ConvTranspose"
    channels, outputs = x[1], weights[1] * group if transposed else weights[0]
    wanted = weights[0] if transposed else weights[1] * group
    bias = site.shape(2) if site.has(2) else (outputs,)
    if channels != wanted or channels % group or outputs % group or bias != (outputs,):
        raise MisfitError(
            f"weights {list(weights)} in {group} group(s) and bias {list(bias)} do not fit an "
            f"input of {channels} channels"
        )
    if transposed:  # the matrix that it is computed with, before its columns are added up
        room = 4 * math.prod(weights[1:]) * math.prod(x[2:]) * group
        if room > 4 * limits.TENSOR_BYTES:
            raise MisfitError(
                f"needs {say_bytes(room)} to be computed; choose smaller input shapes"
            )


def _per_channel(site: Site) -> None:
    """BatchNormalization and InstanceNormalization: vectors of one number a channel."""
    x = site.shape(0)
    if len(x) < 2:
        raise MisfitError(f"needs an input of channels, not {list(x)}")
    for index in range(1, 5 if site.op_type == "BatchNormalization" else 3):
        if site.shape(index) != (x[1],):
            raise MisfitError(f"input {index} is {list(site.shape(index))}, for {x[1]} channels")


def _gemm(site: Site) -> None:
    a, b = site.shape(0), site.shape(1)
    if len(a) != 2 or len(b) != 2:
        raise MisfitError(f"multiplies matrices, not {list(a)} and {list(b)}")
    a = a[::-1] if site.attributes.get("transA", 0) else a
    b = b[::-1] if site.attributes.get("transB", 0) else b
    if a[1] != b[0]:
        raise MisfitError(f"the matrices {list(a)} and {list(b)} cannot be multiplied")
    if site.has(2):
        _must_broadcast(site.shape(2), (a[0], b[1]), "the bias")


def _must_broadcast(shape: Shape, to: Shape, what: str) -> None:
    """In one direction: ``to`` stays as it is."""
    behind = to[len(to) - len(shape) :] if shape else ()
    fits = len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape, behind, strict=True))
    if not fits:
        raise MisfitError(f"{what} {list(shape)} does not broadcast to {list(to)}")


def _prelu(site: Site) -> None:
    _must_broadcast(site.shape(1), site.shape(0), "the slope")


def _layer_norm(site: Site) -> None:
    x = site.shape(0)
    axis = _axis(site.attributes.get("axis", -1), len(x))
    for index in (1, 2):
        if site.has(index):
            _must_broadcast(site.shape(index), x[axis:], f"input {index}")


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise MisfitError(f"axis {axis} of {rank} dimensions")
    return axis % rank


def _one_axis(site: Site) -> None:
    if "axis" in site.attributes:
        _axis(site.attributes["axis"], len(site.shape(0)))


def _many_axes(site: Site) -> None:
    axes = site.ints(1, "axes")
    rank = len(site.shape(0))
    found = [_axis(axis, rank) for axis in axes or ()]
    if len(set(found)) < len(found):
        raise MisfitError(f"axes {axes} name one twice")


def _gather(site: Site) -> None:
    """Places inside the data, where they are constants; else they are looked at as it runs."""
    x = site.shape(0)
    if site.op_type == "GatherND":
        _places_nd(site, x[site.attributes.get("batch_dims", 0) :])
        return
    axis = _axis(site.attributes.get("axis", 0), len(x))
    if 1 in site.values and site.values[1].size:
        low, high = int(site.values[1].min()), int(site.values[1].max())
        if low < -x[axis] or high >= x[axis]:
            raise MisfitError(f"takes places {low} to {high} of {x[axis]}")


def _places_nd(site: Site, x: Shape) -> None:
    places = site.shape(1)
    if not places or not 1 <= places[-1] <= len(x):
        raise MisfitError(f"places {list(places)} in {list(x)}")
    if 1 in site.values and site.values[1].size:
        values = site.values[1].reshape(-1, places[-1])
        sizes = np.array(x[: places[-1]])
        if (values < -sizes).any() or (values >= sizes).any():
            raise MisfitError(f"takes places outside {list(x)}")


def _scatter_nd(site: Site) -> None:
    x, places = site.shape(0), site.shape(1)
    _places_nd(site, x)
    wanted = places[:-1] + x[places[-1] :]
    if site.shape(2) != wanted:
        raise MisfitError(f"writes {list(site.shape(2))} where {list(wanted)} are named")


def _split(site: Site) -> None:
    x = site.shape(0)
    axis = _axis(site.attributes.get("axis", 0), len(x))
    sizes = site.ints(1, "split")
    if sizes is None and site.has(1):
        return
    if sizes is None:
        parts = site.attributes.get("num_outputs", site.outputs)
        if parts < 1 or parts != site.outputs or (site.opset < 18 and x[axis] % parts):
            raise MisfitError(f"cannot split {x[axis]} into {site.outputs} parts")
    elif len(sizes) != site.outputs or min(sizes) < 0 or sum(sizes) != x[axis]:
        raise MisfitError(f"cannot split {x[axis]} into {sizes}")


def _reshape(site: Site) -> None:
    wanted = site.ints(1, "shape")
    if wanted is None:
        return
    x, zeros = site.shape(0), site.attributes.get("allowzero", 0)
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise MisfitError(f"shape {wanted}")
    if not zeros and any(not size and axis >= len(x) for axis, size in enumerate(wanted)):
        raise MisfitError(f"shape {wanted} keeps a dimension that {list(x)} has not")
    found = [x[axis] if not size and not zeros else size for axis, size in enumerate(wanted)]
    rest = count([size for size in found if size >= 0])
    fits = rest == count(x) if -1 not in found else rest > 0 and count(x) % rest == 0
    if not fits:
        raise MisfitError(f"{list(x)} cannot be reshaped to {wanted}")


def _transpose(site: Site) -> None:
    rank = len(site.shape(0))
    perm = site.attributes.get("perm", list(range(rank)))
    if sorted(perm) != list(range(rank)):
        raise MisfitError(f"perm {list(perm)} of {rank} dimensions")


def _slice(site: Site) -> None:
    x = site.shape(0)
    starts, ends = site.ints(1, "starts"), site.ints(2, "ends")
    axes, steps = site.ints(3, "axes"), site.ints(4, "steps")
    lengths = {len(each) for each in (starts, ends, axes, steps) if each is not None}
    if len(lengths) > 1 or (axes is None and max(lengths, default=0) > len(x)):
        raise MisfitError(f"starts {starts}, ends {ends}, axes {axes}, steps {steps} of {list(x)}")
    found = [_axis(axis, len(x)) for axis in axes or ()]
    if len(set(found)) < len(found) or (steps and 0 in steps):
        raise MisfitError(f"axes {axes} and steps {steps}")


def _pad(site: Site) -> None:
    x, pads = site.shape(0), site.ints(1, "pads")
    if pads is None:
        return
    axes = [_axis(axis, len(x)) for axis in site.ints(3, "axes") or range(len(x))]
    mode = site.attributes.get("mode", "constant")
    if mode not in ("constant", "reflect", "edge", "wrap") or len(set(axes)) < len(axes):
        raise MisfitError(f"mode {mode!r}, axes {axes}")
    if len(pads) != 2 * len(axes):
        raise MisfitError(f"pads {pads} for {len(axes)} axes")
    if any(abs(pad) >= 2**31 for pad in pads):
        raise MisfitError(f"pads {pads}")
    for index, pad in enumerate(pads):
        size = x[axes[index % len(axes)]]
        if (mode == "reflect" and pad >= size) or (mode != "constant" and pad > 0 and not size):
            raise MisfitError(f"pads {pads} {mode} more than there is of {list(x)}")
        if pad < -size or (mode == "wrap" and pad > size):
            raise MisfitError(f"pads {pads} do not fit {list(x)}")


def _is_old(site: Site) -> bool:
    return site.op_type == "Upsample" or site.opset < 11


def axes_and_scales(site: Site) -> tuple[list[int], np.ndarray]:
    """The axes that a Resize or Upsample may change, and their scales where those are known."""
    rank, get = len(site.shape(0)), site.attributes.get
    axes = [_axis(axis, rank) for axis in get("axes", range(rank))]
    scales = site.values.get(1 if _is_old(site) else 2)
    return axes, np.asarray(get("scales", ()) if scales is None else scales, np.float32).ravel()


def _resize(site: Site) -> None:
    get = site.attributes.get
    known = {
        "mode": ("nearest", "linear", "cubic", "bilinear"),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
        "coordinate_transformation_mode": (
            *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
            *("asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"),
        ),
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    }
    for name, choices in known.items():
        if get(name, choices[0]) not in choices:
            raise MisfitError(f"unknown {name} {get(name)!r}")
    axes, scales = axes_and_scales(site)
    if scales.size and (
        len(scales) != len(axes) or not np.isfinite(scales).all() or scales.min() <= 0
    ):
        raise MisfitError(f"scales {scales.tolist()} for {len(axes)} axes")
    old = _is_old(site)
    sizes = None if old else site.values.get(3)
    if sizes is not None and sizes.size and (len(sizes) != len(axes) or sizes.min() < 1):
        raise MisfitError(f"sizes {sizes.tolist()} for {len(axes)} axes")
    if not old and not scales.size and sizes is None and not site.has(2) and not site.has(3):
        raise MisfitError("neither scales nor sizes")


def _upright(site: Site) -> None:
    """Ops on pictures of any number of dimensions."""
    if len(site.shape(0)) < 3:
        raise MisfitError(f"needs an input of 3 dimensions or more, not {list(site.shape(0))}")


def _lrn(site: Site) -> None:
    size = site.attributes.get("size", 0)
    if len(site.shape(0)) < 3 or size < 1 or not size % 2:
        raise MisfitError(f"size {size} over an input {list(site.shape(0))}")


def _blocks(site: Site) -> None:
    x, side = site.shape(0), site.attributes.get("blocksize", 0)
    if len(x) != 4 or side < 1:
        raise MisfitError(f"blocksize {side} of an input {list(x)}")
    joins = site.op_type == "DepthToSpace"
    if (joins and x[1] % side**2) or (not joins and (x[2] % side or x[3] % side)):
        raise MisfitError(f"blocksize {side} does not divide {list(x)}")


def _clip(site: Site) -> None:
    for index in (1, 2):
        if site.has(index) and count(site.shape(index)) != 1:
            raise MisfitError(f"a limit of shape {list(site.shape(index))}")


def _integer_division(site: Site) -> None:
    """By zero it ends the process, in onnxruntime before 1.25."""
    if not site.whole_numbers or site.attributes.get("fmod", 0):
        return
    divisor = site.values.get(1)
    if divisor is None:
        if onnxruntime_version() >= (1, 25):  # it looks at each, and says which node fails
            return
        raise MisfitError(
            "divides integers by numbers that are computed, which may be zero: install "
            "onnxruntime 1.25 or newer"
        )
    if (divisor == 0).any():
        raise MisfitError("divides integers by zero")
    if (divisor == -1).any() and site.op_type == "Div" and divisor.dtype.kind == "i":
        raise MisfitError(
            "divides integers by -1, which the lowest integer has no room for; negate"
        )


def _top_k(site: Site) -> None:
    x, k = site.shape(0), site.ints(1, "k")
    axis = _axis(site.attributes.get("axis", -1), len(x))
    if k is not None and (len(k) != 1 or not 1 <= k[0] <= x[axis]):
        raise MisfitError(f"the first {k} of {x[axis]}")


def _tile(site: Site) -> None:
    repeats = site.ints(1, "repeats")
    if repeats is not None and (len(repeats) != len(site.shape(0)) or min(repeats, default=0) < 0):
        raise MisfitError(f"repeats {repeats} of {list(site.shape(0))}")


def _fill(site: Site) -> None:
    shape = site.ints(0, "")
    if shape is not None and min(shape, default=0) < 0:
        raise MisfitError(f"shape {shape}")


def _range(site: Site) -> None:
    if all(index in site.values for index in (0, 1, 2)):
        start, limit, step = (site.values[index].reshape(-1) for index in (0, 1, 2))
        if not (start.size == limit.size == step.size == 1) or not step[0]:
            raise MisfitError(f"from {start} to {limit} in steps of {step}")
        steps = (float(limit[0]) - float(start[0])) / float(step[0])
        if not math.isfinite(steps) or steps * step.itemsize > limits.TENSOR_BYTES:
            raise MisfitError(f"{steps:,.0f} steps are more than a tensor may have")


_POOLS = {"MaxPool", "AveragePool", "LpPool"}
_CONVS = {"Conv", "ConvTranspose"}
_CHECKS: tuple[tuple[set[str], Callable[[Site], None]], ...] = (
    (_CONVS, _channels),
    (_CONVS | _POOLS, _window),
    ({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}, _upright),
    ({"BatchNormalization", "InstanceNormalization"}, _per_channel),
    ({"LayerNormalization"}, _layer_norm),
    ({"Gemm"}, _gemm),
    ({"PRelu"}, _prelu),
    ({"Gather", "GatherElements", "GatherND", "ScatterElements", "Scatter"}, _gather),
    ({"ScatterND"}, _scatter_nd),
    ({"Split"}, _split),
    ({"Reshape"}, _reshape),
    ({"Transpose"}, _transpose),
    ({"Slice"}, _slice),
    ({"Pad"}, _pad),
    ({"Resize", "Upsample"}, _resize),
    ({"LRN"}, _lrn),
    ({"DepthToSpace", "SpaceToDepth"}, _blocks),
    ({"Clip"}, _clip),
    ({"Div", "Mod"}, _integer_division),
    ({"TopK"}, _top_k),
    ({"Tile"}, _tile),
    ({"ConstantOfShape"}, _fill),
    ({"Range"}, _range),
    ({"Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin", "LpNormalization"}, _one_axis),
    ({name for name in BY_VALUE if name.startswith("Reduce")} | {"Squeeze"}, _many_axes),
)
