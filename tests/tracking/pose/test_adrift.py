"""About where the camera went, while no target says it."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.pose.adrift import Adrift
from heimdall.tracking.pose.solve import apart
from tests.tracking.pose.photographed import STRAIGHT, desk, swaying


def test_it_is_near_where_the_camera_is():
    adrift = Adrift()
    adrift.keep(desk().taken(swaying(0)), swaying(0))
    for number in range(1, 12):
        drifted = adrift.advance(desk().taken(swaying(number)), STRAIGHT)
    assert drifted is not None
    turn, metres = apart(drifted, swaying(11))
    assert np.degrees(turn) < 1
    assert metres < 0.01


def test_nothing_to_follow_says_nothing():
    adrift = Adrift()
    assert adrift.advance(desk().taken(swaying(0)), STRAIGHT) is None
    plain = np.full((360, 640), 120, np.uint8)
    adrift.keep(plain, swaying(0))
    assert adrift.advance(plain, STRAIGHT) is None
    adrift.keep(desk().taken(swaying(0)), swaying(0))
    assert adrift.advance(plain, STRAIGHT) is None
    assert adrift.advance(desk().taken(swaying(0)), STRAIGHT) is None


def test_it_ends_for_it_drifts():
    adrift, frame = Adrift(), desk().taken(swaying(0))
    adrift.keep(frame, swaying(0))
    said = [adrift.advance(frame, STRAIGHT) is not None for _ in range(80)]
    assert said[0]
    assert not said[-1]
    adrift.keep(frame, swaying(0))
    adrift.forget()
    assert adrift.advance(frame, STRAIGHT) is None
