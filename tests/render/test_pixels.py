"""Blue or red first: what is written, drawn and read is the same picture."""

import numpy as np
import pytest

from heimdall.render.pixels import BgraPixels, Pixels, fastest

# Another colour in each corner, with every channel of its own; RGBA, bottom row first.
CORNERS = np.array(
    [[(250, 10, 60, 255), (20, 30, 200, 255)], [(40, 230, 90, 255), (100, 0, 255, 255)]], np.uint8
)


@pytest.fixture(params=["red first", "blue first"])
def pixels(request, headless):
    """Both orders, on a surface of its own."""
    if request.param == "red first":
        return Pixels(headless.ctx)
    if not isinstance(headless.pixels, BgraPixels):
        pytest.skip("blue first is for software GL")
    return headless.pixels


def target_with(pixels, headless):
    texture = pixels.texture((2, 2), pixels.in_order(CORNERS))
    return texture, headless.ctx.framebuffer([texture])


def test_what_was_written_is_read(pixels, headless):
    _, target = target_with(pixels, headless)
    read = np.empty_like(CORNERS)
    pixels.read(target, read)
    assert (pixels.in_order(read) == CORNERS).all()


def test_it_can_be_read_into_a_buffer(pixels, headless):
    _, target = target_with(pixels, headless)
    buffer = headless.ctx.buffer(reserve=CORNERS.nbytes)
    pixels.read(target, buffer)
    read = np.frombuffer(buffer.read(), np.uint8).reshape(CORNERS.shape)
    assert (pixels.in_order(read) == CORNERS).all()


def test_the_gpu_sees_red_as_red(pixels, headless):
    _, target = target_with(pixels, headless)
    read = np.frombuffer(target.read(components=4), np.uint8).reshape(CORNERS.shape)
    assert (read == CORNERS).all()


def test_a_part_can_be_replaced(pixels, headless):
    texture, target = target_with(pixels, headless)
    pixels.write(texture, pixels.in_order(CORNERS[:1, :1]), (1, 1, 1, 1))
    read = np.frombuffer(target.read(components=4), np.uint8).reshape(CORNERS.shape)
    assert (read[1, 1] == CORNERS[0, 0]).all()
    assert (read[0] == CORNERS[0]).all()


def test_x_gets_blue_and_the_top_row_first(pixels, headless):
    _, target = target_with(pixels, headless)
    shown = np.empty_like(CORNERS)
    pixels.read_for_x(target, shown)
    assert (shown[..., :3] == CORNERS[::-1, :, 2::-1]).all()


def test_where_functions_are_missing_red_comes_first(headless):
    assert type(fastest(headless.ctx, True, lambda name: None)) is Pixels
    assert type(fastest(headless.ctx, True, None)) is Pixels
    assert type(fastest(headless.ctx, False, lambda name: 1)) is Pixels
