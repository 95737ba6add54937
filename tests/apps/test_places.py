"""Places in a picture."""

from __future__ import annotations

import numpy as np
import pytest

from apps.content.places import around, cut, height, sheet

LINE = np.array([(100, 50), (300, 60), (299, 80), (99, 70)], float)


def test_a_lines_height_is_its_shorter_side():
    assert height(LINE) == pytest.approx(np.hypot(1, 20))


def test_a_box_is_around_all_points_with_a_margin():
    assert around(LINE, 4) == (95, 46, 304, 84)
    assert around(LINE, (10, 0)) == (89, 50, 310, 80)


def test_what_is_cut_out_is_a_copy_and_ends_at_the_picture():
    image = np.arange(300, dtype=np.uint16).reshape(10, 10, 3)
    part = cut(image, (-5, 7, 4, 90))
    assert part.shape == (3, 4, 3)
    assert (part == image[7:, :4]).all()
    assert not np.shares_memory(part, image)


@pytest.mark.parametrize("place", [(300, 200), (-50, 900), (700, 10)])
def test_a_page_is_inside_of_the_picture_and_turned_to_its_text(place):
    page = np.zeros((200, 100, 4), np.uint8)
    text = np.array([320.0, 240.0])
    corners, edge = sheet(page, np.array(place), 0.5, (640, 480), text)
    assert (corners >= 0).all()
    assert (corners <= (640, 480)).all()
    assert np.ptp(corners[:, 0]) == pytest.approx(120)  # half as wide as it is tall
    middle = corners.mean(axis=0)
    assert np.linalg.norm(edge - text) < np.linalg.norm(2 * middle - edge - text)
    left, right = corners[3, 1] - corners[0, 1], corners[2, 1] - corners[1, 1]
    assert (left > right) == (middle[0] < text[0])  # the edge beside the text is the far one
