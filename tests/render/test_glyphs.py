from functools import cache

import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.render.glyphs import Glyphs
from heimdall.render.scene import Scene

LINE = "The quick brown fox jumps over the lazy dog"


@pytest.fixture
def glyphs(headless):
    return Glyphs(headless.ctx)


def test_letters_follow_each_other_on_whole_pixels(glyphs):
    rows = glyphs.rows("abc", 10.4, 20.6, 16, "#ffffff")
    assert (np.diff(rows[:, 0]) > 4).all()
    assert (rows[:, :4] == np.round(rows[:, :4])).all()
    assert rows[0, 0] >= 10


def test_spaces_take_room_but_no_quad(glyphs):
    assert len(glyphs.rows("a b", 0, 0, 16, "#ffffff")) == 2
    assert glyphs.width("a b", 16) > glyphs.width("ab", 16)
    assert glyphs.rows("", 0, 0, 16, "#ffffff").shape == (0, 10)


def test_the_atlas_grows_and_keeps_what_it_has(glyphs):
    before = glyphs.rows("Heimdall", 0, 0, 14, "#ffffff")
    for size in range(20, 80, 4):
        more = glyphs.rows("The quick brown fox jumps over the lazy dog", 0, 0, size, "#ffffff")
    assert more[:, 5].max() > before[:, 5].max() + 256  # texel rows: several times the first atlas
    glyphs.use(0)
    assert (glyphs.rows("Heimdall", 0, 0, 14, "#ffffff") == before).all()


def test_letters_do_not_overlap_in_the_atlas(glyphs):
    rows = [glyphs.rows("abcdefghijklmnop", 0, 0, size, "#ffffff") for size in (11, 13, 30)]
    places = np.concatenate(rows)[:, :6].astype(int)
    used = np.zeros((places[:, [3, 5]].sum(axis=1).max(), places[:, [2, 4]].sum(axis=1).max()), int)
    for _, _, width, height, x, y in places:
        used[y : y + height, x : x + width] += 1
    assert used.max() == 1


def test_text_that_grows_for_ever_takes_no_more_room(glyphs):
    heights = []
    for _ in range(3):
        for size in range(20, 200):  # an anchor that is walked up to
            before = glyphs.rows("Heimdall", 0, 0, 14, "#ffffff")
            rows = glyphs.rows(LINE, 0, 0, size, "#ffffff")
            glyphs.use(0)
            assert (glyphs.rows("Heimdall", 0, 0, 14, "#ffffff") == before).all()
            assert (rows[:, 5] + rows[:, 3]).max() <= glyphs._atlas.shape[0]
            glyphs.trim()
        heights.append(glyphs._atlas.shape[0])
    assert max(heights) <= 4096
    assert glyphs._font.cache_info().currsize < 100


def test_a_frame_with_much_text_is_not_drawn_again_and_again(glyphs, monkeypatch):
    drawn, draw = [], glyphs._draw

    @cache
    def glyph(*key):
        drawn.append(key)
        return draw(*key)

    monkeypatch.setattr(glyphs, "_glyph", glyph)
    for _ in range(6):
        for size in range(100, 200, 10):  # 2,900 rows
            glyphs.rows(LINE, 0, 0, size, "#ffffff")
        glyphs.trim()
    assert glyphs._pen[1] > 2048
    assert len(drawn) == len(set(drawn))


def test_more_letters_than_a_texture_holds_are_named(glyphs):
    glyphs._most = 256
    glyphs.rows(LINE, 0, 0, 50, "#ffffff")
    with pytest.raises(ConfigError, match="more than 256 rows"):
        glyphs.rows(LINE, 0, 0, 100, "#ffffff")
    glyphs.use(0)


def test_text_of_many_sizes_stays_in_sight(headless):
    scene = Scene(headless)
    for size in (*range(20, 200, 3), *range(20, 200, 3)):
        scene.begin(np.zeros((360, 640, 3), np.uint8), 0)
        scene.text(LINE, (5, 5), size=size, background=None)
        scene.render()
        headless.finish()
        assert (headless.read() > 200).any()
