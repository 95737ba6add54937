"""Heads of characters, and where they go on a face."""

import numpy as np
import pytest

from apps.content import characters
from apps.content.characters import CHARACTERS, EXTENT, EYES, MOUTH, SIDE
from heimdall.errors import AppError

FACE = np.array([(270, 200), (330, 200), (300, 240), (280, 270), (320, 270)], float)


@pytest.mark.parametrize("name", CHARACTERS)
def test_a_head_covers_the_middle_and_leaves_the_corners_free(name):
    head = characters.character(name)
    assert (head.shape, head.dtype) == ((SIDE, SIDE, 4), np.uint8)
    assert (head[SIDE // 2 - 60 : SIDE // 2 + 60, SIDE // 2 - 60 : SIDE // 2 + 60, 3] == 255).all()
    assert head[0, 0, 3] == head[-1, -1, 3] == 0


def test_an_unknown_head_lists_the_known():
    with pytest.raises(AppError, match="panda"):
        characters.character("dragon")


def placed(points, unit):
    """Where a point in face units comes to lie."""
    corners = characters.corners(points)
    share = (np.array(unit) + EXTENT) / (2 * EXTENT)
    return corners[0] + share[0] * (corners[1] - corners[0]) + share[1] * (corners[3] - corners[0])


def test_the_middle_of_eyes_and_mouth_comes_to_lie_on_the_faces():
    middle = (np.array(EYES) + MOUTH) / 2
    assert placed(FACE, middle) == pytest.approx((300, 235), abs=0.5)


def test_a_head_grows_and_turns_with_the_face():
    angle = np.radians(30)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned = 2 * (FACE - 300) @ turn + 300
    before, after = characters.corners(FACE), characters.corners(turned)
    assert after == pytest.approx(2 * (before - 300) @ turn + 300)


def test_a_turned_face_keeps_its_size():
    aside = FACE.copy()
    aside[:2, 0] = (290, 320)  # the eyes come closer together
    side = [np.linalg.norm(np.diff(characters.corners(each)[:2], axis=0)) for each in (FACE, aside)]
    assert side[1] > 0.8 * side[0]


def test_landmarks_on_one_point_give_finite_corners():
    assert np.isfinite(characters.corners(np.full((5, 2), 7.0))).all()
