import numpy as np
import pytest

from heimdall.render.glyphs import Glyphs


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
