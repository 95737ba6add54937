import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heimdall.render.layout import Letterbox

sizes = st.tuples(st.integers(16, 4000), st.integers(16, 4000))


@given(sizes, sizes, st.floats(0, 1), st.floats(0, 1))
def test_screen_and_picture_are_inverse(picture, surface, u, v):
    box = Letterbox.fit(picture, surface)
    point = (u * picture[0], v * picture[1])
    x, y = box.to_picture(*(float(value) for value in box.to_screen(np.array(point))))
    assert abs(x - point[0]) < 0.01 * picture[0]
    assert abs(y - point[1]) < 0.01 * picture[1]


@given(sizes, sizes)
def test_the_picture_fits_and_fills_one_side(picture, surface):
    x, y, width, height = Letterbox.fit(picture, surface).gl_box()
    assert x >= 0
    assert y >= 0
    assert x + width <= surface[0] + 1
    assert y + height <= surface[1] + 1
    assert width >= surface[0] - 1 or height >= surface[1] - 1


@given(sizes, sizes, *[st.floats(-2, 3)] * 4)
def test_a_part_stays_inside_the_picture(picture, surface, left, top, right, bottom):
    box = Letterbox.fit(picture, surface)
    x, y, width, height = box.gl_box()
    px, py, pw, ph = box.gl_part((left, top, right, bottom))
    assert x <= px
    assert y <= py
    assert px + pw <= x + width
    assert py + ph <= y + height
    assert pw >= 0
    assert ph >= 0


@given(sizes, sizes, *[st.floats(0, 1)] * 4)
def test_what_is_free_lies_in_the_picture_and_beside_what_is_covered(picture, surface, a, b, c, d):
    across, down = surface
    place = min(a, b) * across, min(c, d) * down, max(a, b) * across, max(c, d) * down
    box = Letterbox.fit(picture, surface)
    left, top, right, bottom = free = box.free([place], 2)
    assert 0 <= left < right <= picture[0]
    assert 0 <= top < bottom <= picture[1]
    if free != (0, 0, *picture):
        (x, y), (end, low) = box.to_screen(np.array(free).reshape(2, 2))
        assert x >= place[2] or end <= place[0] or y >= place[3] or low <= place[1]


def test_a_panel_at_the_left_and_a_strip_below_leave_what_is_right_and_above():
    box = Letterbox.fit((640, 480), (1280, 720))
    free = box.free([(12, 12, 340, 400), (12, 660, 492, 708)], 12)
    assert free == (128, 8, 632, 432)
    assert box.free([], 12) == (8, 8, 632, 472)
    assert box.free([(12, 12, 100, 400)], 12) == (8, 8, 632, 472)  # on the dark bar alone
