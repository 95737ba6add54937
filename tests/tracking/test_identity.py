"""Who is who, by place, kind and looks."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.identity import Known, crowded, looks, unlike
from heimdall.tracking.motion import Motion

ONE, OTHER = (100, 100, 140, 200), (120, 105, 160, 205)


def picture(*colors: tuple[tuple[int, int, int, int], tuple[int, int, int]]) -> np.ndarray:
    image = np.full((300, 400, 3), 128, np.uint8)
    for (left, top, right, bottom), color in colors:
        image[top:bottom, left:right] = color
    return image


def known(boxes: np.ndarray, image: np.ndarray, *labels: str) -> Known:
    return Known(
        list(range(len(boxes))), list(labels), np.zeros(len(boxes), int), looks(image, boxes)
    )


def test_who_changed_places_is_known_by_looks():
    boxes = np.array([ONE, OTHER], float)
    red, blue = (20, 20, 220), (220, 20, 20)
    apart = np.array([(20, 100, 60, 200), (220, 105, 260, 205)], float)
    before = picture((tuple(apart[0].astype(int)), red), (tuple(apart[1].astype(int)), blue))
    them = known(apart, before, "person", "person")
    # They were expected side by side in the one order, and are found there in the other.
    now = picture((ONE, blue), (OTHER, red))
    seen = looks(now, np.array([(100, 100, 120, 200), (140, 105, 160, 205)], float))
    found = them.recognised(Motion.of(boxes), boxes, ["person", "person"], seen)
    assert found == [(0, 1), (1, 0)]


def test_a_wavering_label_is_still_the_same_thing():
    boxes = np.array([ONE], float)
    them = known(boxes, picture((ONE, (0, 200, 0))), "car")
    assert them.recognised(Motion.of(boxes), boxes, ["truck"], them.looks) == [(0, 0)]


def test_what_is_far_off_and_looks_otherwise_is_somebody_else():
    boxes, there = np.array([ONE], float), np.array([(170, 100, 210, 200)], float)
    image = picture((ONE, (0, 200, 0)), ((170, 100, 210, 200), (200, 0, 0)))
    them = known(boxes, image, "person")
    assert them.recognised(Motion.of(boxes), there, ["person"], looks(image, there)) == []
    twin = picture((ONE, (0, 200, 0)), ((170, 100, 210, 200), (0, 200, 0)))
    assert them.recognised(Motion.of(boxes), there, ["person"], looks(twin, there)) == [(0, 0)]


def test_who_was_expected_a_little_off_is_still_known_however_sure_that_was():
    boxes = np.array([ONE], float)
    image = picture((ONE, (0, 200, 0)))
    them, sure = known(boxes, image, "person"), Motion.of(boxes)
    sure.cov[:] = 0
    there = boxes + np.array([30, 0, 30, 0])
    assert them.recognised(sure, there, ["person"], them.looks + np.float32(0.15)) == [(0, 0)]
    there += np.array([60, 0, 60, 0])
    assert them.recognised(sure, there, ["person"], them.looks + np.float32(0.15)) == []


def test_looks_outside_of_the_picture_are_unknown():
    seen = looks(picture(), np.array([(500, 10, 540, 60)], float))
    assert np.isnan(seen).all()
    assert 0 < unlike(seen, seen)[0, 0] < 1


def test_crowded_is_who_shares_much_with_another():
    boxes = np.array([ONE, OTHER, (300, 100, 340, 200)], float)
    assert crowded(boxes).tolist() == [True, True, False]
