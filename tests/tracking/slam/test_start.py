"""Beginnings of maps: right or not at all, whatever the scene, the movement and wrong tracks."""

from __future__ import annotations

import numpy as np
import pytest

from heimdall.tracking.slam.start import Started, start
from tests.tracking.slam.walks import FOCAL, SCENES, Walk, off, walk

SEEDS = range(4)


def begun(walked: Walk, **more: float) -> Started | str:
    return start(walked.reference, walked.looks, FOCAL, **more)


def started(walked: Walk) -> Started:
    found = begun(walked)
    assert isinstance(found, Started), found
    return found


def right(found: Started, walked: Walk) -> bool:
    degrees, way = off(found.poses[-1], walked.poses[-1])
    return degrees < 1 and way < 8


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@pytest.mark.parametrize("way", ["side", "any"])
@pytest.mark.parametrize("scene", ["general", "deep"])
def test_a_twentieth_of_the_depth_is_enough(scene, way, wrong):
    walks = [walk(scene, way, seed, wrong=wrong) for seed in SEEDS]
    found = [begun(each) for each in walks]
    started = [each for each in found if isinstance(each, Started)]
    assert len(started) >= 3
    for each, walked in zip(found, walks, strict=True):
        assert isinstance(each, str) or right(each, walked)


@pytest.mark.parametrize("way", ["side", "forward", "any"])
@pytest.mark.parametrize("scene", SCENES)
def test_an_eighth_of_the_depth_is_enough_for_any_scene_and_movement(scene, way):
    walks = [walk(scene, way, seed, far=0.12, wrong=0.1) for seed in SEEDS]
    found = [begun(each) for each in walks]
    assert sum(isinstance(each, Started) for each in found) >= 3
    for each, walked in zip(found, walks, strict=True):
        assert isinstance(each, str) or right(each, walked)


@pytest.mark.parametrize("way", ["side", "forward", "any"])
@pytest.mark.parametrize("scene", SCENES[2:])
def test_planes_are_never_begun_as_their_mirror_image(scene, way):
    for seed in SEEDS:
        walked = walk(scene, way, seed, wrong=0.3)
        found = begun(walked)
        assert (
            found in ("parallax", "ambiguous") if isinstance(found, str) else right(found, walked)
        )


@pytest.mark.parametrize("wrong", [0.0, 0.3])
@pytest.mark.parametrize("scene", SCENES)
def test_a_camera_that_only_turns_begins_nothing(scene, wrong):
    for seed in SEEDS:
        assert begun(walk(scene, "none", seed, turn=20, wrong=wrong)) == "parallax"


def test_a_turn_with_a_wrong_focal_length_is_no_movement():
    for seed in SEEDS:
        walked = walk("general", "none", seed, turn=25)
        walked.reference *= 0.88
        walked.looks = [each * 0.88 for each in walked.looks]
        assert start(walked.reference, walked.looks, FOCAL / 0.88, focal_sd=0.1) == "parallax"


def test_few_points_are_too_few():
    walked = walk(far=0.1)
    walked.looks[-1][39:] = np.nan
    assert begun(walked) == "features"


def test_points_that_move_each_as_it_likes_begin_nothing():
    for seed in SEEDS:
        assert begun(walk(seed=seed, far=0.1, wrong=0.9)) in ("ambiguous", "parallax")


def test_who_walks_along_bends_no_map():
    """What moves the way that the camera does lies on its epipolar lines: it seems very near."""
    for seed in SEEDS:
        walked = walk("general", "side", seed, noise=0.3)
        there = walked.points[:20]
        for share, (look, pose) in enumerate(zip(walked.looks, walked.poses, strict=True), 1):
            walker = pose.to_camera(there - 8 * walked.poses[-1].position * share / 7)
            look[:20] = walker[:, :2] / walker[:, 2:]
        found = started(walked)
        assert off(found.poses[-1], walked.poses[-1])[0] < 0.3
        assert not found.agree[:20].any()


def test_points_that_slide_in_one_look_do_not_hold_a_beginning_back():
    walked = walk("general", "side", 1, far=0.12)
    draw = np.random.default_rng(1)
    slid = np.flatnonzero(draw.random(300) < 0.5)
    for point in slid.tolist():
        walked.looks[draw.integers(len(walked.looks) - 1)][point] += 8 / FOCAL
    found = started(walked)
    assert right(found, walked)
    assert np.delete(found.agree, slid).mean() > 0.7


@pytest.mark.parametrize("scene", ["general", "tilted"])
def test_points_are_where_they_are_but_for_the_scale(scene):
    walked = walk(scene, "side", 1, far=0.12, wrong=0.3)
    walked.reference[7] = np.nan
    found = started(walked)
    assert found.points.shape == (300, 3)
    assert np.median(found.points[found.agree, 2]) == pytest.approx(1)
    assert np.isfinite(found.points[found.agree]).all()
    assert np.isnan(found.points[7]).all()
    both = found.agree & ~walked.wrong
    assert both.sum() > 150
    ratio = walked.points[both, 2] / found.points[both, 2]
    assert np.median(np.abs(ratio / np.median(ratio) - 1)) < 0.03
    assert found.agree[walked.wrong].mean() < 0.15
    moved = np.linalg.norm(walked.poses[-1].position) / np.linalg.norm(found.poses[-1].position)
    assert np.median(ratio) == pytest.approx(moved, rel=0.03)


def test_each_look_gets_its_pose():
    walked = walk("general", "side", 2, far=0.12, looks=17)
    walked.looks[3][:] = np.nan  # one that saw nothing
    found = started(walked)
    assert len(found.poses) == 17
    scale = np.linalg.norm(walked.poses[-1].position) / np.linalg.norm(found.poses[-1].position)
    for look, (pose, truth) in enumerate(zip(found.poses, walked.poses, strict=True)):
        if look != 3:
            assert off(pose, truth)[0] < 0.5
            assert np.linalg.norm(pose.position * scale - truth.position) < 0.008


def test_the_parallax_is_said():
    near, far = (started(walk("general", "side", 3, far=each)).parallax for each in (0.06, 0.12))
    assert np.degrees(near) == pytest.approx(3.0, abs=0.6)
    assert far == pytest.approx(2 * near, rel=0.2)


def test_two_looks_are_too_few():
    walked = walk("general", "side", 3, far=0.12)
    walked.looks = walked.looks[-2:]
    assert begun(walked) == "parallax"


@pytest.mark.parametrize("shape", ["one spot", "a line", "two spots", "noise"])
@pytest.mark.filterwarnings("error")
def test_points_that_say_nothing_raise_nothing(shape):
    draw = np.random.default_rng(4)
    spots = draw.uniform(-0.5, 0.5, (120, 2))
    if shape == "one spot":
        spots[:] = spots[0]
    elif shape == "two spots":
        spots = spots[draw.integers(0, 2, 120)]
    elif shape == "a line":
        spots[:, 1] = 0.3 * spots[:, 0] + 0.1
    for move in (np.zeros(2), np.array([0.05, 0.02]), spots * 0.1, draw.normal(0, 0.05, (120, 2))):
        looks = [spots + move * share for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
        found = start(spots, looks, FOCAL)
        assert isinstance(found, Started) or found in ("parallax", "ambiguous")
