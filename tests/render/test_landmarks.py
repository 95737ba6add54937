"""What a world is known by, on the picture. The camera stands 2 m from the origin, 1 m above it,
and looks at it: z is up."""

from types import SimpleNamespace

import numpy as np
import pytest

from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.render import Scene
from heimdall.render.landmarks import MOST_POINTS, SIDE, rows
from heimdall.render.layout import Letterbox
from heimdall.tracking import Marker, Plane, World
from heimdall.tracking.world.places import on_target
from tests.tracking.world.conftest import seen_from

GREY = np.full((360, 640, 3), 128, np.uint8)
CAMERA = Camera.guess(640, 360).at(seen_from((0.0, -2.0, 1.0)))
INSIDE = int(640 - SIDE * 360)  # where the picture from above begins


def world(points=(), path=(), planes=(), **more):
    told = {"problem": "", "reason": "", "state": "tracked", "scale_source": "guess"}
    shaped = (np.array(each, float).reshape(-1, 3) for each in (points, path))
    names = dict(zip(("points", "path"), shaped, strict=True))
    lists = {"known_planes": list(planes), "found": list(planes), "in_room": True}
    return SimpleNamespace(**{**told, **names, **lists, **more})


def drawn(surface, known, camera=CAMERA):
    scene = Scene(surface)
    scene.begin(GREY, 0, camera)
    scene.world = known
    scene.landmarks()
    scene.render()
    surface.finish()
    return surface.read().astype(int)


def changed(picture):
    return np.abs(picture - 128).max(axis=-1) > 12


def place(*points):
    return CAMERA.pixels(CAMERA.pose.to_camera(np.array(points, float))).round().astype(int)


def test_points_and_planes_are_where_the_camera_sees_them(headless):
    points = [(-0.6, 0.0, 0.3), (0.3, 0.5, 0.0)]
    plane = Plane(on_target(Pose(np.eye(3), np.zeros(3))), (0.8, 0.6), kind="horizontal")
    found = changed(drawn(headless, world(points, planes=[plane])))
    for x, y in place(*points, (0.4, 0.3, 0), (-0.4, 0.3, 0), (0.4, -0.3, 0), (0, -0.3, 0)):
        assert found[y - 2 : y + 3, x - 2 : x + 3].any()
    for x, y in place((0, 0, 0.6), (-0.8, 0, 0)):
        assert not found[y - 4 : y + 5, x - 4 : x + 5].any()


def test_the_way_is_seen_from_above_at_whatever_size(headless):
    def way(metres):
        circle = np.linspace(0, 2 * np.pi, 60)
        path = metres * np.stack([np.cos(circle), np.sin(circle), 0 * circle], axis=1)
        camera = CAMERA.at(seen_from((metres, 0.0, 0.5)))
        corner = drawn(headless, world(path=path), camera)[360 - int(SIDE * 360) :, INSIDE:]
        return (corner[..., 0] > 150) & (corner[..., 2] < 120)  # yellow

    for metres in (0.3, 30.0):
        yellow = way(metres)
        across, down = (np.flatnonzero(yellow.any(axis=axis)) for axis in (0, 1))
        assert np.ptp(across) == pytest.approx(0.84 * SIDE * 360, abs=8)
        assert np.ptp(down) == pytest.approx(np.ptp(across), abs=8)


def test_there_is_no_limit_to_what_is_known_but_one_to_what_is_drawn():
    rng = np.random.default_rng(0)
    points = rng.uniform(-0.3, 0.3, (20_000, 3))
    box = Letterbox.fit((640, 360), (640, 360))
    path = rng.uniform(-1, 1, (600, 3))
    bars = rows(world(points, path), CAMERA, box, 2.0)
    assert np.isfinite(bars).all()
    assert len(bars) < 2 * MOST_POINTS + 610


@pytest.mark.parametrize("known", [world(), World(), World(Marker("DICT_4X4_50", 7, 0.08))])
def test_what_is_not_known_yet_is_said(headless, known):
    picture = drawn(headless, known, Camera.guess(640, 360))
    assert changed(picture)[:60].any()
    assert not changed(picture)[60:].any()


def test_an_app_without_a_world_has_no_such_view(headless):
    assert not changed(drawn(headless, None)).any()
