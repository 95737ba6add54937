"""Planes of the world on the picture: where they are drawn, what they hide, and whose shadows they
catch. The camera stands 2 m from the origin, 1 m above it, and looks at it."""

from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.errors import AppError
from heimdall.render import Scene
from heimdall.tracking import Plane
from heimdall.tracking.world.places import Hit

GREY = np.full((360, 640, 3), 128, np.uint8)
EYE = np.array([0.0, 1.0, 2.0])
SQUARE = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
FLAT = Pose(np.eye(3), np.zeros(3))


def looking_at_the_origin():
    forward = -EYE / np.linalg.norm(EYE)
    right = np.array([1.0, 0, 0])
    rotation = np.stack([right, np.cross(forward, right), forward])
    return Camera.guess(640, 360).at(Pose(rotation, -rotation @ EYE))


CAMERA = looking_at_the_origin()


def frame(surface, paint, scene=None, camera=CAMERA):
    scene = scene or Scene(surface)
    scene.estimates_light = False
    for _ in range(2):
        scene.begin(GREY, 0, camera)
        paint(scene)
        scene.settle()
    scene.render()
    surface.finish()
    return surface.read().astype(int)


def changed(picture, by=12):
    return np.abs(picture - 128).max(axis=-1) > by


def pixels(*places):
    return CAMERA.pixels(CAMERA.pose.to_camera(np.array(places, float))).round().astype(int)


def plane(corners=SQUARE, pose=FLAT, kind="horizontal"):
    corners = np.asarray(corners, float)
    size = 2 * np.abs(corners).max(axis=0)
    return Plane(pose, (size[0], size[1]), "plane 0", kind=kind, outline=corners)


def test_a_planes_outline_is_drawn_where_the_camera_sees_it(headless):
    triangle = plane([(-0.5, 0.5), (0.5, 0.5), (0.0, -0.5)])
    found = changed(frame(headless, lambda scene: scene.planes([triangle])))
    for x, y in pixels((-0.5, 0, 0.5), (0.5, 0, 0.5), (0, 0, -0.5), (0.25, 0, 0)):
        assert found[y - 2 : y + 3, x - 2 : x + 3].any()
    x, y = pixels((-0.45, 0, -0.4))[0]  # in its size, beyond its outline
    assert not found[y - 4 : y + 5, x - 4 : x + 5].any()
    low = pixels((0.5, 0, 0.5))[0][1]
    assert not found[: pixels((0, 0, -0.5))[0][1] - 4].any()
    assert not found[low + 4 :].any()


def test_its_colour_says_its_kind_unless_one_is_given(headless):
    x, y = pixels((0.0, 0, 0.5))[0]

    def colour(kind, given=None):
        return frame(headless, lambda s: s.planes([plane(kind=kind)], given))[y - 1 : y + 2, x]

    level, upright, red = colour("horizontal"), colour("vertical"), colour("vertical", "#ff0000")
    assert (level[:, 1] > level[:, 0] + 60).any()
    assert (upright[:, 0] > upright[:, 2] + 60).any()
    assert (np.abs(red - (255, 0, 0)).max(axis=-1) < 30).any()


def test_what_lies_behind_the_camera_is_left_out(headless):
    behind = plane(pose=Pose(np.eye(3), np.array([0, 0, 9.0])))
    assert not changed(frame(headless, lambda scene: scene.planes([behind]))).any()
    reaching = plane(8 * SQUARE)  # below and behind it
    found = changed(frame(headless, lambda scene: scene.planes([reaching])))
    assert found[-1].any()
    assert 0.01 < found.mean() < 0.5


def test_nothing_is_drawn_without_a_pose_and_what_is_no_plane_is_refused(headless):
    bare = Camera.guess(640, 360)
    assert not changed(frame(headless, lambda s: s.planes([plane()]), camera=bare)).any()
    hit = Hit(plane().pose, 1.0, plane())  # has a pose as a plane has, and is none
    for wrong in (3, hit):
        with pytest.raises(AppError, match="planes wants a list of Plane"):
            frame(headless, lambda scene, wrong=wrong: scene.planes([wrong]))


# --- what they hide -------------------------------------------------------------------------------


@pytest.fixture
def cube(writer):
    """A red one of 20 cm, its base at the origin."""
    corners = [(x, y, z) for x in (-0.1, 0.1) for y in (0, 0.2) for z in (-0.1, 0.1)]
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    triangles = [each for a, b, c, d in sides for each in (a, b, c, a, c, d)]
    red = {"baseColorFactor": [0.8, 0.1, 0.1, 1], "metallicFactor": 0}
    writer.mesh(np.array(corners), triangles, {"pbrMetallicRoughness": red})
    return writer.save("cube.gltf")


def red(picture):
    return picture[..., 0] - picture[..., 1] > 60


def test_found_planes_hide_what_is_below_them_as_far_as_their_outline(headless, cube):
    scene, below = Scene(headless), Pose(np.eye(3), np.array([0, -0.25, 0]))

    def hidden(*planes):
        def paint(scene):
            scene.model(cube, at=below, ground=False)
            scene.occlude(list(planes))

        return red(frame(headless, paint, scene))

    whole = hidden()
    assert whole.sum() > 500
    assert not hidden(plane()).any()
    half = hidden(plane([(-0.5, -0.5), (0, -0.5), (0, 0.5), (-0.5, 0.5)]))
    middle = pixels((0, -0.2, 0))[0][0]
    assert not half[:, : middle - 6].any()
    assert np.array_equal(half[:, middle + 6 :], whole[:, middle + 6 :])


def test_what_stands_on_a_found_plane_stays_whole_though_that_moves_a_little(headless, cube):
    scene = Scene(headless)
    alone = red(frame(headless, lambda s: s.model(cube, at=FLAT), scene))
    for lift in (-0.01, 0.0, 0.01):
        moved = plane(pose=Pose(np.eye(3), np.array([0, lift, 0])))

        def paint(scene, moved=moved):
            scene.model(cube, at=FLAT)
            scene.occlude([moved])

        assert np.array_equal(red(frame(headless, paint, scene)), alone)


# --- shadows --------------------------------------------------------------------------------------


def test_a_shadow_ends_where_the_plane_that_it_falls_on_does(headless, cube):
    scene = Scene(headless)

    def shadow(*found):
        scene.world = SimpleNamespace(found=list(found), fade=1.0)  # type: ignore[assignment]
        picture = frame(headless, lambda s: s.model(cube, at=FLAT), scene)
        return changed(picture, 6) & ~red(picture)

    free = shadow()
    assert np.array_equal(shadow(plane()), free)  # all of it is on the plane
    small = [(-0.12, -0.12), (0.12, -0.12), (0.12, 0.12), (-0.12, 0.12)]
    inside = np.zeros(free.shape, np.uint8)
    cv2.fillConvexPoly(inside, pixels(*((x, 0, z) for x, z in small)).astype(np.int32), 1)
    around = cv2.dilate(inside, np.ones((5, 5))) > 0
    cut = shadow(plane(small))
    assert free[~around].any()
    assert not cut[~around & free].any()
    within = cv2.erode(inside, np.ones((5, 5))) > 0
    assert np.array_equal(cut & within, free & within)
    lower = plane(pose=Pose(np.eye(3), np.array([0, -0.4, 0])))
    assert np.array_equal(shadow(lower), free)  # it does not stand on that
