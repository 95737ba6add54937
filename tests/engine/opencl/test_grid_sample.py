"""GridSample as PyTorch computes it, with which networks were trained that use it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

ROW = (1.0, -2.0, 4.0, 3.0, 0.5)  # the first four without align_corners: all places are exact then
PLACES = (-6.25, -3.5, -1.5, -0.75, -0.25, 0.25, 1.5, 2.5, 3.0, 3.25, 4.5, 6.75)  # elements of it
# What torch 2.13.0's grid_sample makes of them. onnxruntime 1.32 rounds -3.5 and the like before it
# reflects them (nearest, reflection, 0), and is the same else.
TORCH = {
    ("nearest", "zeros", 0): [0, 0, 0, 0, 1, 1, 4, 4, 3, 3, 0, 0],
    ("nearest", "zeros", 1): [0, 0, 0, 0, 1, 1, 4, 4, 3, 3, 0.5, 0],
    ("nearest", "border", 0): [1, 1, 1, 1, 1, 1, 4, 4, 3, 3, 3, 3],
    ("nearest", "border", 1): [1, 1, 1, 1, 1, 1, 4, 4, 3, 3, 0.5, 0.5],
    ("nearest", "reflection", 0): [4, 4, 1, 1, 1, 1, 4, 4, 3, 3, 4, 1],
    ("nearest", "reflection", 1): [4, 0.5, 4, -2, 1, 1, 4, 4, 3, 3, 0.5, -2],
    ("linear", "zeros", 0): [0, 0, 0, 0.25, 0.75, 0.25, 1, 3.5, 3, 2.25, 0, 0],
    ("linear", "zeros", 1): [0, 0, 0, 0.25, 0.75, 0.25, 1, 3.5, 3, 2.38, 0.25, 0],
    ("linear", "border", 0): [1, 1, 1, 1, 1, 0.25, 1, 3.5, 3, 3, 3, 3],
    ("linear", "border", 1): [1, 1, 1, 1, 1, 0.25, 1, 3.5, 3, 2.38, 0.5, 0.5],
    ("linear", "reflection", 0): [2.5, 3.5, -0.5, 1, 1, 0.25, 1, 3.5, 3, 3, 3.5, 0.25],
    ("linear", "reflection", 1): [2.5, 1.75, 1, -1.25, 0.25, 0.25, 1, 3.5, 3, 2.38, 1.75, -0.5],
    ("cubic", "zeros", 0): [0, 0, -0.09, 0.33, 1.09, 0.21, 0.81, 4.34, 3, 2.21, -0.28, 0],
    ("cubic", "zeros", 1): [0, 0, -0.09, 0.33, 1.09, 0.21, 0.81, 4.3, 3, 2.35, 0.02, 0],
    ("cubic", "border", 0): [1, 1, 1, 1.11, 1.32, 0.11, 0.81, 4.06, 3, 2.89, 3, 3],
    ("cubic", "border", 1): [1, 1, 1, 1.11, 1.32, 0.11, 0.81, 4.3, 3, 2.33, 0.27, 0.5],
    ("cubic", "reflection", 0):
        [2.64, 4.06, -1.06, 1.42, 1.42, 0.11, 0.81, 4.06, 3, 2.86, 4.06, 0.11],
    ("cubic", "reflection", 1):
        [2.64, 1.42, 0.81, -1.85, 0.43, 0.43, 0.81, 4.3, 3, 2.24, 1.42, -0.92],
}  # fmt: skip
OLD_NAMES = {"linear": "bilinear", "cubic": "bicubic"}  # opset 16


def sample(mode, padding, align):
    return helper.make_node(
        "GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding, align_corners=align
    )


def run(processor, shared, graph, inputs):
    network = processor.load(graph)
    assert not any(op.fallback for op in network.ops)
    found = shared.run(network, network.new_state(), inputs)["y"]
    network.close()
    return found


def line(values, places, align):
    """A row, and the grid that reads it at places counted in its elements."""
    row = np.array(values, np.float32).reshape(1, 1, 1, -1)
    at, size = np.array(places), row.size
    grid = np.zeros((1, 1, len(at), 2), np.float32)
    grid[0, 0, :, 0] = at * 2 / (size - 1) - 1 if align else (at * 2 + 1) / size - 1
    return {"x": row, "g": grid}


def shapes(inputs):
    return {name: array.shape for name, array in inputs.items()}


@pytest.mark.parametrize(("mode", "padding", "align"), TORCH)
@pytest.mark.parametrize("opset", [16, 20, 22])
def test_samples_inside_and_beyond_the_edges_are_those_of_pytorch(
    processor, shared, build, mode, padding, align, opset
):
    inputs = line(ROW[: 4 + align], PLACES, align)
    name = OLD_NAMES.get(mode, mode) if opset == 16 else mode
    graph = build([sample(name, padding, align)], shapes(inputs), opset=opset)
    found = run(processor, shared, graph, inputs).ravel()
    assert found == pytest.approx(TORCH[mode, padding, align], abs=6e-3)


@pytest.mark.parametrize(("mode", "padding", "align"), TORCH)
@pytest.mark.parametrize("size", [(5, 7), (1, 6), (3, 4, 5)])  # cubic is of pictures only
def test_pictures_and_volumes_are_those_of_onnxruntime(
    processor, shared, build, mode, padding, align, size
):
    if mode == "cubic" and len(size) == 3:
        return
    random = np.random.default_rng(0)
    places = tuple(count + 1 for count in size)
    inputs = {
        "x": random.standard_normal((2, 3, *size)).astype(np.float32),
        "g": random.uniform(-2.5, 2.5, (2, *places, len(size))).astype(np.float32),
    }
    graph = build([sample(mode, padding, align)], shapes(inputs), opset=20)
    found = run(processor, shared, graph, inputs)
    wanted = shared.reference(graph, inputs)["y"]
    assert shared.relative_error({"y": found}, {"y": wanted}) < 1e-5


@pytest.mark.parametrize(
    ("mode", "padding", "wanted"),
    [
        ("nearest", "zeros", [0, 0, 0, 0, 0]),
        ("nearest", "border", [1, 3, 1, 3, 1]),
        ("linear", "zeros", [np.nan, np.nan, np.nan, 0, 0]),
        ("linear", "border", [1, 3, 1, 3, 1]),
        ("cubic", "zeros", [np.nan, np.nan, np.nan, 0, 0]),
        ("cubic", "border", [np.nan, np.nan, np.nan, 3, 1]),
    ],
)
def test_places_that_are_not_finite_or_far_away_are_those_of_pytorch(
    processor, shared, build, mode, padding, wanted
):
    """onnxruntime 1.32 reads the first element there, without padding too."""
    inputs = line(ROW[:4], [0] * 5, 0)
    inputs["g"][0, 0, :, 0] = np.nan, np.inf, -np.inf, 1e20, -1e20
    graph = build([sample(mode, padding, 0)], shapes(inputs), opset=20)
    found = run(processor, shared, graph, inputs).ravel()
    assert np.array_equal(found, np.float32(wanted), equal_nan=True)


def test_an_infinite_neighbour_without_weight_does_not_spread(processor, shared, build):
    inputs = line([1, 2, np.inf, 4], [0, 1, 3, 5], 0)
    graph = build([sample("linear", "border", 0)], shapes(inputs), opset=20)
    found = run(processor, shared, graph, inputs).ravel()
    assert np.isnan(found[1])  # 2 * 1 + inf * 0, as in PyTorch
    assert found[[0, 2, 3]].tolist() == [1, 4, 4]
