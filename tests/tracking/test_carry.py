"""Results of every kind arrive where the picture has gone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heimdall.models.results import Body, Detection, Hand, Mask, Picture, TextRegion
from heimdall.tracking.carry import carrier as open_carrier
from heimdall.tracking.flow import Flow, Tracks

SIZE = (640, 480)
SQUARE = np.array([[200, 150], [400, 150], [400, 350], [200, 350]], np.float32)


def things() -> list:
    hand = np.column_stack([np.linspace(200, 400, 21), np.linspace(150, 350, 21), np.ones(21)])
    joints = np.column_stack([np.linspace(200, 400, 17), np.linspace(150, 350, 17), np.ones(17)])
    return [
        Detection("face", 0.9, (200, 150, 400, 350), SQUARE + 10),
        Detection("cup", 0.9, (200, 150, 400, 350)),
        Hand(hand.astype(np.float32), 0.9, "left"),
        Body(joints.astype(np.float32)),
        TextRegion(SQUARE, 0.9),
    ]


def carrier(result: Any, tracks: Tracks, before: Any = None) -> Any:
    return open_carrier(result, tracks, SIZE, before)


def places(thing) -> np.ndarray:
    if isinstance(thing, Detection):
        box = np.reshape(thing.box, (2, 2))
        return box if thing.points is None else np.vstack([box, thing.points])
    if isinstance(thing, Hand):
        return thing.points[:, :2]
    return thing.joints[:, :2] if isinstance(thing, Body) else thing.corners


def follow(carried, flow: Flow, frames) -> None:
    for frame in frames:
        carried.follow(flow.advance(frame.image, frame.sequence, dense=True))


@pytest.mark.parametrize("thing", things(), ids=lambda thing: type(thing).__name__)
def test_a_thing_moves_with_the_picture_and_stays_what_it_is(thing, shot):
    flow = Flow()
    carried = carrier([thing], flow.advance(shot(0).image, 0))
    follow(carried, flow, [shot(n, 5 * n, -3 * n) for n in range(1, 9)])
    there = carried.value()[0]
    assert type(there) is type(thing)
    assert places(there) - places(thing) == pytest.approx(
        np.tile((40.0, -24.0), (len(places(thing)), 1)), abs=0.7
    )
    if isinstance(thing, Hand):
        assert there.points[:, 2] == pytest.approx(thing.points[:, 2])
        assert there.side == "left"


def test_a_thing_that_moves_through_a_still_picture_is_followed(shot):
    flow, box = Flow(), (200, 150, 320, 270)
    carried = carrier(
        [Detection("cup", 0.9, box)],
        flow.advance(shot(0, actor=(200, 150, 120)).image, 0),
    )
    follow(carried, flow, [shot(n, actor=(200 + 6 * n, 150 + 2 * n, 120)) for n in range(1, 9)])
    assert carried.value()[0].box == pytest.approx((248, 166, 368, 286), abs=3)


def test_a_mask_goes_with_what_it_covers(shot):
    flow, values = Flow(), np.zeros((144, 192), np.float32)
    values[45:81, 60:96] = 1  # the actor, in cells of 10/3 pixels
    first = flow.advance(shot(0, actor=(200, 150, 120)).image, 0, dense=True)
    carried = carrier(Mask(values), first)
    follow(carried, flow, [shot(n, actor=(200 + 6 * n, 150, 120)) for n in range(1, 9)])
    wanted = np.zeros_like(values, bool)
    wanted[45:81, 74:110] = True  # 48 pixels to the right
    found = carried.value().values > 0.5
    # Left where it was, it would overlap by 0.44; what is uncovered behind the actor is a guess.
    assert (found & wanted).sum() / (found | wanted).sum() > 0.7


def test_a_new_result_is_taken_over_without_a_jump(shot):
    flow = Flow()
    start = flow.advance(shot(0).image, 0)
    old = carrier([Detection("cup", 0.9, (200, 150, 300, 250))], start)
    new = carrier([Detection("cup", 0.9, (210, 150, 310, 250))], start, old)
    new.replace(old)
    lefts = [new.value()[0].box[0]]
    for n in range(1, 8):
        new.follow(flow.advance(shot(n).image, n))
        lefts.append(new.value()[0].box[0])
    assert lefts[0] == pytest.approx(200, abs=0.1)
    assert lefts == sorted(lefts)
    assert lefts[-1] == pytest.approx(210, abs=0.5)


def test_another_label_is_another_thing_and_shows_at_once(shot):
    start = Flow().advance(shot(0).image, 0)
    old = carrier([Detection("cup", 0.9, (200, 150, 300, 250))], start)
    new = carrier([Detection("book", 0.9, (210, 150, 310, 250))], start, old)
    new.replace(old)
    assert new.value()[0].box == pytest.approx((210, 150, 310, 250))


def test_a_new_mask_fades_in(shot):
    flow = Flow()
    start = flow.advance(shot(0).image, 0, dense=True)
    old, new = (carrier(Mask(np.full((36, 48), v, np.float32)), start) for v in (0, 1))
    new.replace(old)
    levels = []
    for n in range(1, 8):
        levels.append(float(new.value().values.mean()))
        new.follow(flow.advance(shot(n).image, n, dense=True))
    assert levels == sorted(levels)
    assert 0 < levels[0] < 0.6
    assert levels[-1] == 1


def test_what_has_no_place_in_the_picture_is_not_carried():
    nothing = Tracks(0, np.empty(0, int), np.empty((0, 2), np.float32))
    assert carrier(Picture(np.zeros((2, 2, 3), np.uint8)), nothing) is None
    assert carrier({"own": "type"}, nothing) is None
    assert carrier([], nothing).value() == []
