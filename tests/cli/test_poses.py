"""`heimdall pose`: poses of a clip with known truth, and what is said of bad input."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.rendered import Course, Rendered
from heimdall.capture.camera_files import write_camera
from heimdall.capture.lens import Pose
from heimdall.cli import main
from heimdall.tracking.pose.solve import apart


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


def test_poses_are_those_of_the_world_at_the_marker(clip):
    folder, rendered, shots = clip
    marker = f"DICT_4X4_50:{rendered.marker}:{rendered.course.width_m}"
    result = invoke(
        "pose", folder / "clip.mp4", "--camera", folder / "camera.toml", "--marker", marker,
        "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["schema"] == 1
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
        ([], "--marker or --target"),
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
