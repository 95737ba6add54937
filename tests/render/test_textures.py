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


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64, bool])
def test_an_array_that_is_written_to_is_shown_as_it_is_then(cache, kind):
    array = np.zeros((2, 3), kind)
    texture = cache.get(array)
    for value in (1, 0):
        cache.trim()
        array[1, 2] = value
        assert cache.version(array) == 2 - value
        assert cache.get(array) is texture
        assert texture.array[1, 2] == value
    assert Fake.made == 1


def test_without_a_way_to_write_again_a_changed_array_is_a_new_texture():
    cache = TextureCache(Fake)
    array = np.zeros((2, 3))
    first = cache.get(array)
    cache.trim()
    array += 1
    assert cache.get(array) is not first
    assert first.released
    assert not cache.get(array).released


@pytest.mark.parametrize("row", [0, 1000, 3999])
def test_a_change_of_a_large_array_is_seen_after_some_frames(cache, row):
    array = np.zeros((4000, 1000), np.uint8)
    cache.get(array)
    array[row, 7] = 1
    versions = []
    for _ in range(6):
        cache.trim()
        cache.get(array)
        versions.append(cache.version(array))
    assert versions[-1] == 1
    assert versions == sorted(versions)


def test_an_array_that_cannot_be_written_to_is_not_compared(cache, monkeypatch):
    array = np.zeros((2, 3))
    array.flags.writeable = False
    monkeypatch.setattr("heimdall.render.textures.cv2.norm", None)
    for _ in range(3):
        cache.get(array)
        cache.trim()
    assert Fake.made == 1


def test_as_many_are_kept_as_a_frame_uses(cache):
    arrays = [np.zeros((2, 3)) for _ in range(20)]
    for _ in range(5):
        for array in arrays:
            cache.get(array)
        cache.trim()
    assert Fake.made == 20
    for _ in range(2):  # and no longer than they are used
        cache.get(arrays[0])
        cache.trim()
    assert len(cache._kept) == 8


def test_a_picture_that_an_app_draws_into_is_shown_as_it_is(headless):
    scene = Scene(headless)
    canvas = np.zeros((10, 10, 3), np.uint8)
    for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255)):
        canvas[:] = colour
        scene.begin(np.zeros((180, 320, 3), np.uint8), 0)
        scene.picture(canvas, [(0, 0), (320, 0), (320, 180), (0, 180)])
        scene.render()
        headless.finish()
        assert headless.read()[headless.size[1] // 2, headless.size[0] // 2].tolist() == [*colour]


def test_a_background_that_an_app_draws_into_is_shown_as_it_is(headless):
    scene, nowhere = Scene(headless), Mask(np.zeros((9, 16), np.float32))
    canvas = np.zeros((180, 320, 3), np.uint8)
    for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255)):
        canvas[:] = colour
        scene.begin(np.zeros((180, 320, 3), np.uint8), 0)
        scene.background(canvas, nowhere)
        scene.render()
        headless.finish()
        assert headless.read()[headless.size[1] // 2, headless.size[0] // 2].tolist() == [*colour]


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
