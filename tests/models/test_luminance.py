from __future__ import annotations

import cv2
import numpy as np
import pytest

from heimdall.models.luminance import luminance_difference, luminance_grid


def _grey(level: int, height: int = 480, width: int = 640) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


def test_an_unchanged_picture_has_no_variation() -> None:
    assert luminance_difference(luminance_grid(_grey(90)), luminance_grid(_grey(90))) == 0


@pytest.mark.parametrize("size", [(240, 320), (480, 640), (720, 1280), (1080, 1920)])
def test_one_grey_level_counts_every_1080p_pixel_once(size) -> None:
    change = luminance_difference(
        luminance_grid(_grey(91, *size)), luminance_grid(_grey(90, *size))
    )
    assert change == pytest.approx(1920 * 1080)


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
