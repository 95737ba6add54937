from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.errors import ConfigError
from heimdall.models.letterbox import fit, letterbox, planes, shrink, sides, unit_rgb

side = st.integers(16, 4000)


@given(side, side, side, side, st.booleans(), st.floats(0, 1), st.floats(0, 1))
def test_points_come_back_to_where_they_were(w, h, tw, th, centred, x, y) -> None:
    placement = fit(w, h, tw, th, centred=centred)
    point = np.array([[x * w, y * h]], np.float32)
    assert placement.to_frame(placement.to_input(point)) == pytest.approx(point, abs=0.05, rel=1e-3)


@given(side, side, side, side, st.booleans())
def test_the_whole_frame_lies_inside_the_input(w, h, tw, th, centred) -> None:
    placement = fit(w, h, tw, th, centred=centred)
    width, height = placement.inner
    assert 0 <= placement.left <= tw - width
    assert 0 <= placement.top <= th - height
    assert width == tw or height == th


@given(st.integers(20, 300), st.integers(20, 300), st.booleans())
def test_a_dot_lands_where_the_geometry_says(w, h, centred) -> None:
    image = np.zeros((h, w, 3), np.uint8)
    x, y = w // 2, h // 2
    image[y - 3 : y + 4, x - 3 : x + 4] = 255
    canvas, placement = letterbox(image, 160, 120, centred=centred)
    lit = np.argwhere(canvas[:, :, 0] > 127)[:, ::-1].mean(axis=0) + 0.5
    expected = placement.to_input(np.array([x + 0.5, y + 0.5]))
    assert lit == pytest.approx(expected, abs=1.0 + placement.scale / 2)


def test_bars_are_black_and_the_picture_is_not_squashed() -> None:
    canvas, placement = letterbox(np.full((100, 200, 3), 255, np.uint8), 64, 64, centred=True)
    assert (placement.left, placement.top, placement.inner) == (0, 16, (64, 32))
    assert canvas[:16].max() == 0
    assert canvas[48:].max() == 0
    assert canvas[16:48].min() == 255


def test_boxes_are_cut_at_the_frames_edge() -> None:
    placement = fit(200, 100, 100, 100)
    boxes = placement.boxes_to_frame(np.array([[-10, -10, 500, 500]], np.float32))
    assert boxes.tolist() == [[0, 0, 200, 100]]
    assert placement.boxes_to_frame(np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_shrinking_far_averages_instead_of_skipping_pixels() -> None:
    stripes = np.zeros((960, 1280, 3), np.uint8)
    stripes[:, ::2] = 255
    # one bilinear step picks black or white columns at random: 64 off on average
    assert np.abs(shrink(stripes, 200, 150).astype(int) - 127).mean() < 40


def test_tensors_have_the_declared_layout_and_range() -> None:
    blue = np.zeros((4, 6, 3), np.uint8)
    blue[..., 0] = 255
    assert planes(blue, rgb=False).shape == (1, 3, 4, 6)
    assert planes(blue, rgb=False)[0, 0].min() == 255
    assert planes(blue, rgb=True, scale=1 / 255)[0, 2].min() == pytest.approx(1)
    rgb = unit_rgb(blue)
    assert rgb.shape == (1, 4, 6, 3)
    assert rgb.dtype == np.float32
    assert rgb[0, 0, 0].tolist() == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("size", [(100, 128), (0, 64), (64,), "big", None])
def test_an_input_size_the_network_cannot_take_is_refused(size) -> None:
    with pytest.raises(ConfigError, match="faces size"):
        sides("faces size", size, 32)
