"""Textures are made once for each array, and those of masks are written again."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.models.results import Mask
from heimdall.render.scene import Scene
from heimdall.render.textures import MaskTexture, TextureCache


class Fake:
    """Counts what is made, and what is let go."""

    made = 0

    def __init__(self, array: np.ndarray) -> None:
        Fake.made += 1
        self.array, self.released = array, False

    def rewrite(self, array: np.ndarray) -> bool:
        if array.shape != self.array.shape:
            return False
        self.array = array
        return True

    def release(self) -> None:
        self.released = True


@pytest.fixture
def cache():
    Fake.made = 0
    return TextureCache(Fake, Fake.rewrite)


def test_the_same_array_is_the_same_texture(cache):
    array = np.zeros((2, 3))
    assert cache.get(array) is cache.get(array)
    assert Fake.made == 1


def test_an_array_each_frame_needs_no_texture_each_frame(cache):
    for _ in range(40):
        array = np.zeros((2, 3))
        assert cache.get(array).array is array
        cache.trim()
    assert Fake.made == 9


def test_a_texture_of_another_size_is_released_and_a_new_one_made(cache):
    first = cache.get(np.zeros((2, 3)))
    for _ in range(20):
        cache.get(np.zeros((4, 5)))
        cache.trim()
    assert first.released


def test_without_a_way_to_write_again_textures_are_released():
    cache = TextureCache(Fake)
    first = cache.get(np.zeros((2, 3)))
    for _ in range(8):
        cache.get(np.zeros((2, 3)))
        cache.trim()
    assert first.released


def test_a_rewritten_mask_shows_the_new_one(headless):
    texture = MaskTexture(headless.ctx, np.zeros((4, 8), np.float32))
    assert texture.extent == (0, 0, 0, 0)
    values = np.full((4, 8), -1, np.float32)  # an own network's: cut off
    values[1, 2:4] = 1
    assert texture.rewrite(values)
    assert texture.extent == (1 / 8, 0, 5 / 8, 3 / 4)
    assert not texture.rewrite(np.zeros((8, 4), np.float32))
    texture.release()


def test_a_new_mask_each_frame_is_drawn_where_it_is(headless):
    scene = Scene(headless)
    for column in range(16):
        values = np.zeros((9, 16), np.float32)
        values[:, column] = 1
        scene.begin(np.zeros((360, 640, 3), np.uint8), 0)
        scene.mask(Mask(values), "#00ff00", 1.0)
        scene.render()
        headless.finish()
        green = headless.read()[180, :, 1]
        assert abs(int(green.argmax()) - (40 * column + 20)) < 24
