"""`heimdall pose`: poses of a clip with known truth, and what is said of bad input."""

from __future__ import annotations

import json
import subprocess
import sys

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.rendered import Course, Rendered
from heimdall.capture.camera_files import write_camera
from heimdall.capture.pose import Pose
from heimdall.cli import main
from heimdall.lab.cli.schemas import json_schema
from heimdall.tracking.pose.solve import apart
from tests.docs.json_schemas import wrong
from tests.tracking.slam.scene import CAMERA, look, walk

COVERED = 5  # frames at the end of the clip of a room


def invoke(*args: object):
    return CliRunner().invoke(main, [str(each) for each in args])


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clip")
    rendered = Rendered(1, Course(seconds=0.4))
    shots = list(rendered.shots())
    writer = cv2.VideoWriter(
        str(folder / "clip.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 30, (1280, 720)
    )
    for shot in shots:
        writer.write(shot.image)
    writer.release()
    write_camera(folder / "camera.toml", rendered.camera)
    return folder, rendered, shots


@pytest.fixture(scope="module")
def clip_in_part(tmp_path_factory):
    """A clip whose marker is covered from some frame on."""
    folder, hidden = tmp_path_factory.mktemp("part"), 45
    rendered = Rendered(3, Course(seconds=2.0))
    shots = list(rendered.shots())
    writer = cv2.VideoWriter(
        str(folder / "clip.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 30, (1280, 720)
    )
    for number, shot in enumerate(shots):
        image = shot.image.copy()
        if number >= hidden:
            seen = rendered.camera.pixels(shot.camera.pose.to_camera(rendered.corners() * 1.8))
            cv2.fillConvexPoly(image, seen.astype(np.int32), (120, 120, 120))
        writer.write(image)
    writer.release()
    write_camera(folder / "camera.toml", rendered.camera)
    return folder, rendered, shots, hidden


def test_poses_are_those_of_the_world_at_the_marker(clip):
    folder, rendered, shots = clip
    marker = f"DICT_4X4_50:{rendered.marker}:{rendered.course.width_m}"
    result = invoke(
        "pose", folder / "clip.mp4", "--camera", folder / "camera.toml", "--marker", marker,
        "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert wrong(json_schema("pose"), found) == []
    assert "planes" not in found
    assert [each["sequence"] for each in found["frames"]] == list(range(len(shots)))
    tracked = [each for each in found["frames"] if each["state"] == "tracked"]
    assert len(tracked) >= len(shots) - 3
    for each in tracked:
        truth = shots[each["sequence"]].camera.pose
        pose = Pose.of(np.array(each["rotation"]), np.array(each["translation"]))
        turn, off = apart(pose, truth)
        assert np.degrees(turn) < 1
        assert off < 0.01 * np.linalg.norm(truth.translation)
        assert each["reprojection_px"] < 1
    assert found["ms"]["p99"] >= found["ms"]["p50"] > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--marker or --target, or --world"),
        (["--world", "--no-map"], "--no-map"),
        (["--marker", "DICT_4X4_50:0"], "DICT:ID:METRES"),
        (["--marker", "DICT_4X4_50:99:0.1"], "0 to 49"),
        (["--marker", "DICT_9X9:0:0.1"], "DICT_APRILTAG_36h11"),
        (["--marker", "DICT_4X4_50:0:nan"], "no width"),
        (["--marker", "DICT_4X4_50:0:-1"], "no width"),
        (["--marker", "DICT_4X4_50:0:0.1", "--marker", "DICT_4X4_50:0:0.2"], "given twice"),
        (["--target", "nothing.png:0.2"], "nothing.png"),
    ],
)
def test_what_is_wrong_is_said(clip, options, said):
    result = invoke("pose", clip[0] / "clip.mp4", *options)
    assert result.exit_code == 2
    assert said in result.output


def test_a_camera_of_another_shape_is_refused(clip, tmp_path):
    write_camera(tmp_path / "c.toml", clip[1].camera.scaled(640, 480))
    result = invoke(
        "pose", clip[0] / "clip.mp4", "--camera", tmp_path / "c.toml", "--marker",
        "DICT_4X4_50:0:0.1",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "640x480" in result.output


def test_the_camera_file_of_ros_gives_the_same_poses(clip, tmp_path):
    folder, rendered, _ = clip
    camera = rendered.camera
    matrix, bent = np.ravel(camera.matrix).tolist(), list(camera.distortion)
    (tmp_path / "ost.yaml").write_text(
        f"image_width: {camera.width}\nimage_height: {camera.height}\ncamera_name: c\n"
        f"camera_matrix: {{rows: 3, cols: 3, data: {matrix}}}\ndistortion_model: plumb_bob\n"
        f"distortion_coefficients: {{rows: 1, cols: 5, data: {bent}}}\n"
    )
    given = "--marker", f"DICT_4X4_50:{rendered.marker}:{rendered.course.width_m}", "--json"
    found = []
    for file in (folder / "camera.toml", tmp_path / "ost.yaml"):
        result = invoke("pose", folder / "clip.mp4", "--camera", file, "--frames", 6, *given)
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.stdout)["frames"])
    assert found[0] == found[1]
    assert found[0][-1]["state"] == "tracked"


def test_a_camera_file_that_is_none_is_refused_with_what_is_needed(clip, tmp_path):
    (tmp_path / "c.yaml").write_text("hello: world")
    result = invoke(
        "pose", clip[0] / "clip.mp4", "--camera", tmp_path / "c.yaml", "--marker",
        "DICT_4X4_50:0:0.1",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "holds no camera" in result.output
    assert "fx = 911.2" in result.output


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A folder with a clip of a room, its lens covered at the end, and its camera; the truth."""
    folder, truth = tmp_path_factory.mktemp("room"), list(walk(90))
    shown = [look(pose, seed=number) for number, pose in enumerate(truth)]
    shown += [np.full_like(shown[0], 8)] * COVERED
    writer = cv2.VideoWriter(
        str(folder / "room.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 30, CAMERA.size
    )
    for each in shown:
        writer.write(cv2.cvtColor(each, cv2.COLOR_GRAY2BGR))
    writer.release()
    write_camera(folder / "camera.toml", CAMERA)
    return folder, truth


def in_room(room, *more: object):
    return invoke(
        "pose", room[0] / "room.mp4", "--camera", room[0] / "camera.toml", "--world", *more
    )


def told(room):
    result = in_room(room, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def found(room):
    return told(room)


def test_a_room_that_nothing_is_known_of_says_the_path_up_to_its_size(room, found):
    _, truth = room
    frames = found["frames"]
    assert wrong(json_schema("pose"), found) == []
    assert [each["sequence"] for each in frames] == list(range(len(truth) + COVERED))
    states = [each["state"] for each in frames]
    first = states.index("tracked")
    assert first < 25
    assert set(states[first : len(truth)]) == {"tracked"}
    own = [
        Pose.of(np.array(each["rotation"]), np.array(each["translation"]))
        for each in frames[first : len(truth)]
    ]
    gone = np.array([np.linalg.norm(each.position - own[0].position) for each in own])
    there = np.array(
        [np.linalg.norm(each.position - truth[first].position) for each in truth[first:]]
    )
    far = there > 0.15
    assert far.sum() > 30
    units = gone[far] / there[far]
    assert np.ptp(units) < 0.1 * np.median(units)
    for pose, true in zip(own, truth[first:], strict=True):
        turned = pose.after(own[0].inverse).rotation.T @ true.after(truth[first].inverse).rotation
        assert np.degrees(np.linalg.norm(cv2.Rodrigues(turned)[0])) < 1
    assert found["ms"]["p99"] >= found["ms"]["p50"] > 0


def test_a_frame_without_a_pose_says_why(room, found):
    frames, end = found["frames"], len(room[1])
    reasons = [each["reason"] for each in frames]
    first = reasons.index("")
    assert set(reasons[:first]) == {"initializing"}
    assert set(reasons[first:end]) == {""}
    assert set(reasons[end:]) == {"insufficient features"}
    for each in frames:
        assert (each["rotation"] is None) == (each["state"] == "lost") == bool(each["reason"])


def test_planes_are_those_of_the_room(found):
    normals = np.array([each["normal"] for each in found["planes"]])
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1)
    wall = int(np.argmax(normals @ (0, 0, -1)))
    assert normals[wall] @ (0, 0, -1) > np.cos(np.radians(3))
    assert all(side > 0 for each in found["planes"] for side in each["extent"])
    # the boxes stand nearer
    assert all(each["point"][2] <= found["planes"][wall]["point"][2] for each in found["planes"])


def test_a_room_is_the_same_whenever_it_is_looked_at(room, found):
    again = told(room)
    assert again["frames"] == found["frames"]
    assert again["planes"] == found["planes"]


def test_a_room_with_a_marker_is_in_its_metres(clip_in_part):
    folder, rendered, shots, hidden = clip_in_part
    marker = f"DICT_4X4_50:{rendered.marker}:{rendered.course.width_m}"
    what = "pose", folder / "clip.mp4", "--camera", folder / "camera.toml", "--marker", marker
    result = invoke(*what, "--world", "--no-map", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert wrong(json_schema("pose"), found) == []
    assert found["metres"]
    assert {each["source"] for each in found["frames"][hidden:]} == {"room"}
    for each in found["frames"][hidden:]:
        pose = Pose.of(np.array(each["rotation"]), np.array(each["translation"]))
        turn, off = apart(pose, shots[each["sequence"]].camera.pose)
        assert np.degrees(turn) < 1
        assert off < 0.01 * np.linalg.norm(pose.translation)


def test_a_room_is_told_to_people_without_metres(room):
    result = in_room(room)
    assert result.exit_code == 0, result.output
    assert f"{COVERED} without a pose: insufficient features" in result.stdout
    assert " m," not in result.stdout
    assert "Planes, in the room's own unit" in result.stdout


def test_a_clip_too_short_to_begin_has_no_pose_and_no_plane(room):
    found = json.loads(in_room(room, "--frames", 4, "--json").stdout)
    assert [each["reason"] for each in found["frames"]] == ["initializing"] * 4
    assert found["planes"] == []
    assert wrong(json_schema("pose"), found) == []


def test_markers_do_not_load_the_room_tracker(clip):
    words = ["pose", str(clip[0] / "clip.mp4"), "--marker", "DICT_4X4_50:0:0.1", "--frames", "1"]
    code = (
        "import sys; from heimdall.cli import main\n"
        f"main({words!r}, standalone_mode=False)\n"
        "assert 'heimdall.tracking.pose.tracker' in sys.modules\n"
        "room = {f'heimdall.tracking.slam.{each}' for each in ('clips', 'mapper', 'tracker')}\n"
        "assert room.isdisjoint(sys.modules), room & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
