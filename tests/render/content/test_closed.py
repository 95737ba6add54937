"""Closed surfaces are told from those whose inside may be seen."""

import numpy as np
import pytest

from heimdall.render.content.detail import closed
from heimdall.render.content.model import TRIANGLES, DrawCall

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
CUBE = np.array([[a, b, c, a, c, d] for a, b, c, d in SIDES]).reshape(-1, 3)


def part(points, triangles):
    """Every corner is a vertex of its own, as where normals or pictures differ."""
    spread = np.asarray(points, np.float32)[np.asarray(triangles).ravel()]
    count = len(spread)
    return DrawCall(
        mode=TRIANGLES,
        material=0,
        positions=spread,
        normals=np.zeros((count, 3), np.float32),
        uvs=np.zeros((count, 4), np.float32),
        colours=np.zeros((count, 4), np.uint8),
        indices=np.arange(count, dtype=np.uint32),
    )


def test_a_cube_is_closed_however_its_corners_are_shared():
    assert closed(part(CORNERS, CUBE))
    # triangles of no size change nothing
    assert closed(part(CORNERS, np.vstack([CUBE, [[0, 0, 1]]])))


@pytest.mark.parametrize(
    ("what", "triangles"),
    [
        ("a side is missing", CUBE[2:]),
        ("seen from inside", CUBE[:, ::-1]),
        ("one side faces the wrong way", np.vstack([CUBE[:2, ::-1], CUBE[2:]])),
        ("a fin", np.vstack([CUBE, [[0, 1, 7]]])),
        ("twice", np.vstack([CUBE, CUBE])),
    ],
)
def test_what_may_be_seen_from_inside_is_not(what, triangles):
    assert not closed(part(CORNERS, triangles)), what


def test_each_piece_has_to_face_outwards():
    apart = np.vstack([CORNERS, CORNERS * 0.1 + 5])
    assert closed(part(apart, np.vstack([CUBE, CUBE + 8])))
    assert not closed(part(apart, np.vstack([CUBE, CUBE[:, ::-1] + 8])))
