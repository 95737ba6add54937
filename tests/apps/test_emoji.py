"""The emoji app: who wears which head, and what is behind the people."""

from __future__ import annotations

import numpy as np
import pytest

from apps.emoji import CHARACTERS, expression
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.models.head import canonical_face
from heimdall.models.results import FaceMesh, Mask, Picture

PERSON = np.zeros((48, 64), np.float32)
PERSON[:, 20:44] = 1
RED = np.full((24, 32, 3), (200, 30, 30), np.uint8)


def face(x: float, y: float, size: float = 40.0, yaw: float = 0.0) -> FaceMesh:
    """A face of so many pixels in width that is turned by so many degrees, to the right."""
    camera = Camera.guess(640, 480)
    away = camera.fx * 0.15 / size
    ((across, down, _),) = camera.rays(np.array([[x, y]]))
    c, s = np.cos(np.radians(yaw)), np.sin(np.radians(yaw))
    turned = np.array([[c, 0, s], [0, -1, 0], [s, 0, -c]])  # looks into the camera
    pose = Pose(turned, away * np.array([across, down, 1]))
    places = pose.to_camera(canonical_face()[0])
    points = np.column_stack([camera.pixels(places), places[:, 2] * camera.fx / away])
    return FaceMesh(points.astype(np.float32), 0.9, np.zeros((2, 5, 3), np.float32))


def dressed(stage, image, *faces: FaceMesh) -> np.ndarray:
    """The picture with these faces, when all heads are loaded."""
    stage.show(image, face=list(faces))
    for _ in range(500):  # sent to the GPU a little a frame
        if stage.scene.settle() is False:
            break
        stage.show(image)
    for _ in range(15):  # until what is shown has gone over to the new result
        stage.show(image)
    return stage.show(image)


def worn(app) -> dict[int, str]:
    """Head by column of the face."""
    return {round(float(r.face.points[:, 0].mean()) / 10) * 10: r.character for r in app.roles}


def test_every_face_gets_a_head_of_its_own_and_keeps_it(play, grey):
    stage = play("emoji")
    stage.app.cast([face(100, 200), face(300, 200), face(500, 200)])
    before = worn(stage.app)
    assert len(set(before.values())) == 3
    stage.app.cast([face(510, 205), face(110, 200), face(300, 190)])  # listed in another order
    assert worn(stage.app) == {110: before[100], 300: before[300], 510: before[500]}


def test_a_face_that_was_hidden_for_a_moment_gets_its_head_back(play):
    app = play("emoji").app
    app.cast([face(100, 200), face(300, 200)])
    before = worn(app)
    for _ in range(5):
        app.cast([face(300, 200)])
    app.cast([face(300, 200), face(110, 200)])
    assert worn(app)[110] == before[100]


def unlike(picture: np.ndarray) -> np.ndarray:
    return np.abs(picture.astype(int) - 128).max(axis=2) > 10


def test_a_head_is_drawn_where_the_face_is_and_covers_it(play, grey):
    worn = unlike(dressed(play("emoji"), grey, face(320, 260, 120)))
    assert worn[200:320, 270:370].mean() > 0.98
    assert not worn[:60].any()
    rows, columns = np.flatnonzero(worn.any(axis=1)), np.flatnonzero(worn.any(axis=0))
    assert 140 < np.ptp(columns) < 220  # a little larger than the face
    assert np.ptp(rows) > 150
    assert abs(columns.mean() - 320) < 10


def test_a_head_turns_with_the_face(play, grey):
    stage = play("emoji")
    ahead = dressed(stage, grey, face(320, 240, 120)).astype(int)
    left = dressed(stage, grey, face(320, 240, 120, yaw=-40)).astype(int)
    right = dressed(stage, grey, face(320, 240, 120, yaw=40)).astype(int)
    dark = [(each[150:330].max(axis=2) < 70).nonzero()[1].mean() for each in (left, ahead, right)]
    assert dark[0] < dark[1] - 10 < dark[2] - 20  # the nose, eyes and mouth of a fox


def test_a_mouth_that_opens_is_seen_on_the_head(play, grey):
    stage = play("emoji")
    shut = face(320, 240, 120)
    wide = FaceMesh(shut.points.copy(), 0.9, shut.irises)
    across = np.linalg.norm(shut.points[78] - shut.points[308])
    wide.points[13, 1] -= 0.25 * across
    wide.points[14, 1] += 0.25 * across
    one, other = dressed(stage, grey, shut), dressed(stage, grey, wide)
    changed = np.abs(one.astype(int) - other).max(axis=2) > 30
    assert changed.sum() > 200
    assert changed.nonzero()[0].mean() > 260  # below


def test_where_the_world_is_tracked_heads_stand_in_it(play, grey):
    """The camera stands somewhere, turned; the head looks the same."""
    stage = play("emoji")
    ahead = dressed(stage, grey, face(320, 240, 120))
    c, s = np.cos(0.7), np.sin(0.7)
    there = Pose(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), np.array([0.3, -1.0, 2.0]))
    stage.scene.begin(grey, 1000, Camera.guess(640, 480).at(there))
    stage.app.draw(stage.scene)
    stage.scene.render()
    elsewhere = stage.surface.read()
    assert (unlike(ahead) == unlike(elsewhere)).mean() > 0.995


def test_an_expression_is_a_moment_of_the_animation():
    points = np.zeros((468, 3), np.float32)
    points[[78, 308], 0] = 0, 60
    points[[33, 133], 0] = points[[362, 263], 0] = 0, 30
    points[[145, 374], 1] = 9
    still = FaceMesh(points, 1.0, np.zeros((2, 5, 3), np.float32))
    assert expression(still) == 0
    points[14, 1] = 60
    assert expression(still) == pytest.approx(0.999)
    points[145, 1] = 0
    assert expression(still) < 1  # a wink is no blink
    points[374, 1] = 0
    assert expression(still) == pytest.approx(2.999)


def test_every_character_has_a_head(assets):
    assert {path.name for path in (assets / "content").iterdir()} >= set(CHARACTERS)


def test_the_painting_is_behind_people_only(play, grey):
    stage = play("emoji")
    stage.show(grey, segment=Mask(PERSON))
    picture = stage.show(grey, style=Picture(RED))
    assert (np.abs(picture[:, :150].astype(int) - (200, 30, 30)) < 5).all()
    assert (np.abs(picture[:, 260:380].astype(int) - 128) < 5).all()


def test_the_first_mask_asks_for_a_painting_and_events_for_others(play, grey):
    stage = play("emoji")
    assert stage.requests() == []
    stage.show(grey, segment=Mask(PERSON))
    ((dnn, options),) = stage.requests()
    assert dnn == "style"
    stage.show(grey, segment=Mask(PERSON))
    assert stage.requests() == []
    script = stage.app.demo_events()
    next(script)
    next(script)
    ((_, again),) = stage.requests()
    assert again["style"] != options["style"]


def test_the_painted_room_is_empty_of_people(play, grey):
    stage = play("emoji")
    image = grey.copy()
    image[:, 200:440] = (0, 0, 255)
    stage.show(image, segment=Mask(PERSON))
    ((_, options),) = stage.requests()
    assert options["picture"].shape == (240, 320, 3)
    assert options["picture"].max() == pytest.approx(128, abs=12)  # no red is left
