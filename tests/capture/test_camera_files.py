"""What is known of a camera: written, read again, found by its source, fitted to a picture."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

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
        (GOOD + "distortion=[0.1, 0.2]", "has 0 or 4 or 5 or 8 or 12 or 14 coefficients, not 2"),
        (GOOD + "distortion=0.1", "k1, k2, p1, p2, k3"),
        (GOOD + "distortion_model='fov'\ndistortion=[0.9]", "lens model 'fov' is not known"),
        (GOOD + "distortion_model='equidistant'", "'equidistant' has 4 coefficients, not 0"),
        (GOOD + "distortion=[0, 0, 0, 0, inf]", "distortion must be finite"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path, text, said):
    path = tmp_path / "camera.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as raised:
        read_camera(path)
    assert str(path) in str(raised.value)


FISHEYE = replace(LENS, distortion=(-0.01, 0.05, -0.04, 0.01), fisheye=True)
RATIONAL = replace(LENS, distortion=(8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9))


@pytest.mark.parametrize("lens", [FISHEYE, RATIONAL, replace(LENS, distortion=(0.1,) * 14)])
def test_every_lens_is_read_as_it_was_written(tmp_path, lens):
    write_camera(tmp_path / "one.toml", lens)
    assert read_camera(tmp_path / "one.toml") == lens


# --- of other programs -----------------------------------------------------------------------

K = "[601.5, 0.0, 322.125, 0.0, 602.25, 240.5, 0.0, 0.0, 1.0]"
D = "[0.08, -0.12, 0.001, -7e-4, 0.01]"
FOUR = (0.08, -0.12, 0.001, -0.0007, 0.0)

ROS = f"""image_width: 640
image_height: 480
camera_name: camera
camera_matrix: {{rows: 3, cols: 3, data: {K}}}
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: {D}
rectification_matrix: {{rows: 3, cols: 3, data: [1.0, 0, 0, 0, 1.0, 0, 0, 0, 1.0]}}
projection_matrix: {{rows: 3, cols: 4, data: [1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0, 0]}}
"""
ECHOED = "header: {frame_id: camera}\nheight: 480\nwidth: 640\ndistortion_model: plumb_bob\n"
ECHOED += f"d: {D}\nk: {K}\n---\n"
KALIBR = """cam0:
  T_cam_imu:
  - [0.01, -0.99, 0.002, 0.03]
  camera_model: pinhole
  distortion_coeffs: [0.08, -0.12, 0.001, -0.0007]
  distortion_model: radtan
  intrinsics: [601.5, 602.25, 322.125, 240.5]
  resolution: [640, 480]
  rostopic: /cam0/image_raw
cam1:
  camera_model: pinhole
  distortion_coeffs: [-0.01, 0.05, -0.04, 0.01]
  distortion_model: equidistant
  intrinsics: [601.5, 602.25, 322.125, 240.5]
  resolution: [640, 480]
"""
EUROC = """sensor_type: camera
T_BS: {cols: 4, rows: 4, data: [0.01, -0.99, 0.002, 0.03]}
resolution: [640, 480]
camera_model: pinhole
intrinsics: [601.5, 602.25, 322.125, 240.5] #fu, fv, cu, cv
distortion_model: radial-tangential
distortion_coefficients: [0.08, -0.12, 0.001, -0.0007]
"""
COLMAP = "# Camera list with one line of data per camera:\n#   CAMERA_ID, MODEL, WIDTH, HEIGHT, "
COLMAP += "PARAMS[]\n# Number of cameras: 1\n1 {} 640 480 {}\n"
REALSENSE = '{{"width": 640, "height": 480, "ppx": 322.125, "ppy": 240.5, "fx": 601.5, '
REALSENSE += '"fy": 602.25, "model": {}, "coeffs": {}}}'


@pytest.mark.parametrize(
    ("text", "lens"),
    [
        pytest.param(ROS, LENS, id="ROS"),
        pytest.param(ROS.replace("plumb_bob", "rational_polynomial").replace(
            D, "[8.1, 3.2, 0.001, -0.001, 0.15, 8.4, 5.6, 0.9]"), RATIONAL, id="ROS, rational"),
        pytest.param(ROS.replace("plumb_bob", "equidistant").replace(
            D, "[-0.01, 0.05, -0.04, 0.01]"), FISHEYE, id="ROS, fisheye"),
        pytest.param(ECHOED, LENS, id="ROS, a CameraInfo as it is shown"),
        pytest.param(KALIBR, replace(LENS, distortion=FOUR), id="Kalibr"),
        pytest.param(EUROC, replace(LENS, distortion=FOUR), id="EuRoC"),
        pytest.param(COLMAP.format("OPENCV", "601.5 602.25 322.625 241 0.08 -0.12 0.001 -7e-4"),
                     replace(LENS, distortion=FOUR), id="COLMAP"),
        pytest.param(COLMAP.format("SIMPLE_RADIAL", "601.5 322.625 241 0.08"),
                     replace(LENS, fy=601.5, distortion=(0.08, 0, 0, 0, 0)), id="COLMAP, radial"),
        pytest.param(COLMAP.format("PINHOLE", "601.5 602.25 322.625 241"),
                     replace(LENS, distortion=(0.0,) * 5), id="COLMAP, pinhole"),
        pytest.param(COLMAP.format("OPENCV_FISHEYE",
                                   "601.5 602.25 322.625 241 -0.01 0.05 -0.04 0.01"),
                     FISHEYE, id="COLMAP, fisheye"),
        pytest.param(COLMAP.format("FULL_OPENCV", "601.5 602.25 322.625 241 8.1 3.2 0.001 -0.001 "
                                                  "0.15 8.4 5.6 0.9"),
                     RATIONAL, id="COLMAP, rational"),
        pytest.param(REALSENSE.format('"distortion.brown_conrady"', D),
                     LENS, id="RealSense"),
        pytest.param(REALSENSE.format('"Inverse Brown Conrady"', D), LENS, id="RealSense, inverse"),
        pytest.param(REALSENSE.format(5, "[-0.01, 0.05, -0.04, 0.01, 0]"), FISHEYE,
                     id="RealSense, fisheye by its number"),
        pytest.param('{"width": 640, "height": 480, "intrinsic_matrix": '
                     "[601.5, 0, 0, 0, 602.25, 0, 322.125, 240.5, 1]}",
                     replace(LENS, distortion=(0.0,) * 5), id="Open3D, by columns"),
        pytest.param('{"camera_matrix": [[601.5, 0, 322.125], [0, 602.25, 240.5], [0, 0, 1]], '
                     '"image_size": [640, 480], "dist": [[0.08, -0.12, 0.001, -0.0007, 0.01]]}',
                     LENS, id="arrays of numpy as JSON"),
        pytest.param(f"image_size: {{width: 640, height: 480}}\ncameraMatrix: {K}\n"
                     f"dist_coeff: [{D}]\n", LENS, id="names of one's own"),
        pytest.param('{"camera": {"model": "D435", "width": 640, "height": 480, "color": {"fx": '
                     '601.5, "fy": 602.25, "cx": 322.125, "cy": 240.5, "k1": 0.08, "k2": -0.12, '
                     '"p1": 0.001, "p2": -0.0007, "k3": 0.01}}}', LENS, id="maps in maps"),
    ],
)  # fmt: skip
def test_cameras_of_other_programs_are_read(tmp_path, text, lens):
    path = tmp_path / "camera.any"
    path.write_text(text)
    assert read_camera(path) == lens


@pytest.mark.parametrize("form", ["yml", "xml", "json"])
@pytest.mark.parametrize("lens", [LENS, FISHEYE, RATIONAL])
def test_cameras_that_opencv_wrote_are_read(tmp_path, form, lens):
    path = tmp_path / f"camera.{form}"
    file = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    file.write("calibration_time", "Sun 29 Nov 2026")
    file.write("image_width", 640)
    file.write("image_height", 480)
    file.write("fisheye_model", int(lens.fisheye))
    file.write("camera_matrix", lens.matrix)
    file.write("distortion_coefficients", lens.coefficients[:, None])
    file.release()
    assert read_camera(path) == lens


def test_opencv_4_is_read(tmp_path):
    path = tmp_path / "camera.yml"
    matrix = "!!opencv-matrix\n   rows: {}\n   cols: {}\n   dt: d\n   data: {}\n"
    path.write_text(
        "%YAML:1.0\n---\nimage_Width: 640\nimage_Height: 480\n"
        + "Camera_Matrix: " + matrix.format(3, 3, "[ 601.5, 0., 322.125, 0.,\n     602.25, 240.5, "
                                                  "0., 0., 1. ]")
        + "Distortion_Coefficients: " + matrix.format(5, 1, D)
    )  # fmt: skip
    assert read_camera(path) == LENS
    path.write_text('{"width": 640, "height": 480, "K": [601.5, 0., 322.125, 0., 602.25, 240.5, '
                    '0., 0., 1.], "D": [0.08, -0.12, 0.001, -0.0007, 0.01]}')  # fmt: skip
    assert read_camera(path) == LENS


def test_of_several_cameras_the_first_is_taken_or_the_named_one(tmp_path, caplog):
    path = tmp_path / "camchain.yaml"
    path.write_text(KALIBR)
    assert read_camera(path).distortion == FOUR
    assert f"holds cam0, cam1: cam0 is taken; {path}:cam1 takes another one" in caplog.text
    assert read_camera(Path(f"{path}:cam1")) == FISHEYE
    with pytest.raises(ConfigError, match="choose one of: cam0, cam1"):
        read_camera(Path(f"{path}:left"))


def test_four_coefficients_without_a_model_are_noted(tmp_path, caplog):
    path = tmp_path / "camera.yaml"
    path.write_text(f"width: 640\nheight: 480\nk: {K}\nd: [0.08, -0.12, 0.001, -0.0007]")
    assert read_camera(path).distortion == FOUR
    assert "names no distortion_model: they count as k1, k2, p1, p2" in caplog.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("just words", "holds no camera that is understood"),
        ("", "holds no camera that is understood"),
        ("a: [1, 2", "cannot be read: while parsing"),
        ('{"a": ', "cannot be read: Expecting value"),
        ("<a>", "cannot be read: no element"),
        ("a = 1\nb", "is no TOML"),
        ("\x00\x01", "cannot be read"),
        ("a: &a [*a]\nk: *a\nb: {c: *a}", "holds no camera"),
        ("[" * 5000, "cannot be read"),
        (f"k: {K}\nd: {D}", "lacks width, height"),
        (KALIBR.replace("radtan", "fov"), "lens model 'fov' is not known"),
        (KALIBR.replace("camera_model: pinhole", "camera_model: eucm"), "'radtan-eucm' is not"),
        (KALIBR.replace("[601.5,", "[1.8, 601.5,"), "(radtan) has 5 intrinsics"),
        (ROS.replace("601.5", "0.0"), "fx = 0 must be above 0"),
        (ROS.replace("322.125", "wide"), "cx must be finite numbers, not 'wide'"),
        (ROS.replace("[601.5, 0.0", "[601.5, 9.5"), "has a skew of 9.5"),
        (REALSENSE.format('"distortion.ftheta"', D), "lens model 'distortion.ftheta' is not"),
        (REALSENSE.format('"none"', '"bent"'), "its distortion is 'bent'"),
        (COLMAP.format("FOV", "1 2 3 4 5"), "COLMAP's lens model FOV is not known"),
        (COLMAP.format("OPENCV", "1 2 3"), "OPENCV has 8 parameters"),
    ],
)
def test_what_is_no_camera_is_said_with_what_is_needed(tmp_path, text, said):
    path = tmp_path / "camera.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(said)) as raised:
        read_camera(path)
    assert str(path) in str(raised.value)
    needed = "fx = 911.2" in str(raised.value)
    assert needed == any(each in said for each in ("holds no", "cannot be", "no TOML", "lacks"))


def test_a_file_that_is_no_text_or_too_large_is_refused_with_what_is_needed(tmp_path):
    path = tmp_path / "camera.yaml"
    for content, said in ((b"\x89PNG\xff", "is no text"), (b"#" * (1 << 21), "larger than 1 MB")):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=f"(?s){said}.*fx = 911") as raised:
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


def test_a_file_of_another_program_belongs_to_a_clip_too(picture):
    picture.with_suffix(".camera.yaml").write_text(ROS)
    assert camera_of(picture) == LENS


@pytest.mark.parametrize("played", ["cam0", "cam0/data"])
def test_a_folder_of_pictures_has_the_camera_that_euroc_keeps_there(tmp_path, played):
    folder = tmp_path / "cam0" / "data"
    folder.mkdir(parents=True)
    cv2.imwrite(str(folder / "1403636579763555584.png"), np.full((480, 640, 3), 90, np.uint8))
    (tmp_path / "cam0" / "sensor.yaml").write_text(EUROC)
    assert camera_of(tmp_path / played) == replace(LENS, distortion=FOUR)


def test_a_broken_calibration_costs_no_picture(picture, caplog):
    picture.with_suffix(".camera.toml").write_text("width = 'wide'")
    assert camera_of(picture).guessed
    assert "lacks" in caplog.text or "finite" in caplog.text


def test_sources_have_files_of_their_own():
    names = {file_of(each) for each in ("0", "1", "http://host/a", "http://host/b", "clip.mp4")}
    assert len(names) == 5
    assert known_camera("7") is None
