"""How long a map's unit is, by accelerations along hand-held ways that are known."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.tracking.world.lengths import Length, Lengths
from heimdall.tracking.world.shaken import MOST_SPREAD, SAME_SPREAD, Shaken, unit

UNIT = 0.4  # metres
STEP_S = 1 / 30
LEVEL = np.tile(np.eye(3), (400, 1, 1))
TURN = Pose.of(np.array([0.3, -1.0, 0.5]), np.array([1.0, 2.0, -3.0]))  # the map's axes


def shaken(seed: int, seconds: float = 12.0, sway: float = 0.03):
    """Times, places (n, 3) in metres, accelerations and attitudes of a hand that sways by some
    centimetres while it is carried on."""
    random = np.random.default_rng(seed)
    times = np.arange(0, seconds, STEP_S)
    places = 0.1 * times[:, None] * random.normal(size=3)
    pushed, turns = np.zeros_like(places), np.zeros_like(places)
    for hz in random.uniform(0.2, 2.0, 8):
        way, round_s = sway / 2 * random.normal(size=3) / max(hz, 0.5), 2 * np.pi * hz
        phase = np.outer(np.sin(round_s * times + random.uniform(0, 6)), way)
        places += phase
        pushed -= round_s**2 * phase
        turns += np.outer(np.sin(0.7 * round_s * times), 0.1 * random.normal(size=3))
    return times, places, pushed, turns


def looks(seed: int, noise: float = 0.05, bias: float = 0.1, stray: float = 0.0005, **more):
    """What an accelerometer with that noise and bias, m/s^2, says of such a way in a map whose
    places are off by ``stray`` metres."""
    random = np.random.default_rng(100 + seed)
    times, places, pushed, turns = shaken(seed, **more)
    off = bias * random.normal(size=3)
    seen, found = Shaken(), []
    for at_s, place, push, turn in zip(times, places, pushed, turns, strict=True):
        world = Pose.of(turn, np.zeros(3))
        place = place + stray * random.normal(size=3)
        camera = Pose(world.rotation, -world.rotation @ place)
        there = camera.after(TURN.inverse)
        said = camera.rotation @ push + off + noise * random.normal(size=3)
        look = seen.add(float(at_s), Pose(there.rotation, there.translation / UNIT), said)
        found += [look] if look is not None else []
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_unit_is_found_as_well_as_is_said(seed):
    together = Lengths()
    for each in looks(seed):
        together.add(each)
    found = together.length
    assert found is not None
    assert SAME_SPREAD <= found.spread < 0.06
    assert found.metres == pytest.approx(UNIT, rel=3 * found.spread)
    assert found.metres == pytest.approx(UNIT, rel=0.06)


def test_whoever_is_hardly_shaken_says_nothing():
    assert looks(1, sway=0.0) == []
    assert all(each.spread > 0.05 for each in looks(1, sway=0.002))
    still, times, level = np.zeros((75, 3)), np.arange(75) * STEP_S, LEVEL[:75]
    assert unit(times, still, level, still) is None
    assert unit(times, still, level, np.ones((75, 3))) is None


def test_a_sensor_with_other_axes_says_nothing_or_not_surely():
    times, places, pushed, _ = shaken(3)
    part = slice(0, 75)
    seen = times[part], places[part] / UNIT, LEVEL[part]
    right = unit(*seen, pushed[part])
    assert right is not None
    assert right.metres == pytest.approx(UNIT, rel=0.03)
    assert unit(*seen, -pushed[part]) is None
    turned = unit(*seen, pushed[part][:, [1, 2, 0]])
    assert turned is None or 5 * right.spread < turned.spread < MOST_SPREAD


def test_frames_that_are_missing_begin_a_new_stretch():
    seen, (times, places, pushed, _) = Shaken(), shaken(2)
    found = []
    for number, at_s in enumerate(times):
        if number % 40 < 6:
            continue  # 0.2 s of each 1.3
        pose = Pose(np.eye(3), -places[number] / UNIT)
        found.append(seen.add(float(at_s), pose, pushed[number]))
    assert not any(found)


def test_a_few_looks_that_are_wrong_change_little():
    together = Lengths()
    for number in range(12):
        together.add(Length(2.0 if number % 4 == 0 else UNIT, 0.05))
    assert together.length is not None
    assert together.length.metres == pytest.approx(UNIT)
