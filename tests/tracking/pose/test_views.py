"""What is around is learnt, kept in a file, and told apart from what is no map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heimdall.errors import ConfigError
from heimdall.tracking.pose import Views
from heimdall.tracking.pose.solve import apart
from heimdall.tracking.pose.views import agreed, map_file
from tests.tracking.pose.photographed import STRAIGHT, desk, looking


def tour(count=70):
    return [looking((0.0, 0.0), 0.6, 25, 180 + 1.5 * number) for number in range(count)]


@pytest.fixture(scope="module")
def learnt():
    views = Views()
    for pose in tour():
        views.learn(desk("nothing").taken(pose), STRAIGHT, pose, None)
    return views


@pytest.mark.parametrize(
    "bent",
    [
        {"fx": 300, "fy": 300, "distortion": (-0.01, 0.05, -0.04, 0.01), "fisheye": True},
        {"distortion": (8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9)},
    ],
    ids=["fisheye", "rational"],
)
def test_the_pose_that_most_pairs_say_counts_the_lens_in(bent):
    lens, pose = replace(STRAIGHT, **bent), looking((0.0, 0.0), 0.6, 25, 180)
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.2, 0.2, 7))
    points = np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)])
    found = agreed(lens, points, lens.pixels(pose.to_camera(points)))
    turn, off = apart(found, pose)
    assert turn < 1e-3
    assert off < 1e-3


def test_a_view_is_ready_once_lines_of_sight_say_where_its_points_are(learnt):
    early = Views()
    for pose in tour(3):
        early.learn(desk("nothing").taken(pose), STRAIGHT, pose, None)
    assert len(early) == 0
    assert early.relocalise(desk("nothing").taken(tour()[2]), STRAIGHT) is None
    assert len(learnt) >= 1
    points = learnt.near(tour()[10], 1)[0].reference.points
    assert np.median(np.abs(points[:, 2])) < 0.005  # the desk is flat
    assert len(points) >= 24


def test_views_say_where_the_camera_is(learnt):
    poses = [looking((0.03, 0.02), 0.62, 27, 200 + number) for number in range(4)]
    found = [learnt.relocalise(desk("nothing").taken(pose), STRAIGHT) for pose in poses]
    known = [(one, pose) for one, pose in zip(found, poses, strict=True) if one is not None]
    assert known
    for one, pose in known:
        turn, metres = apart(one, pose)
        assert np.degrees(turn) < 2
        assert metres < 0.02


def test_small_pictures_are_remembered_in_full():
    """Half of 640 pixels would hold too little to be found again by."""
    views = Views()
    for pose in tour():
        views.learn(desk("nothing").taken(pose), STRAIGHT, pose, None)
    assert views.near(tour()[10], 1)[0].reference.picture.shape == (STRAIGHT.height, STRAIGHT.width)


def test_what_shows_nothing_is_not_learnt_and_not_found(learnt):
    plain, views = np.full((360, 640), 120, np.uint8), Views()
    for pose in tour(20):
        views.learn(plain, STRAIGHT, pose, None)
    assert len(views) == 0
    assert learnt.relocalise(plain, STRAIGHT) is None
    assert learnt.near(looking((0.0, 0.0), 0.6, 80, 0), 2) == []


def test_what_was_saved_is_there_again(learnt, tmp_path):
    path = tmp_path / "deep" / "map.npz"
    learnt.focal = 1.25
    learnt.save(path)
    learnt.focal = 1.0
    again = Views()
    again.load(path)
    assert len(again) == len(learnt)
    assert again.focal == 1.25
    one, other = (each.near(tour()[10], 1)[0] for each in (learnt, again))
    assert other.reference.points == pytest.approx(one.reference.points)
    assert np.array_equal(other.reference.picture, one.reference.picture)
    assert np.array_equal(other.descriptors, one.descriptors)


@pytest.mark.parametrize("damage", ["cut", "text", "empty", "missing", "stranger", "points"])
def test_a_damaged_map_is_refused_and_nothing_is_lost(learnt, tmp_path, damage):
    path = tmp_path / "map.npz"
    learnt.save(path)
    content = path.read_bytes()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "text":
        path.write_text("no map")
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "missing":
        path = tmp_path / "none.npz"
    elif damage == "stranger":
        np.savez(path, other=np.zeros(3))
    else:
        kept = dict(np.load(path))
        kept["points_0"] = kept["points_0"] * np.nan
        np.savez(path, **kept)
    views = Views()
    with pytest.raises(ConfigError, match=rf"map .*{path.name} cannot be read"):
        views.load(path)
    assert len(views) == 0


def test_a_map_that_cannot_be_written_is_named(learnt, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write map"):
        learnt.save(tmp_path / "file" / "map.npz")


def test_apps_have_maps_of_their_own():
    assert map_file("Shopping") != map_file("marker")
    assert map_file("Shopping").suffix == ".npz"
