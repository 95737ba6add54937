"""What a pose thread tells of a room's map."""

from __future__ import annotations

import numpy as np

from heimdall.tracking.world.locator import Locator

from .standin import EMPTY, FIRST, LENS, StandIn, in_map, table


def test_nothing_is_told_of_a_map_that_may_turn_out_to_be_none():
    follower = StandIn()
    follower.find(table(0))
    follower.where = ["initializing", in_map(FIRST), "relocalizing"]
    locator = Locator(follower)
    found = [locator.advance(EMPTY, LENS, n).layout for n in range(3)]
    assert [len(each.keyframes) for each in found] == [0, 2, 2]
    assert [len(each.planes.planes) for each in found] == [0, 1, 1]
    assert found[1] is found[2]
    assert np.size(found[0].points) == 0
