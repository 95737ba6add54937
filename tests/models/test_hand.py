from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heimdall.models import open_pipeline
from heimdall.models.hand import HAND_SIDE, Hands, Palm, crop_transform
from heimdall.models.results import Hand


def _palm(x: float, y: float, side: float, angle: float) -> Palm:
    points = np.full((7, 2), (x, y), np.float32)
    up = np.array([np.sin(angle), -np.cos(angle)])
    points[0] -= (up * side / 2).astype(np.float32)
    points[2] += (up * side / 2).astype(np.float32)
    half = side / 2
    return Palm(np.array([x - half, y - half, x + half, y + half], np.float32), points, 0.9)


palms = st.builds(
    _palm, st.floats(0, 1920), st.floats(0, 1080), st.floats(10, 600), st.floats(-3.1, 3.1)
)


def _apply(transform: np.ndarray, point: np.ndarray) -> np.ndarray:
    return transform[:, :2] @ point + transform[:, 2]


@given(palms)
def test_the_crop_turns_the_hand_upright(palm: Palm) -> None:
    transform = crop_transform(palm)
    wrist, knuckle = (_apply(transform, palm.points[index]) for index in (0, 2))
    assert knuckle[0] == pytest.approx(wrist[0], abs=0.05)
    assert knuckle[1] < wrist[1]
    assert np.linalg.det(transform[:, :2]) > 0  # turned and scaled, never mirrored


@given(palms, st.floats(0, HAND_SIDE), st.floats(0, HAND_SIDE))
def test_crop_points_come_back_to_the_frame(palm: Palm, x: float, y: float) -> None:
    transform = crop_transform(palm)
    back = cv2.invertAffineTransform(transform)
    assert _apply(transform, _apply(back, np.array([x, y]))) == pytest.approx((x, y), abs=0.05)


def test_the_crop_reaches_beyond_the_palm_towards_the_fingers() -> None:
    transform = crop_transform(_palm(320, 240, 100, 0))
    assert _apply(transform, np.array([320.0, 190.0])) == pytest.approx((112, 112))
    assert transform[0, 0] == pytest.approx(HAND_SIDE / 260)


def test_a_palm_without_direction_still_gives_a_crop() -> None:
    palm = Palm(np.array([10, 10, 10, 10], np.float32), np.zeros((7, 2), np.float32), 0.9)
    assert np.isfinite(crop_transform(palm)).all()


def _palm_outputs() -> dict[str, np.ndarray]:
    return {
        "Identity": np.zeros((1, 2016, 18), np.float32),
        "Identity_1": np.full((1, 2016, 1), -20, np.float32),
    }


def test_a_hand_made_anchor_gives_its_palm() -> None:
    pipeline = Hands()
    outputs = _palm_outputs()
    anchor = 2 * (24 * 10 + 6)  # row 10, column 6 of stride 8: centre (52, 84) of 192
    outputs["Identity_1"][0, anchor] = 3
    outputs["Identity"][0, anchor, :4] = (4, -4, 48, 24)
    outputs["Identity"][0, anchor, 4:6] = (0, 12)  # the wrist
    context = pipeline.prepare(0, np.zeros((384, 384, 3), np.uint8), [], {})[0].context
    (palm,) = pipeline.decode(0, outputs, context)
    assert palm.box == pytest.approx((64, 136, 160, 184), abs=1e-3)
    assert palm.points[0] == pytest.approx((104, 192), abs=1e-3)
    assert palm.score == pytest.approx(0.9526, abs=1e-3)


@pytest.mark.parametrize(("score", "found"), [(0.0, 2), (0.95, 1), (0.96, 0), (1.0, 0)])
def test_the_ends_of_the_score_are_scores(score: float, found: int) -> None:
    pipeline, outputs = Hands(score=score), _palm_outputs()
    outputs["Identity_1"][0, 500] = 3  # a score of 0.9526
    outputs["Identity"][0, :, 2:4] = 1
    context = pipeline.prepare(0, np.zeros((384, 384, 3), np.uint8), [], {})[0].context
    assert len(pipeline.decode(0, outputs, context)) == found


def test_no_palm_means_no_crops_and_no_hands() -> None:
    pipeline, image = Hands(), np.zeros((480, 640, 3), np.uint8)
    context = pipeline.prepare(0, image, [], {})[0].context
    palms = pipeline.decode(0, _palm_outputs(), context)
    assert pipeline.prepare(1, image, [palms], {}) == []
    assert pipeline.combine([[palms]], image) == []
    assert pipeline.combine([[palms], []], image) == []


def test_one_hand_found_twice_counts_once() -> None:
    points = np.random.default_rng(0).uniform(0, 100, (21, 3)).astype(np.float32)
    hand, twin = Hand(points, 0.9, "left"), Hand(points + 1, 0.8, "left")
    other = Hand(points + 500, 0.7, "right")
    image = np.zeros((480, 640, 3), np.uint8)
    assert Hands().combine([[], [hand, twin, None, other]], image) == [hand, other]


@pytest.mark.parametrize("index", [0, 60, 240, 450])
def test_the_hand_on_the_box_is_found_where_it_is(run, clip_frame, index: int) -> None:
    (hand,) = run(open_pipeline("hand"), clip_frame("box.mp4", index))
    middle = hand.points[:, :2].mean(axis=0)
    assert 200 < middle[0] < 380
    assert 0 < middle[1] < 150
    assert hand.side == "left"


def test_the_hand_on_the_cup_points_left_and_pinches(run, clip_frame) -> None:
    (hand,) = run(open_pipeline("hand"), clip_frame("cup.mp4", 30))
    assert hand.points[9, 0] < hand.points[0, 0] - 50  # middle knuckle left of the wrist
    assert hand.pinch < 0.35


def test_landmarks_turn_with_the_picture(run, clip_frame) -> None:
    image = clip_frame("cup.mp4", 30)
    (upright,) = run(open_pipeline("hand"), image)
    (turned,) = run(open_pipeline("hand"), cv2.rotate(image, cv2.ROTATE_90_CLOCKWISE))
    back = np.column_stack([turned.points[:, 1], image.shape[0] - turned.points[:, 0]])
    assert np.abs(back - upright.points[:, :2]).mean() < 25


def test_an_empty_room_holds_no_hand(run) -> None:
    assert run(open_pipeline("hand"), np.full((480, 640, 3), 90, np.uint8)) == []
