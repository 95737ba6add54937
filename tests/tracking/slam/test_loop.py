"""A place that is seen again puts the map right; what only looks like it does not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from benchmarks.trajectory import degrees_between
from heimdall.capture.pose import Pose
from heimdall.tracking.slam import mapper as mapping
from heimdall.tracking.slam.loop import IN_A_ROW, Loops
from heimdall.tracking.slam.mapper import Mapper
from heimdall.tracking.slam.picture import Picture
from heimdall.tracking.slam.tracker import RoomTracker
from tests.tracking.slam.ring import ROUND, Ring, look, standing
from tests.tracking.slam.scene import CAMERA, walk
from tests.tracking.slam.scene import look as look_at_room

DRIFT = np.array([0.004, 0.002, 0.006, 0.001, 0.003, 0.001, 0.006])


def jumbled(picture: np.ndarray, seed: int) -> np.ndarray:
    """The same things, each somewhat elsewhere: as a whole it looks alike."""
    draw, found = np.random.default_rng(seed), picture.copy()
    wide = cv2.copyMakeBorder(picture, 40, 40, 40, 40, cv2.BORDER_REFLECT)
    for y in range(0, picture.shape[0], 60):
        for x in range(0, picture.shape[1], 60):
            v, u = draw.integers(15, 66, 2)
            found[y : y + 60, x : x + 60] = wide[y + v : y + v + 60, x + u : x + u + 60]
    return found


def test_a_loop_takes_the_drift_out_of_the_map():
    ring = Ring(DRIFT, Mapper())
    updates = [ring.go_on() for _ in range(IN_A_ROW - 1)]
    before = ring.off()
    assert before > 0.2  # of a radius of 0.5
    assert not any(each.scales for each in updates)
    closed = ring.go_on()
    assert ring.off() < before / 4
    assert set(closed.keyframes) == set(range(ROUND + IN_A_ROW))
    assert max(closed.scales.values()) == pytest.approx(np.exp(ROUND * DRIFT[6]), rel=0.12)
    assert closed.planes is not None
    assert len(closed.gone)  # points that both ends had
    assert np.isfinite(closed.position).all()


def test_a_loop_is_closed_once():
    ring = Ring(DRIFT, Mapper())
    scales = [ring.go_on().scales for _ in range(IN_A_ROW + 3)]
    last = scales[IN_A_ROW - 1]
    assert all(each[number] == last[number] for each in scales[IN_A_ROW:]
               for number in each.keys() & last.keys())  # fmt: skip


def test_a_map_without_drift_is_left_as_it_is():
    ring = Ring(np.zeros(7), Mapper())
    assert not any(ring.go_on().scales for _ in range(IN_A_ROW + 2))
    assert ring.off() < 0.02


def test_what_looks_alike_but_lies_otherwise_is_no_loop():
    ring = Ring(DRIFT, Mapper())
    for at in range(IN_A_ROW + 1):
        true = look(standing(at))[0]
        other = jumbled(true, at)
        assert Picture(true, CAMERA).thumb @ Picture(other, CAMERA).thumb > 0.5
        assert not ring.go_on(other).scales


class Shrinks(Loops):
    """Says that all lengths are 1.3 times too large, and all is turned, at the fourth keyframe."""

    turn = Pose.of(np.array([0, 0.4, 0.1]), np.array([0.3, 0, 0.2]))

    def close(self, keyframe, near):
        if keyframe.number != 3:
            return []
        for number, each in self._map.keyframes.items():
            pose = Pose(each.pose.rotation, each.pose.translation / 1.3).after(self.turn)
            self._map.move(number, pose, 1.3)
        return [keyframe]


def test_the_tracker_goes_on_where_the_map_has_moved(monkeypatch):
    truth = list(walk(120))

    def played():
        tracker = RoomTracker(Mapper())
        pictures = (look_at_room(pose, seed=at) for at, pose in enumerate(truth))
        found = [tracker.advance(each, CAMERA, at) for at, each in enumerate(pictures)]
        return found, tracker.map.keyframes

    before, _ = played()
    monkeypatch.setattr(mapping, "Loops", Shrinks)
    after, keyframes = played()
    assert [each.tracked for each in before] == [each.tracked for each in after]
    assert {each.scale for each in keyframes.values()} == {1.3}
    for one, other in list(zip(before, after, strict=True))[-20:]:
        pose = Pose(one.pose.rotation, one.pose.translation / 1.3).after(Shrinks.turn)
        assert np.linalg.norm(pose.position - other.pose.position) < 0.01
        assert degrees_between(pose.rotation, other.pose.rotation) < 1
