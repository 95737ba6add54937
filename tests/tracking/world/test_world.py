"""What an app has of its world, on the frames of the bundled page."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from benchmarks.rendered import Course, Rendered
from heimdall.capture import Frame, Pose
from heimdall.errors import AppError, ConfigError
from heimdall.tracking import Board, ImageTarget, Marker, Plane, World
from heimdall.tracking.world.world import GONE_MS

PAGE = Marker("DICT_4X4_50", 7, 0.08)


@pytest.fixture
def shown():
    """``shown(world, frames)``: each is looked at, and then shown."""
    worlds = []

    def show(world, frames, apart_ns=33_333_333):
        if world.thread is None:
            worlds.append(world)
            world.begin()
        for each in frames:
            world.thread.hand(each)
            assert world.thread.settle()
            world.show(each, 1 + each.sequence * apart_ns)
        return world

    yield show
    for each in worlds:
        each.end()


def grey(number):
    return Frame(np.full((480, 640, 3), 120, np.uint8), number, number * 33_333_333)


def marker_in(image):
    """Where a marker's middle is: the crossing of its diagonals."""
    known = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    corners, _, _ = cv2.aruco.ArucoDetector(known).detectMarkers(image)
    a, b, c, d = (np.append(each, 1) for each in corners[0].reshape(4, 2))
    crossing = np.cross(np.cross(a, c), np.cross(b, d))
    return crossing[:2] / crossing[2]


def test_the_origin_is_in_the_middle_of_the_marker(page_frames, shown):
    frames = page_frames(20, 8)
    world = shown(World(PAGE), frames)
    assert (world.state, world.tracked) == ("tracked", True)
    assert world.origin.at == pytest.approx(marker_in(frames[-1].image), abs=1.5)
    assert world.ahead_ms == 0
    assert world.figures()["exact"] == 1


def test_a_ray_through_the_marker_meets_it_and_one_beside_it_the_ground(page_frames, shown):
    world = shown(World(PAGE), page_frames(20, 8))
    hit = world.hit(*world.origin.at)
    assert hit.plane.name == PAGE.name
    assert hit.point == pytest.approx(np.zeros(3), abs=1e-6)
    beside = world.hit(60, 400)
    assert beside.plane.name == "ground"
    assert abs(beside.point[2]) < 1e-9
    assert 0.05 < np.linalg.norm(beside.point) < 0.5
    kept = world.anchor(beside)
    assert kept.at == pytest.approx((60, 400), abs=0.1)
    world.ground = False
    assert world.hit(60, 400) is None


def test_planes_of_the_app_are_met_too(page_frames, shown):
    world = shown(World(PAGE), page_frames(20, 8))
    lid = Plane(Pose(world.origin.pose.rotation, np.array([0, 0, 0.05])), (0.1, 0.1), "lid")
    world.planes.append(lid)
    assert world.hit(*world.origin.at).plane is lid


def test_when_it_is_lost_the_pose_stays_and_content_fades(page_frames, shown):
    world = shown(World(PAGE, remember=False), page_frames(20, 10))
    assert world.fade == 1
    pose = world.pose
    frames = [grey(number) for number in range(30, 33)]
    shown(world, frames)
    assert world.state == "lost"
    assert 0 < world.fade < 1
    assert world.pose.translation == pytest.approx(pose.translation, abs=0.02)
    shown(world, [grey(33 + round(GONE_MS / 33) + 1)])
    assert world.fade == 0
    assert world.figures()["lost"] == 1


def test_nothing_is_met_before_anything_is_seen():
    world = World(PAGE)
    assert (world.state, world.pose, world.camera, world.fade) == ("lost", None, None, 0)
    assert world.hit(1, 2) is None
    assert world.hit(float("nan"), 2) is None
    assert world.on(PAGE) is None


def test_a_frame_that_is_held_keeps_its_pose(page_frames, shown):
    frames = page_frames(20, 12)
    world = shown(World(PAGE), frames[:8])
    pose = world.pose
    for each in frames[8:]:  # a camera goes on while the picture is held
        world.thread.hand(each)
        assert world.thread.settle()
    world.show(frames[7], 10**9)
    assert world.pose is pose


def test_a_still_image_is_looked_at_until_it_is_known(page_frames, shown):
    (frame,) = page_frames(40, 1)
    world = shown(World(PAGE), [frame])
    for number in range(40):
        world.show(frame, 10**9 + number)
        assert world.thread.settle()
    assert world.tracked
    assert world.origin.at == pytest.approx(marker_in(frame.image), abs=1.5)


def test_a_newer_frame_is_drawn_with_a_predicted_pose(page_frames, shown):
    frames = page_frames(20, 12)
    world = shown(World(PAGE), frames[:-1])
    world.show(frames[-1], 10**9)
    assert world.ahead_ms == pytest.approx(33.3, abs=0.1)
    assert world.origin.at == pytest.approx(marker_in(frames[-1].image), abs=3)


def test_a_tap_begins_a_world_without_targets(page_frames, shown):
    frames = page_frames(60, 8)
    world = shown(World(), frames[:1])
    assert not world.tracked
    plane = world.surface_at(300, 260)
    assert plane.guessed
    shown(world, frames[1:])
    assert world.tracked
    assert world.pose.position[2] == pytest.approx(0.5, rel=0.15)
    again = world.surface_at(200, 300)
    assert again.name in ("picture", "ground")


def test_a_tap_on_nothing_says_so(shown):
    world = shown(World(), [grey(0)])
    assert world.surface_at(300, 260) is not None
    assert world.thread.settle()
    assert "too little" in world.problem
    assert world.surface_at(300, -400) is None


def test_what_a_target_stands_on_is_known_once_it_was_seen(page_frames, shown):
    other = Marker("DICT_4X4_50", 8, 0.05)
    world = shown(World(PAGE, other), page_frames(20, 4))
    assert world.on(PAGE).pose.translation == pytest.approx(np.zeros(3))
    assert world.on(other) is None


def test_each_run_has_a_world_of_its_own():
    world = World(PAGE, remember=False, ground=False)
    fresh = world.fresh()
    assert fresh is not world
    assert (fresh.targets, fresh.ground) == (world.targets, False)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: World("page.png"),  # type: ignore[arg-type]
            "give Marker, Board or ImageTarget",
        ),
        (lambda: World(PAGE, map="desk", remember=False), "a map needs remember"),
        (lambda: World(PAGE, PAGE).begin(), "given twice"),
        (lambda: World(PAGE, Board("DICT_4X4_50", 3, 3, 0.1, 0.02)).begin(), "given twice"),
        (lambda: World(ImageTarget("no.png", 0.1)).begin(), "cannot read target"),
    ],
)
def test_a_world_that_cannot_be_is_refused(make, said):
    with pytest.raises(ConfigError, match=said):
        make()


def test_an_anchor_needs_a_place():
    with pytest.raises(AppError, match="give what hit"):
        World(PAGE).anchor((3, 4))  # type: ignore[arg-type]


def test_a_tap_outside_of_a_run_is_refused():
    with pytest.raises(AppError, match="needs a run"):
        World().surface_at(3, 4)


def test_a_damaged_map_is_refused(tmp_path):
    path = tmp_path / "desk.npz"
    path.write_bytes(b"no map")
    with pytest.raises(ConfigError, match=r"desk.npz cannot be read"):
        World(PAGE, map=path).begin()


def test_a_map_is_kept_and_the_camera_found_by_it_without_the_target(shown, tmp_path):
    clip = Rendered(3, Course(seconds=2.5, speed=2))
    shots = list(clip.shots())
    marker, path = Marker("DICT_4X4_50", clip.marker, clip.course.width_m), tmp_path / "desk.npz"
    lens = clip.camera
    frames = [Frame(shot.image, k, k * 33_333_333, lens) for k, shot in enumerate(shots)]
    world = shown(World(marker, map=path), frames)
    assert len(world.thread.tracker.views) > 0
    world.end()
    again = shown(World(marker, map=path), [])
    assert len(again.thread.tracker.views) > 0
    for frame, shot in zip(frames[-12:], shots[-12:], strict=True):
        covered = frame.image.copy()
        seen = lens.pixels(shot.camera.pose.to_camera(clip.corners() * 1.8))
        cv2.fillConvexPoly(covered, seen.astype(np.int32), (120, 120, 120))
        shown(again, [replace(frame, image=covered)])
        if again.tracked:
            break
    assert again.tracked
    away = again.pose.translation - shot.camera.pose.translation
    assert np.linalg.norm(away) < 0.01 * np.linalg.norm(again.pose.translation)
