"""What says how long a room's metres are: the camera's height, the user, things, sensors; or a
guess."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heimdall.capture import Frame, Motion, Pose
from heimdall.errors import AppError, ConfigError
from heimdall.tracking import Marker, World
from heimdall.tracking.pose.solve import apart

from .standin import (
    FIRST,
    HEIGHT,
    LENS,
    SECOND,
    TO_MAP,
    Run,
    StandIn,
    in_map,
    pixel,
    seen_from,
    table,
)


def test_with_the_cameras_height_the_worlds_metres_are_true(run):
    a = run(camera_height_m=HEIGHT)
    assert not a.show().scale_known
    a.tracker.find(table())
    world = a.show(SECOND)
    assert world.scale_known
    turn, move = apart(world.pose, SECOND)
    assert np.degrees(turn) < 1e-4
    assert move < 1e-6  # z up, and the origin is where the first camera looked


def test_without_it_they_are_a_guess_and_say_so(run):
    a = run()
    a.tracker.find(table())
    world = a.show()
    assert not world.scale_known
    assert all(each.guessed for each in world.found)
    assert world.pose.position[2] == pytest.approx(0.5)  # as it is guessed of a table
    assert world.hit(320, 240).plane.guessed


def test_a_guess_is_put_right_by_the_user_and_stays_so(run):
    a = run()
    a.tracker.find(table())
    world = a.show()
    assert world.scale_source == "guess"
    anchor = world.anchor(world.hit(*pixel((0.2, 0.1, 0))))
    seen, size = anchor.at, world.found[0].size[0]
    world.scale_by(1.5)
    assert (world.scale_known, world.scale_source) == (True, "user")
    a.show()
    assert world.found[0].size[0] == pytest.approx(1.5 * size)
    assert not world.found[0].guessed
    assert world.pose.position[2] == pytest.approx(0.75)
    assert anchor.at == pytest.approx(seen, abs=1e-6)
    a.tracker.find(table(lift=-0.05, reach=0.6))
    world = a.show()
    assert world.scale_source == "user"
    assert world.pose.position[2] == pytest.approx(0.75 / HEIGHT * (HEIGHT + 0.05), rel=0.01)


def tall(foot, height, pose=FIRST, wide=0.06):
    """The box around something upright in the picture."""
    ends = np.array([foot, np.add(foot, (0, 0, height))], float)
    (x, bottom), (_, top) = LENS.pixels(pose.to_camera(ends))
    return float(x) - 200 * wide, float(top), float(x) + 200 * wide, float(bottom)


FEET = [(x, y, 0.0) for x in (-0.2, 0.0, 0.2) for y in (-0.1, 0.1, 0.3)]


def placed(run):
    """A run in which a table was found, its world, and an anchor on that."""
    a = run()
    a.tracker.find(table())
    world = a.show()
    return a, world, world.anchor(world.hit(*pixel((0.2, 0.1, 0))))


def test_things_of_known_height_say_the_metres_and_how_well(run):
    a, world, anchor = placed(run)
    seen = anchor.at
    for number, foot in enumerate(FEET):
        assert world.scale_source == ("guess" if number < 8 else "thing")
        world.size(tall(foot, 0.25), 0.25, spread=0.1)
    assert (world.scale_source, world.scale_known) == ("thing", True)
    assert world.scale_spread == pytest.approx(0.1, abs=0.02)
    a.show()
    assert world.pose.position[2] == pytest.approx(HEIGHT, rel=0.01)
    assert anchor.at == pytest.approx(seen, abs=0.01)
    for foot in FEET[:4]:
        world.size(tall(foot, 0.7), 0.25)  # something else, taken for one
    assert a.show().pose.position[2] == pytest.approx(HEIGHT, rel=0.01)


def test_things_do_not_count_where_something_better_says_the_metres(run):
    for declared in ({"camera_height_m": HEIGHT}, {}):
        a = run(**declared)
        a.tracker.find(table())
        world = a.show()
        if not declared:
            world.scale_by(1.2)
        source = world.scale_source
        for foot in FEET:
            world.size(tall(foot, 0.25), 0.5)
        assert (world.scale_source, world.scale_spread) == (source, None)
        assert source in ("camera height", "user")


def swayed(a: Run, seconds: float, times: float = 1.0) -> None:
    """A hand that holds the camera sways; the sensors say so many times what it does."""
    for number in range(a.number, a.number + round(30 * seconds)):
        now = 2 * np.pi * number / 30 * np.array([0.9, 1.3, 0.6])
        reach = np.array([0.03, 0.02, 0.05])
        pose = seen_from(tuple(FIRST.position + reach * np.sin(now)))
        pushed = -((2 * np.pi * np.array([0.9, 1.3, 0.6])) ** 2) * reach * np.sin(now)
        a.motion = Motion(pose.rotation @ (0, 0, -1), times * pose.rotation @ pushed)
        a.show(pose)


def test_accelerations_say_the_metres_and_how_well(run):
    a, world, anchor = placed(run)
    seen = anchor.at
    swayed(a, 4.0)
    assert world.scale_source == "guess"
    swayed(a, 4.0)
    assert (world.scale_source, world.scale_known) == ("sensors", True)
    assert 0.01 < world.scale_spread < 0.05
    a.show()
    assert world.pose.position[2] == pytest.approx(HEIGHT, rel=3 * world.scale_spread)
    assert anchor.at == pytest.approx(seen, abs=0.02)
    for foot in FEET:
        world.size(tall(foot, 0.25), 0.5, spread=0.3)  # says another length, less surely
    assert world.scale_source == "sensors"
    a.tracker.forget()  # another map has another unit
    assert a.show().scale_source == "guess"


def test_the_surest_says_the_metres(run):
    a = run()
    a.tracker.find(table())
    world = a.show()
    for foot in FEET:
        world.size(tall(foot, 0.25), 0.5, spread=0.3)
    assert world.scale_source == "thing"
    swayed(a, 8.0)
    assert world.scale_source == "sensors"
    assert a.show().pose.position[2] == pytest.approx(HEIGHT, rel=0.1)
    world = run(camera_height_m=HEIGHT)
    world.tracker.find(table())
    world.show()
    swayed(world, 8.0, times=2.0)
    assert (world.world.scale_source, world.world.scale_spread) == ("camera height", None)


def test_what_stands_on_nothing_that_is_known_says_nothing(run):
    a = run()
    world = a.show()  # no plane yet
    for foot in FEET:
        world.size(tall(foot, 0.25), 0.25)
    a.tracker.find(table())
    a.show()
    for _ in FEET:
        world.size((300.0, 300.0, 340.0, 20.0), 0.25)  # upside down
        world.size((300.0, -900.0, 340.0, -700.0), 0.25)  # in the air
    assert world.scale_source == "guess"
    for wrong in (((0, 0, 1, 1), 0.0), ((0, 0, 1, np.nan), 1.0), ((0, 0, 1), 1.0)):
        with pytest.raises(AppError, match="give a box"):
            world.size(*wrong)


def test_a_guess_that_was_put_right_before_there_was_a_plane_is_right_on_it(run):
    a = run()
    a.show().scale_by(2.0)
    a.tracker.find(table())
    world = a.show()
    assert world.pose.position[2] == pytest.approx(1.0)
    assert world.scale_source == "user"


def test_planes_of_a_room_that_was_scaled_are_told_again(run):
    a = run()
    a.tracker.find(table())
    world = a.show()
    world.scale_by(1.5)
    assert [each.name for each in a.show().changed] == ["plane 0"]


def test_a_scale_that_is_known_or_cannot_be_is_refused(run):
    a = run(camera_height_m=HEIGHT)
    with pytest.raises(AppError, match="camera height says"):
        a.show().scale_by(2.0)
    assert a.world.scale_source == "guess"
    a.tracker.find(table())
    assert a.show().scale_source == "camera height"
    b = run()
    with pytest.raises(AppError, match="that is tracked"):
        b.world.scale_by(2.0)
    for factor in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(AppError, match="above 0"):
            b.show().scale_by(factor)


def test_lengths_stay_when_the_plane_is_known_better(run):
    a = run(camera_height_m=HEIGHT)
    a.tracker.find(table())
    a.show()
    lower = table(lift=-0.05)
    tilted = Pose.of(np.array([0.02, 0, 0]), np.zeros(3)).rotation
    pose = Pose(TO_MAP.rotation @ tilted @ TO_MAP.rotation.T @ lower.pose.rotation,
                lower.pose.translation)  # fmt: skip
    a.tracker.find(replace(lower, pose=pose))
    world = a.show()
    assert world.found[0].normal == pytest.approx((0, 0, 1), abs=1e-9)
    assert world.found[0].pose.translation[2] == pytest.approx(0, abs=1e-9)
    assert world.pose.position[2] == pytest.approx(HEIGHT + 0.05, abs=0.02)


@pytest.mark.parametrize("height", [0.0, -1.0, float("nan"), float("inf")])
def test_a_height_that_cannot_be_is_refused(height):
    with pytest.raises(ConfigError, match="give metres above 0"):
        World(camera_height_m=height)


def test_a_height_beside_targets_is_refused_and_another_run_has_the_same():
    with pytest.raises(ConfigError, match="without targets"):
        World(Marker("DICT_4X4_50", 7, 0.08), camera_height_m=1.0)
    a = World(camera_height_m=HEIGHT, ground=False).fresh()
    b = StandIn()
    b.find(table())
    b.where = [in_map(FIRST)]
    a.begin(b)
    frame = Frame(np.zeros((480, 640, 3), np.uint8), 0, 0, LENS)
    a.thread.hand(frame)
    assert a.thread.settle()
    a.show(frame, 1)
    assert a.scale_known
    assert not a.ground
    a.end()
