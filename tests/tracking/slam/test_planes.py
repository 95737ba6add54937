"""Planes are found in noisy points, keep their names while those move, and grow together."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.capture import Pose
from heimdall.tracking.slam.found import FoundPlane, PlaneEvent, Planes
from heimdall.tracking.slam.planes import PlaneFinder

from .rooms import BACK, CUBES, EYE, FLOOR, LEFT, ROOM, TABLE, Piece, Seen, seen

UP = np.array([0.0, 1.0, 0.0])
OVERHEAD = np.array([0.0, 0.8, -0.6])  # of a camera that looks down to the back
STRUCTURE = [each.name for each in ROOM]


def looks(finder: PlaneFinder, room: Seen, count: int, up: np.ndarray | None = None) -> Planes:
    """That many looks at a map that is adjusted in between."""
    for number in range(count):
        found = finder.look(*room.shaken(number).given(), up, OVERHEAD)
    return found


def piece_of(plane: FoundPlane, room: Seen) -> tuple[str, float]:
    """What a plane lies on, and the share of its points that do."""
    numbers, counts = np.unique(room.of[np.isin(room.ids, plane.support)], return_counts=True)
    best = int(np.argmax(counts))
    name = room.pieces[numbers[best]].name if numbers[best] >= 0 else "nothing"
    return name, float(counts[best] / counts.sum())


def off(plane: FoundPlane, piece: Piece) -> tuple[float, float]:
    """Degrees that a plane is turned from a piece, and how far it is off, over its distance."""
    angle = np.degrees(np.arccos(min(float(plane.normal @ piece.normal), 1.0)))
    place = plane.pose.translation
    away = abs(float(piece.normal @ (place - np.asarray(piece.corner))))
    return float(angle), away / float(np.linalg.norm(place - EYE))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("up", [None, UP], ids=["up unknown", "up known"])
def test_a_rooms_planes_are_found_and_right(seed, up):
    room = seen([*ROOM, *CUBES], seed)
    found = looks(PlaneFinder(), room, 4, up)
    names = [piece_of(each, room)[0] for each in found.planes]
    assert sorted(name for name in names if name in STRUCTURE) == sorted(STRUCTURE)
    for plane, name in zip(found.planes, names, strict=True):
        piece = next(each for each in room.pieces if each.name == name)
        angle, away = off(plane, piece)
        assert angle < 2
        assert away < 0.02
        assert piece_of(plane, room)[1] > 0.85  # no wall that goes on over the cubes before it
        assert plane.kind == ("horizontal" if name in ("floor", "table") else "vertical")
    assert found.up @ UP > np.cos(np.radians(1))


def test_a_plane_is_as_large_as_what_is_seen_of_it():
    room = seen(ROOM, 3)
    found = looks(PlaneFinder(), room, 3)
    for plane in found.planes:
        piece = next(each for each in room.pieces if each.name == piece_of(plane, room)[0])
        sides = sorted(np.linalg.norm([piece.u, piece.v], axis=1))
        assert sorted(plane.size) == pytest.approx(sides, rel=0.12)
        assert (np.ptp(plane.outline, axis=0) <= np.add(plane.size, 1e-6)).all()
        assert (np.ptp(plane.outline, axis=0) > 0.8 * np.array(plane.size)).all()


def test_axes_are_a_models_y_is_the_normal_and_z_of_a_wall_leads_down():
    found = looks(PlaneFinder(), seen(ROOM, 4), 3, UP)
    for plane in found.planes:
        turned = plane.pose.rotation
        assert turned.T @ turned == pytest.approx(np.eye(3), abs=1e-9)
        assert np.linalg.det(turned) == pytest.approx(1)
        assert plane.normal @ (EYE - plane.pose.translation) > 0
        if plane.kind == "vertical":
            assert turned[:, 2] @ UP < -0.99


@pytest.mark.parametrize("scale", [0.05, 20.0])
def test_a_maps_axes_and_unit_do_not_matter(scale):
    room = seen(ROOM, 6)
    pose = Pose.of(np.array([0.7, -1.1, 0.4]), np.array([3.0, -1, 2]))
    finder = PlaneFinder()
    for number in range(3):
        moved = room.shaken(number).moved(pose, scale)
        found = finder.look(*moved.given(), None, pose.rotation @ OVERHEAD)
    assert sorted(piece_of(each, room)[0] for each in found.planes) == sorted(STRUCTURE)
    assert found.up @ pose.rotation @ UP > np.cos(np.radians(1))


def test_names_stay_while_the_map_is_adjusted_and_only_what_shows_is_told():
    room, finder = seen(ROOM, 1), PlaneFinder()
    first = {each.id: piece_of(each, room)[0] for each in looks(finder, room, 3).planes}
    events: list[PlaneEvent] = []
    for number in range(10, 22):
        found = finder.look(*room.shaken(number).given(), None, OVERHEAD)
        events += found.events
        assert {each.id: piece_of(each, room)[0] for each in found.planes} == first
    assert [each for each in events if each.what != "updated"] == []
    assert len(events) < 6  # of twelve looks at four planes


def test_a_plane_grows_with_what_is_seen_of_it_and_that_is_told():
    room, finder = seen([FLOOR], 2), PlaneFinder()
    left = room.part(room.points[:, 0] < -0.6)
    before = finder.look(*left.given(), UP).planes[0]
    found = finder.look(*room.given(), UP)
    assert [(each.what, each.id) for each in found.events] == [("updated", before.id)]
    assert max(found.planes[0].size) > 1.8 * min(before.size)
    assert found.planes[0].count > 2 * before.count


def test_two_that_grow_together_become_the_older_one():
    room, finder = seen([FLOOR], 2), PlaneFinder()
    x = room.points[:, 0]
    apart = room.part(np.abs(x) > 0.75)
    found = looks(finder, apart, 2, UP)
    assert len(found.planes) == 2
    older, younger = (each.id for each in found.planes)
    united = finder.look(*room.given(), UP)
    assert [each.id for each in united.planes] == [older]
    merged = [each for each in united.events if each.what == "merged"]
    assert [(each.id, each.into) for each in merged] == [(younger, older)]
    assert max(united.planes[0].size) == pytest.approx(3.6, rel=0.1)


def test_a_table_and_a_shelf_of_one_height_are_two():
    shelf = Piece("shelf", (0.9, 0.75, -1.4), (0.8, 0, 0), (0, 0, 0.5), 150)
    table = Piece("table", (-1.3, 0.75, -0.4), (1.2, 0, 0), (0, 0, 0.9), 300)
    room = seen([FLOOR, table, shelf], 5, clutter=40)
    found = looks(PlaneFinder(), room, 4, UP)
    assert {piece_of(each, room)[0] for each in found.planes} == {"floor", "table", "shelf"}
    assert all(piece_of(each, room)[1] > 0.9 for each in found.planes)


@pytest.mark.parametrize("seed", range(4))
def test_a_wall_with_a_step_is_two(seed):
    near = Piece("near", (-1.8, 0, -1.5), (1.8, 0, 0), (0, 2.4, 0), 250)
    far = Piece("far", (0, 0, -1.3), (1.8, 0, 0), (0, 2.4, 0), 250)
    room = seen([near, far], seed, clutter=20)
    found = looks(PlaneFinder(), room, 4, UP)
    assert len(found.planes) == 2
    assert all(piece_of(each, room)[1] > 0.95 for each in found.planes)


def test_a_wall_is_not_what_was_seen_from_behind():
    room = seen([BACK], 1, clutter=0)
    beyond = 2 * np.array([0, 0, BACK.corner[2]]) - room.seen_from * (0, 0, 1)
    half = np.arange(len(room.ids)) % 2 == 0
    room.seen_from[half] = room.seen_from[half] * (1, 1, 0) + beyond[half] * (0, 0, 1)
    found = looks(PlaneFinder(), room, 3, UP)
    assert len(found.planes) == 2
    one, other = found.planes
    assert one.normal @ other.normal < -0.99


def test_what_is_gone_is_told_and_its_name_is_not_used_again():
    room, finder = seen(ROOM, 1), PlaneFinder()
    known = {each.id for each in looks(finder, room, 3).planes}
    table = next(each.id for each in finder.planes if piece_of(each, room)[0] == "table")
    without = room.part(room.of != ROOM.index(TABLE))
    found = finder.look(*without.given(), None, OVERHEAD)
    assert ("removed", table) in [(each.what, each.id) for each in found.events]
    assert {each.id for each in found.planes} == known - {table}
    again = looks(finder, room, 2)
    assert max(each.id for each in again.planes) > max(known)


def test_another_finder_goes_on_with_the_same_names():
    room, finder = seen(ROOM, 1), PlaneFinder()
    known = looks(finder, room, 3)
    other = PlaneFinder(known)
    found = other.look(*room.given(), None, OVERHEAD)
    assert [each.id for each in found.planes] == [each.id for each in known.planes]
    assert [each.what for each in found.events if each.what != "updated"] == []


def test_until_something_lies_below_no_plane_is_level_or_upright():
    wall = seen([BACK], 2)
    finder = PlaneFinder()
    found = looks(finder, wall, 2)
    assert [each.kind for each in found.planes] == ["unknown"]
    assert found.up is None
    number = found.planes[0].id
    found = looks(finder, seen([BACK, FLOOR, LEFT], 2), 3)
    assert {each.id: each.kind for each in found.planes}[number] == "vertical"
    assert found.up @ UP > 0.99


def test_up_is_sought_anew_once_the_ground_is_gone():
    """A young map is bent: what was level in it is not, once it is right."""
    room, finder = seen([FLOOR, BACK], 2), PlaneFinder()
    assert looks(finder, room, 3).up @ UP > 0.99
    lean = Pose.of(np.radians([12.0, 0, 0]), np.zeros(3)).rotation.T
    points, ids, spread, eyes = room.given()
    for _ in range(8):
        found = finder.look(points @ lean, ids + 10_000, spread, eyes @ lean, None, OVERHEAD @ lean)
    assert found.up @ (UP @ lean) > 0.99
    assert {each.kind for each in found.planes} == {"horizontal", "vertical"}


@pytest.mark.parametrize("count", [24, 150, 1000, 3000])
@pytest.mark.parametrize("up", [None, UP], ids=["up unknown", "up known"])
def test_a_random_cloud_has_no_plane(count, up):
    for seed in range(3):
        room = seen([], seed, clutter=count)
        assert looks(PlaneFinder(), room, 3, up).planes == ()


def test_of_nothing_nothing_is_found_and_what_was_there_is_gone():
    nothing = np.empty((0, 3)), np.empty(0, int), np.empty(0), np.empty((0, 3))
    finder = PlaneFinder()
    assert finder.look(*nothing).planes == ()
    found = looks(finder, seen(ROOM, 1), 2)
    assert found.planes
    gone = finder.look(*nothing)
    assert {each.what for each in gone.events} == {"removed"}
    assert gone.planes == ()


@pytest.mark.parametrize("which", ["points", "spread", "seen_from"])
def test_what_is_no_number_is_refused_with_its_id(which):
    room = seen(ROOM, 1)
    getattr(room, which)[17] = np.nan
    with pytest.raises(ValueError, match=rf"{which} of ids \[{room.ids[17]}\] are not finite"):
        PlaneFinder().look(*room.given())


@pytest.mark.parametrize("up", [np.zeros(3), np.array([0, np.nan, 1]), np.ones(2)])
def test_a_vertical_that_is_no_direction_is_refused(up):
    with pytest.raises(ValueError, match="give a direction"):
        PlaneFinder().look(*seen(ROOM, 1).given(), up=up)


def test_a_vertical_of_any_length_does():
    room = seen(ROOM, 1)
    one, other = (looks(PlaneFinder(), room, 2, up) for up in (UP, 3 * UP))
    assert [each.kind for each in one.planes] == [each.kind for each in other.planes]
    assert np.allclose(other.up, UP)


def test_arrays_that_do_not_fit_together_are_refused():
    points, ids, spread, eyes = seen(ROOM, 1).given()
    with pytest.raises(ValueError, match=r"both must be \(n, 3\)"):
        PlaneFinder().look(points[:, :2], ids, spread, eyes)
    with pytest.raises(ValueError, match="ids"):
        PlaneFinder().look(points, ids[1:], spread, eyes)


def test_the_same_map_has_the_same_planes():
    room = seen(ROOM, 1)
    one, other = (looks(PlaneFinder(), room, 2) for _ in range(2))
    for first, second in zip(one.planes, other.planes, strict=True):
        assert first.pose.translation.tolist() == second.pose.translation.tolist()
        assert first.support.tolist() == second.support.tolist()
