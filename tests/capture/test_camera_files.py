"""What is known of a camera: written, read again, found by its source, fitted to a picture."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from heimdall.capture import Frame, open_source
from heimdall.capture.camera_files import file_of, fitting, known_camera, read_camera, write_camera
from heimdall.capture.lens import Camera
from heimdall.errors import ConfigError

LENS = Camera(640, 480, 601.5, 602.25, 322.125, 240.5, (0.08, -0.12, 0.001, -0.0007, 0.01))
GOOD = "width=640\nheight=480\nfx=600\nfy=600\ncx=319.5\ncy=239.5\n"


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("HEIMDALL_CACHE", str(tmp_path / "cache"))


def test_a_camera_is_read_as_it_was_written(tmp_path):
    write_camera(tmp_path / "one.toml", LENS)
    assert read_camera(tmp_path / "one.toml") == LENS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("width = ", "is no TOML"),
        ("width=640\nheight=480", "lacks fx, fy, cx, cy"),
        (GOOD + "lens='good'", "'lens'"),
        (GOOD.replace("fx=600", "fx=nan"), "fx must be finite"),
        (GOOD.replace("fx=600", "fx=-1"), "fx = -1 must be above 0"),
        (GOOD.replace("width=640", "width=0"), "no side in pixels"),
        (GOOD.replace("width=640", "width='wide'"), "width must be finite numbers"),
        (GOOD + "distortion=[0.1, 0.2]", "k1, k2, p1, p2, k3"),
        (GOOD + "distortion=[0, 0, 0, 0, inf]", "distortion must be finite"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, text, said):
    path = tmp_path / "camera.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as raised:
        read_camera(path)
    assert str(path) in str(raised.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml"):
        read_camera(tmp_path / "none.toml")


def test_a_frame_has_a_camera_of_its_size():
    picture = np.zeros((720, 1280, 3), np.uint8)
    assert Frame(picture, 0, 0).camera == Camera.guess(1280, 720)
    half = Frame(picture[:360, :640], 0, 0, Camera.guess(1280, 720)).camera
    assert half == Camera.guess(1280, 720).scaled(640, 360)


def test_another_shape_of_picture_is_another_part_of_the_sensor():
    assert fitting(LENS, 1280, 960) == LENS.scaled(1280, 960)
    assert fitting(LENS, 1280, 720).guessed


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "still.png"
    cv2.imwrite(str(path), np.full((480, 640, 3), 90, np.uint8))
    return path


def camera_of(path) -> Camera:
    source = open_source(path)
    try:
        return source.wait_first(5).camera
    finally:
        source.close()


def test_a_source_finds_what_was_calibrated(picture):
    assert camera_of(picture).guessed
    write_camera(file_of(str(picture)), LENS)
    assert camera_of(picture) == LENS


def test_a_file_beside_a_clip_comes_first(picture):
    beside = replace(LENS, fx=700.0)
    write_camera(file_of(str(picture)), LENS)
    write_camera(picture.with_suffix(".camera.toml"), beside)
    assert camera_of(picture) == beside


def test_a_broken_calibration_costs_no_picture(picture, caplog):
    picture.with_suffix(".camera.toml").write_text("width = 'wide'")
    assert camera_of(picture).guessed
    assert "lacks" in caplog.text or "finite" in caplog.text


def test_sources_have_files_of_their_own():
    names = {file_of(each) for each in ("0", "1", "http://host/a", "http://host/b", "clip.mp4")}
    assert len(names) == 5
    assert known_camera("7") is None
