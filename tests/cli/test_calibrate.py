"""`heimdall calibrate`: prints a board, and keeps what a clip of it says of the camera."""

from __future__ import annotations

import json

import cv2
import pytest
from click.testing import CliRunner

from heimdall.capture import open_source
from heimdall.capture.camera_files import file_of, read_camera
from heimdall.cli import main
from heimdall.lab.cli.schemas import json_schema
from tests.docs.json_schemas import wrong
from tests.tracking.pose.photographed import BENT, around, photographed_board


def invoke(*args: object):
    return CliRunner().invoke(main, [str(each) for each in args])


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "board.mp4"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 30, BENT.size)
    photographed = photographed_board()
    for pose in around(16):
        writer.write(cv2.cvtColor(photographed.taken(pose), cv2.COLOR_GRAY2BGR))
    writer.release()
    return path


def test_a_clip_says_its_camera_and_its_frames_know_it(clip):
    result = invoke("calibrate", "--source", clip, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert wrong(json_schema("calibrate"), found) == []
    assert found["camera"]["fx"] == pytest.approx(BENT.fx, rel=0.01)
    assert found["camera"]["fy"] == pytest.approx(BENT.fy, rel=0.01)
    assert 0 < found["reprojection_px"] < 1
    assert found["frames"] == 16
    assert found["file"] == str(file_of(str(clip)))
    source = open_source(str(clip))
    try:
        camera = source.wait_first(5).camera
    finally:
        source.close()
    assert camera.fx == found["camera"]["fx"]
    assert not camera.guessed


def test_it_says_what_it_found_and_where_it_keeps_it(clip, tmp_path):
    result = invoke("calibrate", "--source", clip, "--save", tmp_path / "mine.toml")
    assert result.exit_code == 0, result.output
    assert "reprojection error" in result.stdout
    assert "mine.toml" in result.stdout.replace("\n", "")
    assert "tilt the board" in result.stderr
    assert read_camera(tmp_path / "mine.toml").size == BENT.size


def test_the_board_is_written(tmp_path):
    result = invoke("calibrate", "--board", tmp_path / "b.png", "--squares", "9x6", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["squares"] == [9, 6]
    assert cv2.imread(str(tmp_path / "b.png")) is not None


def test_a_camera_is_not_kept_where_it_would_be_lost(clip, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "file"))
    result = invoke("calibrate", "--source", clip, "--squares", "7x5")
    assert result.exit_code == 2
    assert "name a file to save the camera in" in result.output.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--squares", "7"], "COLUMNSxROWS"),
        (["--squares", "2x2"], "3x3 to 40x40"),
        (["--squares", "20x20"], "--dictionary"),
        (["--squares", "9x6"], "--squares COLUMNSxROWS"),
        (["--dictionary", "DICT_5X5_50"], "seen in 0 of 3 frames"),
        (["--board", "board.gif"], ".pdf or .png"),
        (["--save", "camera.txt"], ".toml"),
        (["--source", "nothing.mp4"], "nothing.mp4"),
        ([], "in 3 different views; 6 are needed"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(clip, tmp_path, monkeypatch, options, said):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path))
    result = invoke("calibrate", "--source", clip, "--frames", 3, *options)
    assert result.exit_code == 2
    assert said in result.output.replace("\n", " ")
    assert not list(tmp_path.rglob("*.toml"))
