"""Boxes of things that move by themselves: where they go, and who they are."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from benchmarks.movers import passings, street
from benchmarks.street import Seen, Street, visible
from heimdall.models.results import Detection
from heimdall.tracking import Tracker

SIZE = 60


def box(left: float, top: float = 150.0) -> Detection:
    return Detection("person", 0.9, (left, top, left + SIZE, top + SIZE))


def see(tracker: Tracker, frame) -> None:
    tracker.advance(frame)
    tracker.show(frame)


def test_a_small_thing_is_followed_from_the_frame_of_a_late_result(tracker, shot):
    frames = [shot(n, actor=(200 + 4 * n, 150, SIZE)) for n in range(20)]
    for frame in frames:
        see(tracker, frame)
    tracker.renew("detect", [box(204)], frames[1])
    assert tracker.carried("detect")[0].box == pytest.approx((276, 150, 336, 210), abs=4)


def test_an_id_stays_from_result_to_result_and_is_not_given_again(tracker, shot):
    frames = [shot(n, actor=(100 + 4 * n, 150, SIZE)) for n in range(40)]
    ids = []
    for n, frame in enumerate(frames):
        see(tracker, frame)
        if n % 10 == 9:
            found = [box(100 + 4 * (n - 9)), box(500, 300)]
            tracker.renew("detect", found[:: (-1) ** n], frames[n - 9])
            there = sorted(tracker.carried("detect"), key=lambda each: each.box[0])
            ids.append([each.id for each in there])
    assert ids[0] == ids[1] == ids[2] == ids[3]
    assert len({*ids[0]}) == 2


def test_who_is_missed_for_a_while_is_not_shown_but_known_again(tracker, shot):
    frames = [shot(n) for n in range(8)]
    for frame in frames:
        see(tracker, frame)
    tracker.renew("detect", [box(200), box(400)], frames[0])
    first = {each.box[0] > 300: each.id for each in tracker.carried("detect")}
    tracker.renew("detect", [box(200)], frames[3])
    assert [each.id for each in tracker.carried("detect")] == [first[False]]
    tracker.renew("detect", [], frames[4])
    assert tracker.carried("detect") == []
    tracker.renew("detect", [box(400), box(200)], frames[6])
    assert {each.box[0] > 300: each.id for each in tracker.carried("detect")} == first


def test_who_has_left_the_picture_is_not_shown(tracker, shot):
    for n in range(12):
        see(tracker, shot(n, 8 * n))
        if n == 2:
            tracker.renew("detect", [box(575)], shot(0))
    assert tracker.carried("detect") == []


def test_at_the_edge_the_part_in_the_picture_is_shown(tracker, shot):
    for n in range(5):
        see(tracker, shot(n, 8 * n))
        if n == 1:
            tracker.renew("detect", [box(570)], shot(0))
    left, _, right, _ = tracker.carried("detect")[0].box
    assert (left, right) == pytest.approx((602, 640), abs=3)


def test_another_scene_has_none_of_the_things_before(tracker, shot):
    see(tracker, shot(0))
    tracker.renew("detect", [box(200)], shot(0))
    other = np.zeros_like(shot(0).image)
    other[:, 320:] = np.random.default_rng(2).integers(0, 255, (480, 320, 3))
    see(tracker, replace(shot(1), image=other))
    assert tracker.carried("detect") == []
    tracker.renew("detect", [box(210)], shot(0))  # was computed before
    assert tracker.carried("detect") == []
    tracker.renew("detect", [box(220)], replace(shot(1), image=other))
    assert tracker.carried("detect")[0].box[0] == pytest.approx(220)


def test_key_points_turn_with_the_camera(tracker, shot):
    marks = np.array([[310, 200], [330, 200], [320, 230]], np.float32)
    face = Detection("face", 0.9, (280, 180, 360, 280), marks)
    first = shot(0)
    see(tracker, first)
    tracker.renew("detect", [face], first)
    for n in range(1, 7):
        turned = cv2.getRotationMatrix2D((320, 240), -1.5 * n, 1)
        image = cv2.warpAffine(first.image, turned, (640, 480), borderMode=cv2.BORDER_REFLECT)
        see(tracker, replace(shot(n), image=image))
    wanted = marks @ turned[:, :2].T + turned[:, 2]
    found = tracker.carried("detect")[0].points
    across = found[1] - found[0], wanted[1] - wanted[0]
    angles = [np.degrees(np.arctan2(y, x)) for x, y in across]
    assert angles[0] == pytest.approx(angles[1], abs=1.5)
    assert found == pytest.approx(wanted, abs=4)


def test_on_a_drawn_street_carried_boxes_are_half_as_good_again_as_held_ones():
    found = street(seed=1000, late_ms=540, camera=True, seconds=3.5)
    assert found["carried"] > 1.5 * found["held"]


def test_a_drawn_street_is_the_same_for_the_same_seed():
    one, other = Street(5, seconds=1), Street(5, seconds=1)
    (picture, truth), (again, there) = one.shot(20), other.shot(20)
    assert np.array_equal(picture, again)
    assert truth == there
    assert one.found(truth) == other.found(there)
    assert {each.who for each in visible(truth)} <= {each.who for each in truth}


def test_passing_persons_are_counted_once_each_with_who_kept_his_id():
    def at(who: int, left: float) -> Seen:
        return Seen(who, "person", (left, 0.0, left + 20, 50.0), 1.0)

    truth = [[at(0, 10 * n), at(1, 100 - 10 * n)] for n in range(11)]
    good = [[Detection("person", 1, each.box, id=each.who) for each in every] for every in truth]
    swapped = [
        [replace(each, id=1 - each.id if n > 5 else each.id) for each in every]
        for n, every in enumerate(good)
    ]
    assert passings(truth, good) == (2, 2)
    assert passings(truth, swapped) == (0, 2)
