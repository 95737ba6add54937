from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.models.luminance import (
    MEASURES,
    luminance_difference,
    luminance_grid,
    luminance_plane,
)
from heimdall.vocabulary.enums import Luminance


def _grey(level: int, height: int = 480, width: int = 640) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


@pytest.mark.parametrize("measure", MEASURES.values())
def test_an_unchanged_picture_has_no_variation(measure) -> None:
    assert luminance_difference(measure(_grey(90)), measure(_grey(90))) == 0


@pytest.mark.parametrize("measure", MEASURES.values())
@pytest.mark.parametrize("size", [(240, 320), (480, 640), (720, 1280), (1080, 1920)])
def test_one_grey_level_counts_every_1080p_pixel_once(size, measure) -> None:
    change = luminance_difference(measure(_grey(91, *size)), measure(_grey(90, *size)))
    assert change == pytest.approx(1920 * 1080)


def test_every_measure_has_a_name() -> None:
    assert list(MEASURES) == list(Luminance)


def test_the_same_motion_counts_the_same_at_every_resolution(clip_frame) -> None:
    before, after = clip_frame("box.mp4", 0), clip_frame("box.mp4", 60)
    small = luminance_difference(luminance_grid(after), luminance_grid(before))
    large = luminance_difference(
        *(luminance_grid(cv2.resize(image, (1920, 1080))) for image in (after, before))
    )
    assert large == pytest.approx(small, rel=0.05)


def test_the_grid_estimates_the_sum_over_all_pixels(clip_frame) -> None:
    before, after = clip_frame("box.mp4", 0), clip_frame("box.mp4", 150)
    exact = [
        cv2.cvtColor(cv2.resize(image, (1920, 1080)), cv2.COLOR_BGR2GRAY).astype(int)
        for image in (before, after)
    ]
    literal = np.abs(exact[1] - exact[0]).sum()
    estimate = luminance_difference(luminance_grid(after), luminance_grid(before))
    assert 0.7 * literal < estimate <= 1.05 * literal


def test_the_grid_is_small() -> None:
    grid = luminance_grid(_grey(10))
    assert (grid.shape, grid.dtype) == ((54, 96), np.float32)


def test_pixels_are_summed_as_eq_4_is_written(clip_frame) -> None:
    before, after = (cv2.resize(clip_frame("box.mp4", index), (1920, 1080)) for index in (0, 150))
    y_before, y_after = (
        cv2.cvtColor(each, cv2.COLOR_BGR2GRAY).astype(int) for each in (before, after)
    )
    change = luminance_difference(luminance_plane(after), luminance_plane(before))
    assert change == np.abs(y_after - y_before).sum()


def test_pixels_see_noise_that_cells_average_out() -> None:
    draw = np.random.default_rng(3)
    noisy = [draw.normal(128, 6, (480, 640, 1)).repeat(3, 2).astype(np.uint8) for _ in range(2)]
    cells, pixels = (luminance_difference(*map(each, noisy)) for each in MEASURES.values())
    assert pixels > 5 * cells


def test_pixels_of_another_source_are_compared_at_the_newer_size(clip_frame) -> None:
    image = clip_frame("box.mp4", 0)
    half = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
    change = luminance_difference(luminance_plane(half), luminance_plane(image))
    assert change < 1920 * 1080  # a grey level
