"""Gestures of hands that a kinematic model makes: bones of a real hand's lengths, joints bent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heimdall.models import open_pipeline
from heimdall.models.gestures import GESTURES, bends, gesture
from heimdall.models.results import Hand

# Metres in the hand's own axes: x towards the thumb, y along the middle finger, z out of the palm.
KNUCKLES = {5: (0.026, 0.088), 9: (0.004, 0.092), 13: (-0.017, 0.085), 17: (-0.036, 0.074)}
BONES = {5: (45, 26, 20), 9: (50, 30, 21), 13: (46, 29, 21), 17: (36, 21, 18)}  # mm
FAN = {5: 6.0, 9: 0.0, 13: -5.0, 17: -12.0}  # degrees, stretched
OUT, IN = (10, 10, 5), (80, 95, 55)  # degrees at knuckle and joints
HALF = (35, 45, 25)
THUMB = np.array([(0.022, 0.018, 0.008), (0.047, 0.046, 0.012)])  # its first two joints
THUMB_BONES = (33, 27)


def finger(knuckle: int, bent: tuple[float, ...], fan: float) -> np.ndarray:
    """Joints (4, 3) from the knuckle to the tip."""
    at = np.array([*KNUCKLES[knuckle], 0.0])
    found, angle = [at], 0.0
    c, s = np.cos(np.radians(fan)), np.sin(np.radians(fan))
    for bone, more in zip(BONES[knuckle], bent, strict=True):
        angle += np.radians(more)
        along, out = np.cos(angle), np.sin(angle)
        at = at + bone / 1000 * np.array([s * along, c * along, out])
        found.append(at)
    return np.array(found)


def thumb(*towards: tuple[float, float, float]) -> np.ndarray:
    """Joints (4, 3), the outer two bones in these directions."""
    found = list(THUMB)
    for bone, way in zip(THUMB_BONES, towards, strict=True):
        found.append(found[-1] + bone / 1000 * np.array(way) / np.linalg.norm(way))
    return np.array(found)


SIDEWAYS = thumb((0.7, 0.7, 0.1), (0.65, 0.75, 0.1))
ACROSS = thumb((-0.5, 0.45, 0.75), (-0.95, 0.15, 0.3))


def hand(thumbed: np.ndarray, *fingers: tuple[float, ...], spread: float = 1.0) -> np.ndarray:
    points = np.zeros((21, 3))
    points[1:5] = thumbed
    for knuckle, bent in zip(KNUCKLES, fingers, strict=True):
        points[knuckle : knuckle + 4] = finger(knuckle, bent, spread * FAN[knuckle])
    return points


def pinching() -> np.ndarray:
    points = hand(SIDEWAYS, (45, 60, 30), (30, 40, 20), (25, 35, 20), (25, 30, 20))
    points[3] = (0.055, 0.075, 0.035)
    points[4] = points[8] + (0.004, -0.008, 0.0)
    return points


HANDS = {
    "open palm": hand(SIDEWAYS, OUT, OUT, OUT, OUT),
    "fist": hand(ACROSS, IN, IN, IN, IN),
    "point": hand(ACROSS, OUT, IN, IN, IN),
    "victory": hand(ACROSS, OUT, OUT, IN, IN, spread=2.2),
    "pinch": pinching(),
}
NONE = {
    "half closed": hand(SIDEWAYS, HALF, HALF, HALF, HALF),
    "four fingers": hand(ACROSS, OUT, OUT, OUT, OUT),
    "two fingers side by side": hand(ACROSS, OUT, OUT, IN, IN, spread=0.0),
    "little finger": hand(ACROSS, IN, IN, IN, OUT),
}
THUMB_OUT = hand(SIDEWAYS, IN, IN, IN, IN)

turns = st.tuples(*[st.floats(-1, 1)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1)


def rotation(turn: tuple[float, ...]) -> np.ndarray:
    """The rotation (3, 3) of a quaternion of any length."""
    w, x, y, z = np.array(turn) / np.linalg.norm(turn)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize("name", HANDS)
@given(turn=turns, scale=st.floats(0.3, 3000), mirrored=st.booleans(), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_a_gesture_is_told_however_the_hand_is_turned(name, turn, scale, mirrored, seed) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.001, (21, 3))  # 1 mm
    points = (HANDS[name] + noise) * (-1 if mirrored else 1, 1, 1)
    assert gesture(scale * points @ rotation(turn).T + (300, 200, 0)) == name


@pytest.mark.parametrize("name", NONE)
@given(turn=turns)
@settings(max_examples=20)
def test_what_is_no_gesture_has_no_name(name, turn) -> None:
    assert gesture(NONE[name] @ rotation(turn).T) is None


def thumb_at(angle: float) -> np.ndarray:
    """A fist whose thumb points so many degrees clockwise from up in the picture."""
    flat = THUMB_OUT * (1, -1, 1)  # y down
    x, y = (flat[4] - flat[2])[:2]
    turn = np.radians(angle) - np.arctan2(x, -y)
    c, s = np.cos(turn), np.sin(turn)
    return flat @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    ("angle", "name"),
    [
        *((angle, "thumb up") for angle in (0, 40, -40)),
        *((angle, "thumb down") for angle in (180, -145)),
        *((angle, None) for angle in (90, -90, 60)),
    ],
)
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_thumb_is_up_or_down_in_the_picture(angle, name, mirrored) -> None:
    assert gesture(thumb_at(angle) * (-1 if mirrored else 1, 1, 1)) == name


def test_every_gesture_is_tried() -> None:
    assert {*HANDS, "thumb up", "thumb down"} == set(GESTURES)


def test_bends_are_degrees_of_the_joints() -> None:
    found = bends(HANDS["fist"])
    assert found[1:] == pytest.approx(np.full(4, sum(IN)), abs=16)  # knuckles fan out
    assert bends(HANDS["open palm"])[1:].max() < 45


def test_points_on_one_spot_are_no_error() -> None:
    with np.errstate(all="raise"):
        assert gesture(np.zeros((21, 3))) in (*GESTURES, None)


def test_a_hands_metres_count_where_it_has_them() -> None:
    crushed = (HANDS["open palm"] * (1000, -1000, 0)).astype(np.float32)
    folded = (HANDS["fist"] * (1, -1, 1)).astype(np.float32)
    assert Hand(crushed, 0.9, "left").gesture == "open palm"
    assert Hand(crushed, 0.9, "left", folded).gesture == "fist"


@pytest.mark.parametrize("frame", [0, 60, 110])
def test_a_hand_that_takes_a_cup_by_its_edge_pinches(run, clip_frame, frame) -> None:
    (found,) = run(open_pipeline("hand"), clip_frame("cup.mp4", frame))
    assert found.gesture == "pinch"


@pytest.mark.parametrize("frame", [0, 80, 240])
def test_a_hand_around_a_box_makes_no_gesture(run, clip_frame, frame) -> None:
    (found,) = run(open_pipeline("hand"), clip_frame("box.mp4", frame))
    assert found.gesture is None


def test_a_clenched_hand_is_a_fist(run, five_people) -> None:
    hands = run(open_pipeline("hand"), np.ascontiguousarray(five_people[200:420, 30:380]))
    assert [hand.gesture for hand in hands if hand.side == "right"] == ["fist"]
