"""Models are drawn less finely before frames are late, and finely again when there is time."""

import pytest

from heimdall.render.content.quality import COARSEST, SCALES, Quality

INTERVAL = 33_000_000
FRAMES = 400


def run(quality, triangles, pixels, took_ms, frames=FRAMES):
    """So many frames of such a model; what a frame takes depends on how finely it is drawn."""
    for _ in range(frames):
        quality.begin()
        quality.covers(pixels)
        share = (1.0, 0.4, 0.15, 0.05)[min(quality.coarser, COARSEST)]
        quality.drew(int(triangles * share))
        quality.took(took_ms(share, quality.scale) * 1e6, INTERVAL)


def test_what_is_in_time_is_drawn_as_finely_as_can_be():
    quality = Quality(software=True)
    run(quality, 20_000, 300_000, lambda share, scale: 12)
    assert (quality.coarser, quality.scale) == (0, 1.0)


def test_many_triangles_become_fewer():
    quality = Quality(software=True)
    run(quality, 100_000, 100_000, lambda share, scale: 2 + 40 * share)
    assert quality.coarser > 0
    assert quality.scale == 1.0


def test_many_pixels_become_fewer():
    quality = Quality(software=True)
    run(quality, 1_000, 900_000, lambda share, scale: 2 + 36 * scale**2)
    assert quality.scale < 1
    assert quality.coarser == 0


def test_where_nothing_helps_everything_is_as_coarse_as_can_be():
    quality = Quality(software=True)
    run(quality, 100_000, 900_000, lambda share, scale: 60)
    assert (quality.coarser, quality.scale) == (COARSEST, SCALES[-1])


def test_when_there_is_time_again_it_is_drawn_finely_again():
    quality = Quality(software=True)
    run(quality, 100_000, 900_000, lambda share, scale: 60)
    run(quality, 100_000, 900_000, lambda share, scale: 5, frames=1000)
    assert (quality.coarser, quality.scale) == (0, 1.0)


def test_it_does_not_swing_between_two_levels():
    quality = Quality(software=True)
    seen = []
    for _ in range(40):
        run(quality, 100_000, 100_000, lambda share, scale: 6 + 24 * share, frames=50)
        seen.append((quality.coarser, quality.scale))
    assert len(set(seen[5:])) == 1


@pytest.mark.parametrize(("pixels", "level"), [(200_000, 0), (5_000, 1), (2_000, 2), (10, 3)])
def test_small_models_have_no_more_triangles_than_pixels(pixels, level):
    assert Quality(software=True).level(10_000, pixels) == level


def test_a_frame_without_models_says_nothing_about_them():
    quality = Quality(software=True)
    for _ in range(FRAMES):
        quality.begin()
        quality.took(60e6, INTERVAL)
    assert (quality.coarser, quality.scale) == (0, 1.0)
