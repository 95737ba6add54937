"""Models on the picture: where they are, what hides them, and what an app is told."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from heimdall.capture.device_pose import DeviceLight, DevicePose
from heimdall.capture.lens import Camera
from heimdall.capture.pose import Pose
from heimdall.cli import main
from heimdall.errors import AppError, ModelError
from heimdall.models.results import Mask
from heimdall.render import Scene

STILL = Pose(np.eye(3), np.zeros(3))
CORNERS = np.array([(100, 200), (160, 200), (160, 260), (100, 260)])
GREY = np.full((360, 640, 3), 128, np.uint8)


def boxed(writer, name, side=1.0):
    """A red cube, its base at the origin."""
    corners = [(x, y, z) for x in (-0.5, 0.5) for y in (0, 1) for z in (-0.5, 0.5)]
    sides = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    triangles = [each for a, b, c, d in sides for each in (a, b, c, a, c, d)]
    red = {"baseColorFactor": [0.8, 0.1, 0.1, 1], "metallicFactor": 0}
    writer.mesh(side * np.array(corners), triangles, {"pbrMetallicRoughness": red})
    return writer.save(name)


@pytest.fixture
def cube(writer):
    """One of 1 m."""
    return boxed(writer, "cube.gltf")


class Run:
    """Frames of one scene, seen by a camera 4 m before the origin."""

    def __init__(self, surface, x=0.0):
        self.surface, self.scene = surface, Scene(surface)
        self.scene.estimates_light = False
        turn = np.diag([1.0, -1.0, -1.0])  # the world's y is up, the camera's down
        self.scene.camera = Camera.guess(640, 360).at(Pose(turn, np.array([x, 0.5, 4.0])))

    def frame(self, paint):
        camera = self.scene.camera
        for _ in range(2):
            self.scene.begin(GREY, 0, camera)
            paint(self.scene)
            self.scene.settle()
        self.scene.render()
        self.surface.finish()
        return self.surface.read().astype(int)


def changed(picture):
    return np.abs(picture - 128).max(axis=-1) > 12


def test_a_model_is_where_the_camera_sees_it(headless, cube):
    run = Run(headless)
    middle = changed(run.frame(lambda scene: scene.model(cube, at=STILL, ground=False)))
    rows, columns = np.nonzero(middle)
    focal = Camera.guess(640, 360).fx
    near = focal / 3.5  # pixels of 1 m at the cube's front
    assert abs(columns.mean() - 319.5) < 3
    assert abs((columns.max() - columns.min()) - near) < 0.06 * near
    assert abs((rows.max() - rows.min()) - near) < 0.06 * near


def test_nothing_is_drawn_while_the_camera_pose_is_unknown(headless, cube):
    run = Run(headless)
    run.scene.camera = None
    assert not changed(run.frame(lambda scene: scene.model(cube, at=STILL))).any()


def test_nothing_stands_on_an_anchor_whose_place_is_lost(headless, cube):
    run = Run(headless)
    anchor = SimpleNamespace(pose=STILL, lost=False)
    assert changed(run.frame(lambda scene: scene.model(cube, at=anchor))).any()
    anchor.lost = True
    assert not changed(run.frame(lambda scene: scene.model(cube, at=anchor))).any()


def test_a_model_can_stand_on_a_point_of_the_picture(headless, cube):
    run = Run(headless)
    run.scene.camera = None
    found = changed(run.frame(lambda scene: scene.model(cube, at=(320, 250), width=100)))
    assert found[200, 320]
    assert 80 < found[200].sum() < 140


def test_masks_and_planes_hide_models(headless, cube):
    run = Run(headless)
    right = Mask(np.repeat([[0.0, 1.0]], 2, axis=0).astype(np.float32))

    def masked(scene):
        scene.model(cube, at=STILL, ground=False)
        scene.occlude(right)

    found = changed(run.frame(masked))
    assert found[180, 275]
    assert not found[:, 375:].any()

    def beneath(scene):  # the plane is above the model, and the camera above the plane
        scene.model(cube, at=Pose(np.eye(3), np.array([0, -5.0, 0])), ground=False)
        scene.occlude(STILL)

    assert not changed(run.frame(beneath)).any()


def test_faded_models_let_the_picture_through(headless, cube):
    run = Run(headless)
    whole = run.frame(lambda scene: scene.model(cube, at=STILL, ground=False))[180, 320]
    half = run.frame(lambda scene: scene.model(cube, at=STILL, ground=False, fade=0.5))[180, 320]
    assert np.abs(half - (whole + 128) / 2).max() < 6


def test_a_model_in_millimetres_turns_like_any_other(headless, writer):
    run = Run(headless)
    large = boxed(writer, "large.gltf", side=1000.0)

    def turned(yaw):
        return run.frame(lambda scene: scene.model(large, at=STILL, scale=1e-3, yaw=yaw))

    before = turned(0)
    assert np.array_equal(turned(0), before)
    assert changed(128 + turned(6) - before).any()


@pytest.mark.parametrize("scale", [(1, 0.25, 1), (0.25, 1, 1), (-1, 0.25, 1), (1, 0.25, 0.0001)])
def test_what_an_animation_scales_unevenly_is_lit_as_it_is_shaped(headless, writer, scale):
    """A slope that its node scales always is shaded in place; with an animation, by the GPU."""
    slope = np.array([[-1, 0, 0], [1, 0, 0], [1, 2, -2], [-1, 2, -2]], float)
    up = writer.array([[0, 0.5**0.5, 0.5**0.5]] * 4)
    grey = {"baseColorFactor": [0.5, 0.5, 0.5, 1], "metallicFactor": 0, "roughnessFactor": 1}
    material = {"pbrMetallicRoughness": grey, "doubleSided": True}
    writer.mesh(slope, [0, 1, 2, 0, 2, 3], material, NORMAL=up)
    writer.document["nodes"] = [{"mesh": 0, "scale": scale}]
    still = writer.save("still.gltf")
    keys = {"input": writer.array([0.0, 1.0]), "output": writer.array([scale, scale])}
    channel = {"sampler": 0, "target": {"node": 0, "path": "scale"}}
    writer.document["animations"] = [{"samplers": [keys], "channels": [channel]}]
    moved = writer.save("moved.gltf")
    run, middles = Run(headless), []
    for file, animation in ((still, None), (moved, 0)):
        picture = run.frame(
            lambda scene, file=file, how=animation: scene.model(file, at=STILL, animation=how)
        )
        rows, columns = np.nonzero(changed(picture))
        middles.append(picture[int(rows.mean()), int(columns.mean())])
    assert np.abs(middles[0] - middles[1]).max() <= 3


def test_an_animation_is_played_by_the_time_of_the_frame(headless, writer):
    writer.mesh([[0, 0, 0], [1, 0, 0], [1, 2, 0], [0, 2, 0]], [0, 1, 2, 0, 2, 3])
    writer.document["nodes"] = [{"mesh": 0}]
    slide = {
        "input": writer.array([0.0, 2.0]),
        "output": writer.array([[0.0, 0, 0], [4, 0, 0]]),
    }
    channel = {"sampler": 0, "target": {"node": 0, "path": "translation"}}
    writer.document["animations"] = [{"samplers": [slide], "channels": [channel]}]
    path, run = writer.save(), Run(headless)

    def shown(time_s, **moment):
        def paint(scene):
            scene.begin(GREY, 0, scene.camera, time_s)
            scene.model(path, at=STILL, animation=0, **moment)

        return run.frame(paint)

    shown(0.0)
    pictures = [shown(time_s) for time_s in (0.25, 0.5, 2.5, 0.5)]
    where = [np.nonzero(changed(each))[1].mean() for each in pictures]
    assert where[0] + 20 < where[1]
    again = np.nonzero(changed(shown(9.0, time=0.5)))[1].mean()
    assert where[1:] == pytest.approx([again] * 3, abs=0.5)  # over and over


def test_what_cannot_be_meant_is_refused(headless, cube):
    scene = Run(headless).scene
    scene.begin(GREY, 0)
    with pytest.raises(AppError, match="no file"):
        scene.model("nowhere.glb", at=STILL)
    with pytest.raises(AppError, match=r"no file room\.hdr"):
        scene.environment = "room.hdr"
    with pytest.raises(AppError, match="scale"):
        scene.model(cube, at=STILL, scale=0)


@pytest.mark.parametrize("broken", [False, True])
def test_the_command_says_what_is_in_a_file(cube, tmp_path, broken):
    picture = tmp_path / "out.png"
    if broken:
        cube = tmp_path / "broken.glb"
        cube.write_bytes(b"glTF")
    done = CliRunner().invoke(
        main, ["model3d", str(cube), "--json", "--png", str(picture), "--size", "160x120"]
    )
    assert done.exit_code == (2 if broken else 0)
    found = json.loads(done.stdout)
    if broken:
        assert "broken.glb" in found["error"]
        assert not picture.exists()
    else:
        assert found["error"] is None
        assert (found["triangles"], found["animations"]) == (12, [])
        assert found["size_m"] == [1, 1, 1]
        assert found["gpu_ms"] >= 0
        assert picture.stat().st_size > 500


def test_a_damaged_file_is_named_once(tmp_path):
    path = tmp_path / "suzi.glb"
    path.write_bytes(b"glTF")
    told = CliRunner().invoke(main, ["content", str(path)])  # the command's old name works, too
    assert (told.stdout.count("suzi.glb"), told.exit_code) == (1, 2)
    missing = CliRunner().invoke(main, ["model3d", str(tmp_path / "none.glb")])
    assert (missing.stdout.count("no file"), missing.exit_code) == (1, 2)


def test_loading_a_model_changes_nothing_of_what_is_shown(headless, cube):
    run = Run(headless)

    def others(scene):
        scene.text("a label", (40, 40), 24)
        scene.picture(np.full((8, 8, 3), (200, 30, 30), np.uint8), CORNERS)

    before = run.frame(others)
    loading = run.frame(lambda scene: (others(scene), scene.model(cube, at=STILL, fade=0)))
    assert np.array_equal(loading, before)
    assert np.array_equal(run.frame(others), before)


def test_a_file_that_cannot_be_drawn_fails_each_frame_alike(headless, tmp_path):
    """Not with a traceback that is longer by every frame before."""
    bad = tmp_path / "bad.glb"
    bad.write_bytes(b"nothing")
    scene, depths = Scene(headless), []
    scene.begin(GREY, 0, Camera.guess(640, 360))
    scene.model(bad, (320, 180), width=50)
    scene.settle()
    for _ in range(3):
        with pytest.raises(ModelError, match="bad") as raised:
            scene.model(bad, (320, 180), width=50)
        depths.append(len(raised.traceback))
    assert depths[1] == depths[2]


def test_its_first_frame_needs_no_program_that_was_not_there(headless, cube, monkeypatch):
    run = Run(headless)
    compiled: list[str] = []
    make = headless.ctx.program

    def program(**sources):
        compiled.append(sources["vertex_shader"])
        return make(**sources)

    monkeypatch.setattr(headless.ctx, "program", program)
    run.frame(lambda scene: scene.model(cube, at=STILL, fade=0))
    assert compiled
    compiled.clear()
    for yaw in (0, 10, 10, 10):  # into the frame, then into a picture of its own
        run.frame(lambda scene, yaw=yaw: scene.model(cube, at=STILL, yaw=yaw))
    assert compiled == []


def test_a_device_that_tells_of_the_light_is_believed(headless, cube):
    run = Run(headless)
    run.scene.estimates_light = True
    pose = run.scene.camera.pose

    def lit(towards, colour) -> np.ndarray:
        light = DeviceLight(towards, colour, 0.1 * np.array(colour))
        run.scene.camera = replace(run.scene.camera, device=DevicePose(pose, light=light))
        picture = run.frame(lambda scene: scene.model(cube, at=STILL, ground=False))
        return picture[160:200, 300:340].reshape(-1, 3).mean(axis=0)

    front, behind = (lit([0, 1, z], [0.8, 0.8, 0.8]) for z in (2, -2))
    assert front[0] > 1.2 * behind[0]  # it shines on what is seen
    bright, dark = lit([0, 1, 2], [1.5, 1.5, 1.5]), lit([0, 1, 2], [0.3, 0.3, 0.3])
    assert bright[0] > 1.2 * dark[0]
    blue = lit([0, 1, 2], [0.2, 0.2, 2.0])
    assert blue[0] / blue[2] < 0.7 * front[0] / front[2]
